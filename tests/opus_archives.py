"""Archives as OPUS-MT publishes them, made small: Marian's .npz, vocab.yml, decoder.yml and SentencePiece models."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import sentencepiece
import yaml

from heads.interop.firefox.shape import shape_of, shapes_of
from marian_models import SENTENCES, segmenter, subwords_of

OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 3,
    "dim-emb": 12,
    "transformer-heads": 3,
    "transformer-dim-ffn": 14,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-no-projection": False,
    "transformer-guided-alignment-layer": "last",
    "transformer-train-position-embeddings": False,
    "layer-normalization": False,
    "right-left": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
}
"""What OPUS-MT trains, but for the sizes."""
MODEL = "opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz"
LICENCE = "Attribution 4.0 International"
ODD = (
    "no",
    "Yes",
    "on",
    "null",
    "~",
    "1",
    "1e3",
    "0x1F",
    "=",
    "<<",
    '"',
    "'",
    "\\",
    ":",
    "#",
    "- a",
    "{",
    "*",
    "\u2028",
)
"""Subwords that a reader of YAML may take for something else."""


def save_archive(
    folder: Path, *, languages: Sequence[str] = (), more_rows: int = 0, separate: bool = False, **options: Any
) -> Path:
    """Write an archive's folder and return it.

    more_rows: of the embedding, beyond the vocabulary. separate: one vocabulary for each side, of different sizes.
    """
    folder.mkdir(parents=True)
    pieces = {}
    for side, size in (("source", 60), ("target", 70)):
        content = segmenter(SENTENCES[side], size, "unigram")
        (folder / f"{side}.spm").write_bytes(content)
        # Without those of most letters, so that some are unknown.
        pieces[side] = sorted(subwords_of(content), key=lambda subword: (-len(subword), subword))[3:]
    if separate:
        names = {"src.vocab.yml": [*languages, *pieces["source"]], "trg.vocab.yml": [*ODD, *pieces["target"]]}
    else:
        names = {"vocab.yml": [*pieces["target"], *languages, *ODD, *pieces["source"]]}
    files, sizes = [], []
    for ending, subwords in names.items():
        row = [name for name in dict.fromkeys(subwords) if name not in ("</s>", "<unk>")]
        files.append(f"opus.spm32k-spm32k.{ending}")
        sizes.append(len(row) + 2 + more_rows)
        text = "".join(f"{quoted(name)}: {number}\n" for number, name in enumerate(["</s>", "<unk>", *row]))
        (folder / files[-1]).write_text(text, encoding="utf-8")
    told = {**OPTIONS, **options, "dim-vocabs": [sizes[0], sizes[-1]]}
    if separate:
        told |= {"tied-embeddings-all": False, "tied-embeddings": True}
    draw = np.random.default_rng(0)
    tensors: dict[str, Any] = {
        # So that translations depend on their sources, and end.
        name: draw.normal(0, 0.9 if "Wemb" not in name else 0.5, shape).astype(np.float32)
        for name, shape in shapes_of(shape_of(folder / MODEL, told)).items()
    }
    told_too = np.frombuffer(yaml.safe_dump(told).encode() + b"\0", np.int8)
    np.savez(folder / MODEL, **{**tensors, "special:model.yml": told_too})
    settings = {"relative-paths": True, "models": [MODEL], "vocabs": [files[0], files[-1]], "beam-size": 6}
    settings |= {"normalize": 1, "word-penalty": 0, "mini-batch": 1, "maxi-batch": 1, "maxi-batch-sort": "src"}
    (folder / "decoder.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (folder / "README.md").write_text("# opus-2020-01-08.zip\n* dataset: opus\n", encoding="utf-8")
    (folder / "LICENSE").write_text(LICENCE, encoding="utf-8")
    for name in ("preprocess.sh", "postprocess.sh"):
        (folder / name).write_text("#!/bin/bash\n", encoding="utf-8")
    return folder


def quoted(name: str) -> str:
    """A key as yaml-cpp writes it: plain where its rules allow that, though other readers take some for numbers."""
    plain = re.fullmatch(r"[\w.+/<]([\w.+/<>-]*)", name) and name not in ("null", "<<")
    return name if plain else json.dumps(name, ensure_ascii=False)


class AsMarian(ctranslate2.converters.OpusMTConverter):
    """The peer, with positions and norms as Marian has them (src/graph/node_initializers.cpp, src/tensors/cpu)."""

    def _load(self) -> Any:
        spec = super()._load()
        width = spec.encoder.embeddings[0].weight.shape[1]
        speeds = np.exp(-np.arange(width // 2) * np.log(10000) / (width // 2 - 1))
        angles = np.arange(300)[:, None] * speeds
        for stack in (spec.encoder, spec.decoder):
            stack.position_encodings.encodings = np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
        spec.config.layer_norm_epsilon = 1e-9
        return spec


def in_ctranslate2(archive: Path, folder: Path) -> ctranslate2.Translator:
    """An archive as CTranslate2 translates with it, converted into a folder."""
    AsMarian(str(archive)).convert(str(folder))
    return ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)


def cut_by(model: Path, lines: Sequence[str]) -> list[list[str]]:
    """The subwords of lines by a SentencePiece model of an archive."""
    processor = sentencepiece.SentencePieceProcessor(str(model))
    return [processor.encode(line, out_type=str) for line in lines]
