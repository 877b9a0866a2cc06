"""Numbers in a Markdown text, and the cells of committed tables that they cite.

A paragraph, list or table is followed by an HTML comment, invisible to readers, with a line for each citation:

    <!-- cite
    news-en-ru/table_pruning bleu_minus_control | kind=pruned scope=enc_self lam=0.005 seed=1,2 : -0.23 -0.07
    -->

This cites the rows of docs/measured/news-en-ru/tables/table_pruning.tsv in which `kind` is `pruned` and so on (a comma:
any of these, with the rows in that order; nothing after the equals sign: an empty cell), and their numbers, rounded to
as many decimals as are written. `column*100` is for a share that the text gives in percent, `a-b` for a difference.
A plus stands for a blank; stars and question marks are wildcards.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from pathlib import Path

from heads.base.files import read_tsv

PAPERS = "reference"
"""Used instead of a folder of docs/measured: the papers' own numbers."""
REFERENCE = Path(__file__).parent.parent / "workflow/heads/tables" / PAPERS
BLOCK = re.compile(r"((?:(?!<!-- cite).)*?)<!-- cite\n(.*?)-->", re.DOTALL)
LINE = re.compile(r"(\S+) (\S+)((?: \|.*?)?) : (.+)")
NUMBER = re.compile(r"[-−+]?\d+\.\d+|[-−+]?\d+(?= ?%)")
"""Measurements in a text: numbers with a decimal point or before a percent sign."""


@dataclass(frozen=True)
class Citation:
    """One line of a comment, and the text before the comment."""

    text: str
    table: str
    column: str
    rows: dict[str, list[str]]
    values: list[str]


def citations(markdown: str) -> Iterator[Citation]:
    """Every citation in a text. Raises ValueError for a line that is not a citation."""
    for text, lines in BLOCK.findall(markdown):
        for line in lines.strip().splitlines():
            found = LINE.fullmatch(line.strip())
            if not found:
                raise ValueError(f"{line!r} is no citation")
            table, column, rows, values = found.groups()
            pairs = [word.partition("=") for word in rows.replace("|", "").split()]
            yield Citation(text, table, column, {key: value.split(",") for key, _, value in pairs}, values.split())


def cells(citation: Citation, measured: Path) -> list[str]:
    """The cited cells, in order. Raises ValueError if their number differs from that of the values."""
    folder, _, name = citation.table.rpartition("/")
    files = [measured / folder / f"{name}.tsv", measured / folder / "tables" / f"{name}.tsv"]
    rows = papers_rows(name) if folder == PAPERS else read_tsv(next(path for path in files if path.exists()))
    places = [{key: place_of(row[key], values) for key, values in citation.rows.items()} for row in rows]
    chosen = [(list(place.values()), row) for place, row in zip(places, rows, strict=True) if -1 not in place.values()]
    rows = [row for _, row in sorted(chosen, key=lambda found: found[0])]
    if len(rows) != len(citation.values):
        raise ValueError(f"{citation.table} has {len(rows)} such rows, and not {len(citation.values)}: {citation.rows}")
    return [value_of(row, citation.column) for row in rows]


def papers_rows(name: str) -> list[dict[str, str]]:
    """The papers' own numbers."""
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def place_of(cell: str, values: list[str]) -> int:
    """Index of the value that a cell matches, -1 if none."""
    plain = [value.replace("+", " ") for value in values]
    fits = [cell == value or (not {"*", "?"}.isdisjoint(value) and fnmatchcase(cell, value)) for value in plain]
    return fits.index(True) if True in fits else -1


def value_of(row: dict[str, str], column: str) -> str:
    """A cell, a multiple of a cell, or the difference of two."""
    one, minus, other = column.partition("-")
    name, times, factor = one.partition("*")
    if not (minus or times):
        return row[name]
    number = Decimal(row[name]) * (Decimal(factor) if times else 1)
    return str(number - Decimal(row[other]) if minus else number)


def is_equal(written: str, cell: str) -> bool:
    """Whether a cell, rounded to the decimals of the written number, equals it; halves may round either way."""
    plain = written.replace("−", "-").lstrip("+")
    try:
        number, wanted = Decimal(cell), Decimal(plain)
    except ArithmeticError:
        return written == cell
    step = Decimal(1).scaleb(wanted.as_tuple().exponent)  # type: ignore[arg-type]
    near = number.quantize(step, ROUND_HALF_EVEN)
    return near == wanted or abs(number - wanted) * 2 == step


def uncited(markdown: str, allowed: set[str]) -> list[str]:
    """Numbers in a text (`NUMBER`) that are neither cited after their block nor in `allowed`."""
    blocks = BLOCK.findall(markdown)
    rest = markdown[sum(len(match.group()) for match in BLOCK.finditer(markdown)) :] if blocks else markdown
    found = []
    for text, lines in [*blocks, (rest, "")]:
        known = {bare(value) for line in lines.splitlines() for value in line.rpartition(" : ")[2].split()}
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)|λ [\d.]+", "", text)
        found += [number for number in NUMBER.findall(plain) if bare(number) not in known and number not in allowed]
    return found


def bare(number: str) -> str:
    """Strip the sign of a number."""
    return number.lstrip("-−+")
