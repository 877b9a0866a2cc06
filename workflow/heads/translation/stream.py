"""Translate a stream of text: lines in, their translations out, in the same order and in bounded memory."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from heads.base.files import FIRST_BYTES, UserError, no_text, normalise
from heads.base.scripts import is_unspaced
from heads.model.transformer import Transformer
from heads.text.batches import batched, pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import LENGTH_OFFSET, NEVER, Candidates, beam_search

Report = Callable[[str], None]
"""Called with a progress message of one sentence for the user."""

WORD_START = "\u2581"
"""SentencePiece's mark for a space before a subword."""


class Shortlists(Protocol):
    """What knows likely target subwords for source sentences, such as `heads.interop.firefox.shortlists`."""

    def of(self, source: Tensor, device: torch.device) -> Candidates:
        """The candidates, on a device, of source sentences [B, S], which are on the CPU."""
        ...


@dataclass(frozen=True, slots=True)
class Translator:
    """A model on `device` with its vocabularies and search settings."""

    model: Transformer
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    beam: int
    length_penalty: float
    batch_tokens: int
    max_subwords: int
    length_offset: int = LENGTH_OFFSET
    early_stopping: bool | str = NEVER
    shortlist: Shortlists | None = None
    """If the model came with one, its translations are made of it, as Marian's are."""

    def parts(self, ids: list[int]) -> list[list[int]]:
        """A sentence of subword ids as parts of similar length, at most `max_subwords`, cut before words.

        Each part has the sentence's prefix and suffix. They and EOS do not count, except towards the model's positions.
        """
        prefix, suffix = self.source.prefix, self.source.suffix
        found, rest = [], ids[len(prefix) : len(ids) - len(suffix)]
        most = min(self.max_subwords, self.model.shape.longest - len(prefix) - len(suffix) - 1)
        while len(rest) > most:
            size = math.ceil(len(rest) / math.ceil(len(rest) / most))
            starts = (i for i in range(size, 0, -1) if self.source.subwords([rest[i]])[0].startswith(WORD_START))
            size = next(starts, size)
            found.append([*prefix, *rest[:size], *suffix])
            rest = rest[size:]
        return [*found, [*prefix, *rest, *suffix]] if rest else []

    def translate(self, sentences: list[list[list[int]]]) -> list[str]:
        """Plain-text translation of each sentence, given as its parts; a sentence without parts gives an empty text."""
        parts = [np.array(part, np.int32) for sentence in sentences for part in sentence]
        lengths = np.array([len(part) for part in parts], np.int64)
        texts = [""] * len(parts)
        for members in batched(np.argsort(lengths, kind="stable"), lengths, self.batch_tokens):
            source, mask = pad([np.append(parts[i], EOS) for i in members])
            ids = beam_search(
                self.model,
                source.to(self.device),
                mask.to(self.device),
                beam=self.beam,
                length_penalty=self.length_penalty,
                length_offset=self.length_offset,
                early_stopping=self.early_stopping,
                candidates=self.shortlist.of(source, self.device) if self.shortlist else None,
            )
            for member, text in zip(members, self.target.decode(ids), strict=True):
                texts[member] = text
        ready = iter(texts)
        return [joined(list(islice(ready, len(sentence)))) for sentence in sentences]


def joined(parts: Sequence[str]) -> str:
    """The translations of a sentence's parts as one text, with blanks between them if its script has any."""
    return ("" if is_unspaced("".join(parts)) else " ").join(parts)


def translated(
    lines: Iterable[str], translator: Translator, *, block_lines: int, report: Report
) -> Iterator[list[str]]:
    """Translations of `lines`, one list per `block_lines` of them; lines that are split are reported."""
    waiting, first = iter(lines), 1
    while block := list(islice(waiting, block_lines)):
        sentences = [translator.parts(ids) for ids in translator.source.encode(block)]
        for number, parts in enumerate(sentences, first):
            if len(parts) > 1:
                subwords = sum(len(part) for part in parts)
                report(
                    f"line {number} has {subwords} subwords and is translated in {len(parts)} parts, see --max-subwords"
                )
        yield translator.translate(sentences)
        first += len(block)


def plain_lines(stream: Iterable[bytes], report: Report) -> Iterator[str]:
    """Lines of a UTF-8 stream, normalised as the corpora are; bytes that are not UTF-8 become U+FFFD.

    Only a line feed ends a line, so that no other Unicode character can change the number of lines. Raises UserError if
    the stream begins like packed text or text in UTF-16.
    """
    for number, raw in enumerate(stream, 1):
        if number == 1 and (why := no_text(raw[:FIRST_BYTES])):
            raise UserError(f"The standard input {why}")
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            report(f"line {number} is not UTF-8: what cannot be read is passed to the model as an unknown subword")
            line = raw.decode("utf-8", errors="replace")
        yield normalise(line)
