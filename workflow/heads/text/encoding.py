"""Encode text files as token files, with a vocabulary or labels."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from heads.base.checksums import blocks, with_checksum
from heads.base.files import UserError, atomic_path, open_text
from heads.base.pool import in_order
from heads.text.labels import LABELS, Labels
from heads.text.stored import Stored, stored_at
from heads.text.vocabulary import ID, OFFSET, Tokens, Vocabulary, batched_lines
from heads.text.wordpieces import BYTES, NAMES, WORD_PIECES, DescribedSubwords, WordPieces

Encodes = Vocabulary | Labels
"""What maps lines to ids, read from the file `path`."""


def tokens_of(lines: Sequence[str], vocabulary: Encodes) -> Tokens:
    """A text in subwords, or its labels, in memory."""
    return Tokens.of(*vocabulary.arrays(list(lines)))


def encode_file(text: Path, vocabulary: Encodes, tokens: Path, workers: int = 1) -> None:
    """Encode a text file, line by line, as a token file: all ids concatenated, and where each line starts.

    Batches of lines are encoded in `workers` processes; the file is the same for any number of them. Finished batches
    are on disk, so memory does not grow with the text. Raises UserError for an unknown label, with file and line.
    """
    if isinstance(vocabulary, Labels):
        with open_text(text) as lines:
            vocabulary.named((line.rstrip("\n") for line in lines), text)
    encode = vocabulary.arrays if workers == 1 else partial(_encode_elsewhere, vocabulary.path)
    sentences = subwords = 0
    tokens.parent.mkdir(parents=True, exist_ok=True)
    # Files without a name, so that a kill leaves nothing behind.
    with TemporaryFile(dir=tokens.parent) as ids, TemporaryFile(dir=tokens.parent) as offsets:
        offsets.write(bytes(8))
        for batch, lengths in in_order(encode, batched_lines(text), workers):
            ids.write(batch.tobytes())
            offsets.write((subwords + np.cumsum(lengths)).tobytes())
            sentences, subwords = sentences + len(lengths), subwords + len(batch)
        vectors = {"offsets": _mapped(offsets, OFFSET, sentences + 1), "ids": _mapped(ids, ID, subwords)}
        checked = with_checksum({}, chain(_from_start(offsets), _from_start(ids)))
        with atomic_path(tokens) as temporary:
            try:
                save_file(vectors, temporary, metadata=checked)
            except SafetensorError as error:
                raise UserError(f"{tokens} cannot be written ({error}): make room and run again.") from error


def _mapped(stream: IO[bytes], kind: str, length: int) -> NDArray[Any]:
    """The numbers of a file, memory-mapped so that they are read only when needed."""
    stream.flush()
    return np.memmap(stream, kind, "r", shape=(length,)) if length else np.empty(0, kind)


def _from_start(stream: IO[bytes]) -> Iterator[bytes]:
    stream.seek(0)
    yield from blocks(stream)


def _encode_elsewhere(model: Path, sentences: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return _loaded(model).arrays(sentences)


@cache
def _loaded(model: Path) -> Encodes:
    """A vocabulary or labels, read once per process."""
    return vocabulary_or_labels(model)


def vocabulary_of(model: Path, stored: Stored | None = None) -> Vocabulary:
    """The vocabulary in a file: SentencePiece's, or cut by `tokenizers`. Raises UserError if it is damaged.

    stored: its content, if it is in memory; then `model` is what it is called in messages.
    """
    stored = stored or stored_at(model)
    facts = stored.facts
    described = NAMES in facts or BYTES in facts
    return (DescribedSubwords if described else WordPieces if facts.get(WORD_PIECES) else Vocabulary)(model, stored)


def vocabulary_or_labels(model: Path, stored: Stored | None = None) -> Encodes:
    """The bpe stage's output for one side: a vocabulary, or labels. Raises UserError if it is damaged.

    stored: as in `vocabulary_of`.
    """
    stored = stored or stored_at(model)
    return Labels(model, stored) if LABELS in stored.facts else vocabulary_of(model, stored)
