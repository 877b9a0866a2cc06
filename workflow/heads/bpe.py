"""Byte-pair encoding with SentencePiece, token files, and the exact way between words and pieces.

The text is not normalised by SentencePiece (that is the corpus stage's business), so every piece covers known
characters of the very text that went in, and a word's pieces are found by character offset, never by guessing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from heads.files import UserError, atomic_path, open_text
from heads.settings import BpeSettings

Span = tuple[int, int]
"""Characters [start, end) of a sentence."""


def train_bpe(text: Path, model: Path, settings: BpeSettings, pieces: int) -> None:
    """Learn a vocabulary of `pieces` pieces from a text file and write the SentencePiece model to `model`.

    The ids 0 to 3 are padding, start, end and unknown, as `heads.transformer` expects.
    """
    with atomic_path(model) as temporary:
        prefix = temporary.with_suffix("")
        sentencepiece.set_random_generator_seed(settings.seed)
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(text),
                model_prefix=str(prefix),
                vocab_size=pieces,
                model_type="bpe",
                character_coverage=settings.character_coverage,
                input_sentence_size=settings.train_sentences,
                shuffle_input_sentence=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                num_threads=1,
                pad_id=0,
                bos_id=1,
                eos_id=2,
                unk_id=3,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{text} cannot give {pieces} pieces: {reason} Change bpe in config.yaml.") from error
        prefix.with_name(prefix.name + ".vocab").unlink()
        prefix.with_name(prefix.name + ".model").replace(temporary)


class Vocabulary:
    """A trained SentencePiece model."""

    def __init__(self, model: Path) -> None:
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.load(str(model))
        except (OSError, RuntimeError) as error:
            raise UserError(f"{model} is not a SentencePiece model: delete it and run the bpe stage again.") from error

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def encode(self, sentences: Iterable[str]) -> list[list[int]]:
        """Piece ids of every sentence, without start and end."""
        ids: list[list[int]] = self.processor.encode(list(sentences), out_type=int)
        return ids

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of every sequence of piece ids; padding, start and end vanish."""
        return [str(self.processor.decode([int(i) for i in sequence])) for sequence in ids]

    def piece(self, index: int) -> str:
        """The written form of one piece."""
        return str(self.processor.id_to_piece(index))

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        """Piece ids of a sentence, and the characters each piece covers (blanks before a word belong to its piece)."""
        mapping = self.processor.encode(sentence, out_type="offset_mapping")
        return list(mapping["ids"]), [(start, end) for start, end in mapping["offsets"]]


def membership(pieces: Sequence[Span], words: Sequence[Span]) -> NDArray[np.float64]:
    """Which share of each piece belongs to which word: a matrix [W, P] by overlapping characters.

    A column sums to one if its piece touches any word (else to zero), so attention to words, the sum over their
    pieces, stays a distribution also where one piece spans two words.
    """
    starts, ends = np.array(pieces, dtype=float).reshape(-1, 2).T
    word_starts, word_ends = np.array(words, dtype=float).reshape(-1, 2).T
    overlap = np.minimum(ends, word_ends[:, None]) - np.maximum(starts, word_starts[:, None])
    overlap = overlap.clip(min=0)
    total = overlap.sum(0)
    return np.asarray(np.divide(overlap, total, out=np.zeros_like(overlap), where=total > 0))


def encode_file(text: Path, vocabulary: Vocabulary, tokens: Path) -> None:
    """Encode a text file, a sentence a line, into a token file: all ids in a row and where each sentence starts."""
    lengths: list[int] = []
    parts: list[NDArray[np.int32]] = []
    for batch in _batched_lines(text):
        encoded = vocabulary.encode(batch)
        lengths += [len(ids) for ids in encoded]
        parts.append(np.concatenate([np.asarray(ids, np.int32) for ids in encoded]))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    with atomic_path(tokens) as temporary:
        save_file({"ids": ids, "offsets": offsets}, temporary)


def _batched_lines(text: Path, size: int = 10_000) -> Iterator[list[str]]:
    batch: list[str] = []
    with open_text(text) as stream:
        for line in stream:
            batch.append(line.rstrip("\n"))
            if len(batch) == size:
                yield batch
                batch = []
    if batch:
        yield batch


class Tokens:
    """The encoded sentences of one side of one split."""

    def __init__(self, path: Path) -> None:
        try:
            content = load_file(path)
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is damaged: delete it and run the bpe stage again.") from error
        self.ids, self.offsets = content["ids"], content["offsets"]
        self.lengths: NDArray[np.int64] = np.diff(self.offsets)
        """Number of pieces of every sentence."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return np.asarray(self.ids[self.offsets[index] : self.offsets[index + 1]])
