"""Text files into token files, by a vocabulary or by labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from heads.base.files import UserError, atomic_path
from heads.base.pool import in_order
from heads.base.seals import blocks, sealed
from heads.text.byte_subwords import BYTES, ByteSubwords
from heads.text.labels import LABELS, Labels
from heads.text.vocabulary import ID, OFFSET, Vocabulary, batched_lines, facts_of
from heads.text.wordpieces import WORD_PIECES, WordPieces


class Encodes(Protocol):
    """What makes ids of lines, read from the file `path`: a vocabulary, or labels."""

    path: Path

    def __len__(self) -> int:
        """How many ids there are."""

    def arrays(self, sentences: list[str], /) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of all lines in a row, and the number of ids of each."""


def encode_file(text: Path, vocabulary: Encodes, tokens: Path, workers: int = 1) -> None:
    """Encode a text file, a line at a time, into a token file: all ids in a row and where each line starts.

    A batch of lines at a time, in as many processes as there are `workers`; the file is the same for any number. What
    is done lies on disk: memory does not grow with the text.
    """
    encode = vocabulary.arrays if workers == 1 else partial(_encode_elsewhere, vocabulary.path)
    sentences = subwords = 0
    tokens.parent.mkdir(parents=True, exist_ok=True)
    # Without a name, so that a kill leaves nothing behind.
    with TemporaryFile(dir=tokens.parent) as ids, TemporaryFile(dir=tokens.parent) as offsets:
        offsets.write(bytes(8))
        for batch, lengths in in_order(encode, batched_lines(text), workers):
            ids.write(batch.tobytes())
            offsets.write((subwords + np.cumsum(lengths)).tobytes())
            sentences, subwords = sentences + len(lengths), subwords + len(batch)
        vectors = {"offsets": _mapped(offsets, OFFSET, sentences + 1), "ids": _mapped(ids, ID, subwords)}
        seal = sealed({}, chain(_from_start(offsets), _from_start(ids)))
        with atomic_path(tokens) as temporary:
            try:
                save_file(vectors, temporary, metadata=seal)
            except SafetensorError as error:
                raise UserError(f"{tokens} cannot be written ({error}): make room and run again.") from error


def _mapped(stream: IO[bytes], kind: str, length: int) -> NDArray[Any]:
    """The numbers of a file, not read before they are needed."""
    stream.flush()
    return np.memmap(stream, kind, "r", shape=(length,)) if length else np.empty(0, kind)


def _from_start(stream: IO[bytes]) -> Iterator[bytes]:
    stream.seek(0)
    yield from blocks(stream)


def _encode_elsewhere(model: Path, sentences: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return _loaded(model).arrays(sentences)


@cache
def _loaded(model: Path) -> Encodes:
    """A vocabulary or labels, read once a process."""
    return opened(model)


def vocabulary_of(model: Path) -> Vocabulary:
    """The vocabulary that a file holds: WordPieces, byte subwords, or a SentencePiece model.

    Raises UserError where it is damaged.
    """
    facts = facts_of(model)
    kind = ByteSubwords if facts.get(BYTES) else WordPieces if facts.get(WORD_PIECES) else Vocabulary
    return kind(model)


def opened(model: Path) -> Encodes:
    """What the bpe stage left for one side: a vocabulary, or labels. Raises UserError where it is damaged."""
    return Labels(model) if LABELS in facts_of(model) else vocabulary_of(model)
