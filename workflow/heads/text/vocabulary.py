"""Byte-pair encoding with SentencePiece, token files, and the exact mapping between words and subwords.

SentencePiece does not normalise the text (the corpus stage does), so every subword covers known characters of the
original text, and a word's subwords are found by character offset, never by guessing.
"""

from __future__ import annotations

import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from heads.base.checksums import blocks, verified
from heads.base.files import UserError, open_text
from heads.base.pool import chunks
from heads.config.trainings import BpeSettings
from heads.text.added import parts_of
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.stored import Stored, facts_beside, stored_at, write_model

Span = tuple[int, int]
"""Characters [start, end) of a sentence."""

BATCH_LINES = 10_000
ROWS, PREFIX, SUFFIX, FRAMED = "subwords", "prefix", "suffix", "framed"
ADDED = "added"
ID, OFFSET = "<i4", "<i8"
KINDS = {ID: "I32", OFFSET: "I64"}
"""Their names in safetensors."""


def train_bpe(text: Path, model: Path, settings: BpeSettings, subwords: int, *, framed: bool = False) -> None:
    """Learn a vocabulary of `subwords` subwords from a text file, and write it to `model`.

    framed: for examples, see `Vocabulary`.

    Its first ids are the special tokens. No subword crosses a blank, so the merges depend only on how often each word
    occurs (Sennrich et al. 2016, sec. 3.2): SentencePiece is given these counts, and memory grows with the number of
    distinct words, not with the text.
    """
    counts = word_counts(text, settings.train_sentences, settings.seed)
    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{word}\t{count}" for word, count in counts.items()),
            input_format="tsv",
            model_writer=trained,
            vocab_size=subwords,
            model_type="bpe",
            character_coverage=settings.character_coverage,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            num_threads=1,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{text} cannot give {subwords} subwords: {reason} Change bpe in config.yaml.") from error
    write_model(model, trained.getvalue(), {FRAMED: True} if framed else {})


def word_counts(text: Path, sentences: int, seed: int) -> Counter[str]:
    """Count of each word in at most `sentences` lines of a text, drawn at random if there are more."""
    counts: Counter[str] = Counter()
    left = sum(len(batch) for batch in batched_lines(text))
    wanted = min(sentences, left)
    draw = random.Random(seed).random
    for batch in batched_lines(text):
        if wanted < left:
            # Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S: exactly `wanted` lines, all equally likely.
            drawn = []
            for line in batch:
                if draw() * left < wanted:
                    drawn.append(line)
                    wanted -= 1
                left -= 1
            batch = drawn
        counts.update(" ".join(batch).split())
    return counts


def read_segmenter(path: Path) -> sentencepiece.SentencePieceProcessor:
    """The SentencePiece model of a third-party file. Raises UserError if it is none."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(path.read_bytes())
    except (OSError, RuntimeError):
        raise UserError(f"{path} is not a SentencePiece model, or is damaged: copy it again.") from None
    return processor


def pieces_of(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    """The names of a SentencePiece model's subwords by their ids."""
    return [str(processor.id_to_piece(number)) for number in range(processor.get_piece_size())]


