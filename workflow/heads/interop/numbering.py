"""Our ids of another vocabulary's subwords: padding, BOS, EOS and the unknown subword first, nameless rows last."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base.files import UserError
from heads.text.special_ids import BOS, EOS, NAMELESS, PAD, UNK, named_first

NEVER_LIKELY = -100.0
"""Logit bias of a token that a model lacks: low enough for no probability, high enough for label smoothing."""
LANGUAGE = re.compile(">>.+<<")
"""A subword that names the target language."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """The other vocabulary's id for each of our ids, and the names of the subwords."""

    rows: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def nameless(self) -> int:
        """Number of rows without a subword, whose ids are the last."""
        return sum(NAMELESS.fullmatch(name) is not None for name in self.names[UNK + 1 :])

    @property
    def never(self) -> set[int]:
        """The other vocabulary's ids that our search never generates."""
        rows = self.rows
        return {rows[PAD], rows[UNK], rows[BOS], *rows[len(rows) - self.nameless :]} - {rows[EOS]}


def numbering(subwords: Sequence[str], *, pad: int, start: int, eos: int, unk: int) -> Numbering:
    """Our numbering of a vocabulary [V] with these special ids; it has V + 1 ids if the start is another of them."""
    others = [number for number in named_first(subwords) if number not in (pad, start, eos, unk)]
    rows = (pad, start, eos, unk, *others)
    names = [subwords[number] for number in rows]
    if start in (pad, eos, unk):
        names[BOS] = next(name for name in ("<s>", "<start>", "<start of target>") if name not in subwords)
    return Numbering(rows, tuple(names))


def language_prefix(vocabulary: Path, ours: Numbering, prefix: str) -> list[int]:
    """Our ids of the prefix of each source sentence: none, or one. vocabulary: the file that has it or not."""
    languages = [name for name in ours.names if LANGUAGE.fullmatch(name)]
    named = ", ".join(languages[:5])
    if prefix and prefix not in languages:
        known = f"choose one of {named}" if languages else "leave the prefix out"
        raise UserError(f"{vocabulary} has no prefix {prefix}: {known}.")
    if languages and not prefix:
        raise UserError(
            f"{vocabulary.parent} translates into several languages: give one as the prefix, such as {named}."
        )
    return [ours.names.index(prefix)] if prefix else []
