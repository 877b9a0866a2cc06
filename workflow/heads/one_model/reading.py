"""The text that one model is measured on: its lines, their references, and which of them can be measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heads.base.files import UserError, normalised, read_lines, read_references
from heads.model.shape import ModelShape
from heads.one_model.text import Text
from heads.text.encoding import Encodes
from heads.text.vocabulary import Vocabulary


def read_text(text: Path, references: Path | None, most: int) -> tuple[list[str], list[str] | None]:
    """The first `most` lines of a text, and their references, if there are any.

    Raises UserError if the files have different numbers of lines, or all references are empty.
    """
    lines = read_lines(text)
    if references is None:
        return lines[:most], None
    return lines[:most], read_references(references, str(text), len(lines))[:most]


def readable(text: Text, source: Vocabulary, target: Encodes, shape: ModelShape) -> tuple[Text, str]:
    """The lines of a text that have words and are short enough, each with its reference, and how many are left out.

    Lines are normalised as translated text is. `shown` becomes numbers among the lines that are left. Raises UserError
    if none is, or if a line to be shown is not among them.
    """
    lines = [normalised(line, pairs=shape.encoder_only) for line in text.sentences]
    reasons = unreadable(lines, source, shape, text.max_subwords)
    if text.references is not None and isinstance(target, Vocabulary):
        most = min(text.max_subwords + len(target.prefix), shape.longest - 1)
        for number, ids in enumerate(target.encode(text.references)):
            reasons[number] = reasons[number] or (LONG_REFERENCE if len(ids) > most else "")
    kept = [number for number, reason in enumerate(reasons) if not reason]
    counts = ", ".join(f"{reasons.count(why)} {why}" for why in (NO_WORDS, TOO_LONG, LONG_REFERENCE) if why in reasons)
    counts = counts.format(most=text.max_subwords)
    if not kept:
        raise UserError(f"None of the {len(lines)} lines can be measured: {counts}. Give other lines.")
    for number in text.shown:
        if not 1 <= number <= len(lines):
            raise UserError(f"There is no sentence {number} to show: give numbers from 1 to {len(lines)}.")
        if reason := reasons[number - 1].format(most=text.max_subwords):
            raise UserError(f"Sentence {number} cannot be shown, as it is one {reason}: give other numbers.")
    found = replace(
        text,
        sentences=[lines[number] for number in kept],
        references=None if text.references is None else [text.references[number] for number in kept],
        shown=[kept.index(number - 1) + 1 for number in text.shown],
    )
    left_out = f"{len(lines) - len(kept)} of {len(lines)} lines are left out: {counts}." if counts else ""
    return found, left_out


def unreadable(lines: Sequence[str], source: Vocabulary, shape: ModelShape, most: int) -> list[str]:
    """Why a model does not read each line: it has no subwords, or more than `most` or than the model has positions.

    Empty for lines that it reads.
    """
    reasons = []
    for line, ids in zip(lines, source.encode(lines), strict=True):
        frame = 1 + len(line.split("\t")) if source.framed else len(source.prefix) + len(source.suffix)
        own, room = len(ids) - frame, shape.longest - (0 if source.framed else 1)
        reasons.append(NO_WORDS if own <= 0 else TOO_LONG if own > most or len(ids) > room else "")
    return reasons


NO_WORDS, TOO_LONG = "without words", "with more than {most} subwords"
LONG_REFERENCE = "with a reference of more than {most} subwords"
"""Why lines are left out."""