class Vocabulary:
    """A trained SentencePiece model.

    A framed one is for examples: a line of one sentence, or of two with a tab between them, is encoded with BOS at its
    start and EOS after each sentence.

    For an imported one, the file beside it gives the number of `subwords` that the translation model knows. A subword
    of a text gets the id of the known one with the same written form, and is unknown if there is none. Each sentence
    may begin with a `prefix`, such as the language to translate into, and end with a `suffix` before EOS. Sentences are
    split at the subwords that the regular expression `added` finds, which are not SentencePiece's.
    """

    def __init__(self, model: Path, stored: Stored | None = None) -> None:
        """model: its file, or what it is called in messages if it is `stored` in memory."""
        self.path = model
        self.stored = stored or stored_at(model)
        self.processor = sentencepiece.SentencePieceProcessor()
        facts = self.stored.facts
        try:
            self.processor.load_from_serialized_proto(self.stored.content)
            self.size = int(facts.get(ROWS, self.processor.get_piece_size()))
            self.framed = bool(facts.get(FRAMED))
            self.prefix, self.suffix = ([int(number) for number in facts.get(end, [])] for end in (PREFIX, SUFFIX))
            self.added = re.compile(facts[ADDED]) if ADDED in facts else None
            written = range(UNK + 1, self.size) if ROWS in facts else ()
            self.written = {self.subword(number): number for number in written}
        except (RuntimeError, LookupError, TypeError, ValueError) as error:
            raise UserError(
                f"{model} is not a SentencePiece model, or it or {facts_beside(model).name} beside it is damaged: "
                "delete both and run the bpe stage again."
            ) from error

    def __len__(self) -> int:
        return self.size

    def encode(self, sentences: Iterable[str]) -> list[list[int]]:
        """Subword ids of each sentence without BOS and EOS or, if framed, of each example with them."""
        if self.framed:
            examples = [line.split("\t") for line in sentences]
            ids = iter(self._plain(chain.from_iterable(examples)))
            return [[BOS, *chain.from_iterable([*next(ids), EOS] for _ in example)] for example in examples]
        return self._plain(sentences)

    def _plain(self, sentences: Iterable[str]) -> list[list[int]]:
        if self.added:
            return [self._known(self._cut(sentence)[0]) for sentence in sentences]
        if self.written:
            return [self._known(subwords) for subwords in self.processor.encode(list(sentences), out_type=str)]
        ids: list[list[int]] = self.processor.encode(list(sentences), out_type=int)
        return ids

    def _known(self, subwords: list[str]) -> list[int]:
        """Ids of the prefix, of the subwords of a sentence and of the suffix, for an imported vocabulary."""
        return [*self.prefix, *(self.written.get(subword, UNK) for subword in subwords), *self.suffix]

    def arrays(self, sentences: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Concatenated subword ids of all sentences, and the number of subwords of each."""
        encoded = self.encode(sentences)
        lengths = np.array([len(ids) for ids in encoded], OFFSET)
        return np.fromiter(chain.from_iterable(encoded), ID, int(lengths.sum())), lengths

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of each sequence of subword ids, without padding, start and end."""
        return [str(self.processor.decode([int(i) for i in sequence])) for sequence in ids]

    def subword(self, index: int) -> str:
        """The written form of one subword."""
        return str(self.processor.id_to_piece(index))

    def subwords(self, ids: Iterable[int]) -> list[str]:
        """The text of each subword; a blank before it is shown as U+2581."""
        return [self.subword(int(number)) for number in ids]

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        """Subword ids of a sentence, and the characters each covers (blanks before a word belong to its subword).

        Prefix and suffix cover no characters.
        """
        if not self.written:
            mapping = self.processor.encode(sentence, out_type="offset_mapping")
            return list(mapping["ids"]), [(start, end) for start, end in mapping["offsets"]]
        subwords, spans = self._cut(sentence)
        return self._known(subwords), [(0, 0)] * len(self.prefix) + spans + [(0, 0)] * len(self.suffix)

    def _cut(self, sentence: str) -> tuple[list[str], list[Span]]:
        """The subwords of a sentence as they are written, and the characters each covers."""
        subwords: list[str] = []
        spans: list[Span] = []
        for start, part, added in parts_of(sentence, self.added):
            if added:
                subwords, spans = [*subwords, part], [*spans, (start, start + len(part))]
                continue
            mapping = self.processor.encode(part, out_type="offset_mapping")
            subwords += mapping["pieces"]
            spans += [(start + first, start + last) for first, last in mapping["offsets"]]
        return subwords, spans


def membership(subwords: Sequence[Span], words: Sequence[Span]) -> NDArray[np.float64]:
    """The share of each subword that belongs to each word, by overlapping characters, as a matrix [W, P].

    A column sums to one if its subword overlaps any word (else to zero), so attention to words, the sum over their
    subwords, remains a distribution even if one subword spans two words.
    """
    starts, ends = np.array(subwords, dtype=float).reshape(-1, 2).T
    word_starts, word_ends = np.array(words, dtype=float).reshape(-1, 2).T
    overlap = np.minimum(ends, word_ends[:, None]) - np.maximum(starts, word_starts[:, None])
    overlap = overlap.clip(min=0)
    total = overlap.sum(0)
    return np.asarray(np.divide(overlap, total, out=np.zeros_like(overlap), where=total > 0))


def batched_lines(text: Path) -> Iterator[list[str]]:
    """The lines of a text, BATCH_LINES at a time."""
    with open_text(text) as stream:
        yield from chunks((line.rstrip("\n") for line in stream), BATCH_LINES)


class Tokens:
    """The encoded sentences of one side of a split, memory-mapped if read from a file."""

    @classmethod
    def of(cls, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Tokens:
        """Encoded sentences in memory. ids: of all sentences, concatenated. lengths: ids of each."""
        tokens = cls.__new__(cls)
        tokens.ids, tokens.lengths = ids, lengths.astype(np.int32)
        tokens.offsets = np.concatenate([[0], np.cumsum(lengths)])
        return tokens

    def __init__(self, path: Path) -> None:
        """Raise UserError for a file that is missing or damaged."""
        try:
            whole = np.asarray(np.memmap(path, np.uint8, "r"))
            size = int.from_bytes(whole[:8].tobytes(), "little")
            entries, data = json.loads(whole[8 : 8 + size].tobytes()), whole[8 + size :]
            self.ids: NDArray[np.int32] = _part(data, entries["ids"], ID)
            self.offsets: NDArray[np.int64] = _part(data, entries["offsets"], OFFSET)
            self._check(path, len(whole) - len(data), entries)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UserError(f"{path} is damaged or missing: delete it and run the encode stage again.") from error
        self.lengths: NDArray[np.int32] = np.diff(self.offsets).astype(np.int32)
        """Number of subwords of every sentence."""

    def _check(self, path: Path, start: int, entries: Mapping[str, Any]) -> None:
        """Raise ValueError if the data is not what was written; read in blocks, so that none of it stays in memory."""
        if self.offsets[-1] != len(self.ids):
            raise ValueError(f"{len(self.ids)} subwords, not {self.offsets[-1]}")
        # Other writers of the format leave no checksum.
        if "__metadata__" in entries:
            with path.open("rb") as stream:
                stream.seek(start)
                verified(entries["__metadata__"], blocks(stream))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


def _part(data: NDArray[np.uint8], entry: Mapping[str, Any], kind: str) -> NDArray[Any]:
    """A vector of a safetensors file, as a view into its data."""
    start, end = entry["data_offsets"]
    if entry["dtype"] != KINDS[kind] or entry["shape"] != [(end - start) // np.dtype(kind).itemsize]:
        raise ValueError(f"{entry['dtype']} of shape {entry['shape']}")
    return data[start:end].view(kind)
