"""Translate with the two ONNX graphs beside this script: python translate.py < source.txt > translations.txt

Needs only onnxruntime, numpy and sentencepiece, or tokenizers where that cuts a model's texts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

PAD, BOS, EOS, UNK = range(4)
NEVER = -1e9


class Model:
    """The encoder and the decoder step, on the CPU."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.encoder, self.step = (
            onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
            for name in ("encoder", "step")
        )
        self.own = [each for each in self.step.get_inputs() if each.name.startswith("own_")]
        # A graph has only the inputs that it uses.
        self.used = {each.name for each in self.step.get_inputs()}
        self.attended = [each.name for each in self.encoder.get_outputs()]

    def start(self, source: list[int], rows: int) -> dict[str, Any]:
        """Inputs of a step besides subwords, for one sentence and the given number of hypotheses."""
        ids = np.array([source])
        mask = np.ones((1, len(source)), bool)
        given = {"source": ids, "source_mask": mask}
        wanted = {each.name for each in self.encoder.get_inputs()}
        found = self.encoder.run(None, {name: value for name, value in given.items() if name in wanted})
        state = dict(zip(self.attended, found, strict=True)) | {"source_mask": mask}
        state = {name: np.repeat(value, rows, 0) for name, value in state.items()}
        # No keys and values yet; a recurrent state has a fixed size.
        sizes = {each.name: [size if isinstance(size, int) else 0 for size in each.shape[1:]] for each in self.own}
        return state | {name: np.zeros((rows, *size), np.float32) for name, size in sizes.items()}

    def next(self, subwords: list[int], position: int, state: dict[str, Any]) -> NDArray[np.float32]:
        """Log-probabilities [hypotheses, vocabulary] of the next subword; updates the past in the state."""
        given = state | {"subword": np.array(subwords)[:, None], "position": np.array([position])}
        logits, *grown = self.step.run(None, {name: value for name, value in given.items() if name in self.used})
        state.update(zip((each.name for each in self.own), grown, strict=True))
        highest = logits.max(-1, keepdims=True)
        log_probs: NDArray[np.float32] = logits - highest - np.log(np.exp(logits - highest).sum(-1, keepdims=True))
        return log_probs

    def score(self, source: list[int], target: list[int]) -> NDArray[np.float32]:
        """Log-probabilities [subwords, vocabulary] of the next subword after each one of a given translation."""
        state = self.start(source, 1)
        return np.concatenate([self.next([subword], number, state) for number, subword in enumerate(target)])

    def translate(
        self,
        source: list[int],
        beam: int,
        length_penalty: float,
        offset: int,
        ends: str,
        first: list[int] | None = None,
    ) -> list[int]:
        """The best translation of one sentence; scores are divided by ((offset + length) / (offset + 1)) ** penalty.

        ends: when to stop, as in `early_stopping` of transformers. "never": when no hypothesis can become better;
        "false": when `beam` are finished and the worst of them is no worse than the best open one now; "true": when
        `beam` are finished. first: the subword that every translation begins with, if there is one.
        """
        state, limit = self.start(source, beam), 2 * len(source) + 10
        best, done = -np.inf, list[int]()
        finished = [-np.inf] * (1 if ends == "never" else beam)
        hypotheses, scores = [[BOS]] * beam, np.array([0.0] + [NEVER] * (beam - 1))
        for step in range(1, limit + 1):
            totals = self.next([subwords[-1] for subwords in hypotheses], step - 1, state) + scores[:, None]
            totals[:, [PAD, BOS, UNK] if step < limit else np.arange(totals.shape[1]) != EOS] += NEVER
            if step == 1 and first:
                totals = np.where(np.arange(totals.shape[1]) == first[0], scores[:, None], scores[:, None] + NEVER)
            order = np.argsort(-totals, axis=None, kind="stable")[: 2 * beam]
            parents, subwords = np.unravel_index(order, totals.shape)
            for place in np.flatnonzero(subwords[:beam] == EOS):
                score = totals.flat[order[place]] / ((offset + step) / (offset + 1)) ** length_penalty
                finished = sorted([*finished, score], reverse=True)[: len(finished)]
                if score > best:
                    best, done = score, hypotheses[parents[place]][1:]
            live = np.flatnonzero(subwords != EOS)[:beam]
            parents, subwords, scores = parents[live], subwords[live], totals.flat[order[live]]
            attainable = scores[0] / ((offset + (limit if ends == "never" else step)) / (offset + 1)) ** length_penalty
            if finished[-1] >= attainable or (ends == "true" and finished[-1] > -np.inf):
                break
            hypotheses = [[*hypotheses[row], int(subword)] for row, subword in zip(parents, subwords, strict=True)]
            state |= {each.name: state[each.name][parents] for each in self.own}
        return done


