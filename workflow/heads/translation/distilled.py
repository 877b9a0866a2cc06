"""Training text that a model has translated: sequence-level distillation (Kim and Rush 2016, sec. 3.2).

Translations are written block by block to a file beside the text, so that a stopped run resumes.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from heads.base.files import UserError, normalised, write_lines
from heads.base.scripts import UNSPACED, script_of
from heads.text.vocabulary import Vocabulary
from heads.translation.stream import Report, Translator, translated

WORDS = (3, 60)
"""Minimum and maximum length of a source sentence, in what `distinct` counts."""
BLOCK_LINES = 1000


def drawn(lines: Iterable[str], number: int, after: int = 0, source: Vocabulary | None = None) -> list[str]:
    """So many `distinct` sentences of a text after the first `after`. Raises UserError if there are fewer."""
    clean, limits = distinct(lines, source)
    if len(clean) < after + number:
        raise UserError(
            f"there are only {len(clean)} distinct sentences of {limits} to translate, not {after + number}: ask for "
            "fewer, or give more text."
        )
    return clean[after : after + number]


def distinct(lines: Iterable[str], source: Vocabulary | None = None, *, pairs: bool = False) -> tuple[list[str], str]:
    """Distinct sentences of a text, neither too short nor too long, in an order that depends on them alone.

    Words are counted or, if the text has no blanks between words, letters for the minimum and, for the maximum,
    subwords of the `source` vocabulary. pairs: lines may have a tab between two sentences. Also says which limits these
    are.
    """
    found, (least, most) = {normalised(line, pairs=pairs) for line in lines}, WORDS
    if source is None or script_of(found) not in UNSPACED:
        clean, limits = [line for line in found if least <= len(line.split()) <= most], f"{least} to {most} words"
    else:
        long = [line for line in found if sum(map(str.isalpha, line)) >= least]
        clean = [line for line in long if _subwords(line, source) <= most]
        limits = f"{least} letters to {most} subwords"
    return sorted(clean, key=lambda line: hashlib.sha256(line.encode()).digest()), limits


def _subwords(line: str, source: Vocabulary) -> int:
    """Number of subwords that cover characters of a line: those of a prefix, such as a language, do not count."""
    return sum(end > start for start, end in source.spans(line)[1])


def write_distilled(sources: list[str], translator: Translator, source: Path, target: Path, report: Report) -> None:
    """Write the sentences that have a translation, and their translations, one per line."""
    unfinished = target.with_suffix(".unfinished")
    done = _done(unfinished)
    with unfinished.open("a", encoding="utf-8", newline="\n") as stream:
        for block in translated(iter(sources[len(done) :]), translator, block_lines=BLOCK_LINES, report=report):
            stream.write("".join(f"{line}\n" for line in block))
            stream.flush()
            done += block
            report(f"{len(done)} of {len(sources)} sentences")
    pairs = [(one, other) for one, other in zip(sources, done, strict=True) if other.strip()]
    write_lines(source, [one for one, _ in pairs])
    write_lines(target, [other for _, other in pairs])
    unfinished.unlink()


def _done(unfinished: Path) -> list[str]:
    """Translations of a stopped run in whole blocks; an incomplete block is translated again."""
    if not unfinished.exists():
        return []
    lines = unfinished.read_text(encoding="utf-8").split("\n")[:-1]
    whole = lines[: len(lines) // BLOCK_LINES * BLOCK_LINES]
    unfinished.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8", newline="\n")
    return whole
