"""How fast exported sentence encoders are: transformers' AutoModel and ONNX Runtime, whole and pruned, in turn.

Run: python benchmarks/encoders.py text.gz FOLDER... on the folder of a sentence encoder and those that `heads export`
or `heads prune` made from it with `--format huggingface` and `--format onnx`. The others are compared with the first
folder, in speed and by the cosine between their vectors. Times are CPU seconds on one thread, the fastest of all turns,
without segmentation into subwords. With --pairs, a table with sentence_A, sentence_B and relatedness_score such as
SICK's, there is Spearman's correlation of the cosine with the score, too. None of our own code is used.
"""

import argparse
import csv
import gzip
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from scipy.stats import spearmanr
from tokenizers import Tokenizer

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[Sequence[int]]], Vectors]
MEGABYTE = 1e6
AT_ONCE = 32
"""Sentences of pairs that are encoded at once."""


def padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """The ids of each row, padded with zeros."""
    found = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, ids in zip(found, rows, strict=True):
        row[: len(ids)] = ids
    return found


def in_onnx(folder: Path) -> Encode:
    """The encoder of a folder's ONNX graph."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(folder / "encoder.onnx"), options, providers=["CPUExecutionProvider"])

    def encode(rows: Sequence[Sequence[int]]) -> Vectors:
        ids = padded(rows)
        found: Vectors = session.run(None, {"source": ids, "source_mask": ids > 0})[0]
        return found

    return encode


def in_torch(folder: Path) -> Encode:
    """The encoder that AutoModel loads from a folder, with mean pooling and vectors of length 1."""
    model = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()

    @torch.inference_mode()
    def encode(rows: Sequence[Sequence[int]]) -> Vectors:
        """The vectors of padded rows."""
        ids = torch.from_numpy(padded(rows))
        real = torch.arange(ids.shape[1]) < torch.tensor([[len(row)] for row in rows])
        states = model(input_ids=ids, attention_mask=real.long()).last_hidden_state * real[:, :, None]
        return torch.nn.functional.normalize(states.sum(1), dim=-1).numpy()

    return encode


def megabytes(folder: Path) -> float:
    """The size of the files with the weights."""
    files = (path for path in folder.iterdir() if path.suffix in (".onnx", ".data", ".safetensors"))
    return sum(path.stat().st_size for path in files) / MEGABYTE


def correlation(encode: Encode, cut: Tokenizer, pairs: Sequence[dict[str, str]]) -> float:
    """Spearman's, of the cosine between the sentences of each pair with its score, in percent."""
    lines = sorted({pair[side] for pair in pairs for side in ("sentence_A", "sentence_B")}, key=len)
    rows = [one.ids for one in cut.encode_batch(lines)]
    found = np.concatenate([encode(rows[first : first + AT_ONCE]) for first in range(0, len(rows), AT_ONCE)])
    vectors = dict(zip(lines, found, strict=True))
    near = [float(vectors[pair["sentence_A"]] @ vectors[pair["sentence_B"]]) for pair in pairs]
    scores = [float(pair["relatedness_score"]) for pair in pairs]
    return 100 * float(spearmanr(near, scores).statistic)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="gzipped text")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--pairs", type=Path, help="gzipped table of sentence pairs with their relatedness")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with gzip.open(arguments.text, "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line, _ in zip(stream, range(arguments.sentences), strict=False)]
    models: dict[Path, tuple[Encode, list[list[int]]]] = {}
    pairs, related = list[dict[str, str]](), dict[Path, float]()
    if arguments.pairs:
        with gzip.open(arguments.pairs, "rt", encoding="utf-8", newline="") as stream:
            pairs = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    for folder in arguments.folders:
        encode = in_onnx(folder) if (folder / "encoder.onnx").is_file() else in_torch(folder)
        cut = Tokenizer.from_file(str(folder / "tokenizer.json"))
        cut.no_padding()
        # Sorted by length, so that there is little padding.
        models[folder] = encode, sorted((one.ids for one in cut.encode_batch(lines)), key=len)
        if pairs:
            related[folder] = correlation(encode, cut, pairs)
    print("batch\tfolder\tMB\tCPU_seconds\tratio\tcosine" + "\tspearman" * bool(pairs))
    for size in arguments.batches:
        seconds: dict[Path, list[float]] = {folder: [] for folder in models}
        vectors: dict[Path, Vectors] = {}
        for _ in range(arguments.turns):
            for folder, (encode, rows) in models.items():
                started = time.process_time()
                found = [encode(rows[first : first + size]) for first in range(0, len(rows), size)]
                seconds[folder].append(time.process_time() - started)
                vectors[folder] = np.concatenate(found)
        whole = arguments.folders[0]
        for folder in models:
            near = float((vectors[folder] * vectors[whole]).sum(1).mean())
            cells = (min(seconds[folder]), min(seconds[whole]) / min(seconds[folder]), near)
            shown = (*(f"{cell:.3f}" for cell in cells), *(f"{related[folder]:.2f}" for _ in range(bool(pairs))))
            print(size, folder.name, f"{megabytes(folder):.1f}", *shown, sep="\t")


if __name__ == "__main__":
    main()