class Segmenter:
    """SentencePiece; for an imported model, a file beside it lists the known subwords, prefix and suffix."""

    def __init__(self, model: Path, about: dict[str, Any]) -> None:
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        known = range(UNK + 1, about.get("subwords", about.get("pieces", 0)))
        self.known = {self.processor.id_to_piece(number): number for number in known}
        self.first, self.last = about.get("prefix", []), about.get("suffix", [])
        self.added = re.compile(about["added"]) if "added" in about else None

    def encode(self, line: str) -> list[int]:
        """Subword ids of a sentence, without EOS."""
        if not self.known:
            return list(self.processor.encode(line))
        found = (self.known.get(subword, UNK) for subword in self.cut(line))
        return [*self.first, *found, *self.last]

    def cut(self, line: str) -> list[str]:
        """The subwords of a line, which is split at those that were added to the vocabulary."""
        subwords, end = list[str](), 0
        for found in self.added.finditer(line) if self.added else ():
            name = found[found.lastindex or 0]
            subwords += [*self.processor.encode(line[end : found.start()], out_type=str), name]
            end = found.end()
        return [*subwords, *self.processor.encode(line[end:], out_type=str)]

    def decode(self, ids: list[int]) -> str:
        """The text of subword ids."""
        return str(self.processor.decode(ids))


class DescribedSegmenter:
    """What the library `tokenizers` runs; a file beside it has the name of each id, prefix and suffix."""

    def __init__(self, model: Path, about: dict[str, Any]) -> None:
        import tokenizers

        self.tokenizer: Any = tokenizers.Tokenizer.from_file(str(model))
        names = about.get("names") or [*map(self.tokenizer.id_to_token, range(self.tokenizer.get_vocab_size()))]
        self.theirs = [self.tokenizer.token_to_id(name) for name in names]
        self.ours = {number: place for place, number in enumerate(self.theirs)}
        self.first, self.last = about.get("prefix", []), about.get("suffix", [])

    def encode(self, line: str) -> list[int]:
        """Subword ids of a sentence, without EOS."""
        return [*self.first, *(self.ours.get(number, UNK) for number in self.tokenizer.encode(line).ids), *self.last]

    def decode(self, ids: list[int]) -> str:
        """The text of subword ids."""
        theirs = (self.theirs[number] for number in ids)
        return str(self.tokenizer.decode([number for number in theirs if number is not None]))


def segmenter(folder: Path, side: str) -> Segmenter | DescribedSegmenter:
    """What cuts the texts of one side into subwords."""
    beside = folder / f"{side}.json"
    about = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    kind = DescribedSegmenter if {"names", "byte_subwords"} & {*about} else Segmenter
    return kind(folder / f"{side}.model", about)


def main() -> None:
    """Translate the lines of standard input."""
    folder = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--length-offset", type=int, default=5, help="added to the length in the length penalty")
    parser.add_argument(
        "--early-stopping", choices=("never", "false", "true"), default="never", help="as in transformers"
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    model = Model(folder, arguments.threads)
    source, target = (segmenter(folder, side) for side in ("source", "target"))
    for line in sys.stdin:
        ids = [*source.encode(line.rstrip("\n")), EOS]
        divided = (arguments.length_penalty, arguments.length_offset)
        found = model.translate(ids, arguments.beam, *divided, arguments.early_stopping, target.first)
        print(target.decode(found), flush=True)


if __name__ == "__main__":
    main()
