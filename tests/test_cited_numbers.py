"""The documented findings agree with the committed tables, and every number in them is cited.

A paragraph, list or table is followed by an HTML comment, invisible to readers, with a line for each citation:

    <!-- cite
    news-en-ru/table_pruning bleu_minus_control | kind=pruned scope=enc_self lam=0.005 seed=1,2 : -0.23 -0.07
    -->

This cites the rows of docs/measured/news-en-ru/tables/table_pruning.tsv in which `kind` is `pruned` and so on (a comma:
any of these, with the rows in that order; nothing after the equals sign: an empty cell), and their numbers, rounded to
as many decimals as are written. `column*100` is for a share that the text gives in percent, `a-b` for a difference.
A plus stands for a blank; stars and question marks are wildcards.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from heads.base.files import read_tsv

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "docs" / "measured"
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FINDINGS = [
    ("README.md", "## What came out", "## What else there is to see"),
    ("docs/results.md", "# What was found", ""),
]
"""Sections with findings, from one text to another, or to the end."""
CONSTANTS = {"0.01", "90 %", "95 %", "90", "95", "0.8", "0.25", "0.9", "100", "50"}
"""Thresholds and levels, which are in no table."""
ALWAYS_KEPT = ("table_measures.tsv", "table_claims.tsv", "table_corpus.tsv")
PAPERS = "reference"
"""Used instead of a folder of docs/measured: the papers' own numbers."""
REFERENCE = ROOT / "workflow/heads/tables" / PAPERS
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


def blocks(markdown: str) -> list[tuple[str, str]]:
    """Each text and the lines of the comment behind it; the last text has none. Raises ValueError for an open one."""
    found, text = [], markdown
    while "<!-- cite\n" in text:
        before, _, behind = text.partition("<!-- cite\n")
        lines, end, text = behind.partition("-->")
        if not end:
            raise ValueError(f"{lines[:40]!r} is a comment without an end")
        found.append((before, lines))
    return [*found, (text, "")]


def citations(markdown: str) -> Iterator[Citation]:
    """Every citation in a text. Raises ValueError for a line that is not a citation."""
    for text, lines in blocks(markdown):
        for line in lines.strip().splitlines():
            found = LINE.fullmatch(line.strip())
            if not found:
                raise ValueError(f"{line!r} is no citation")
            table, column, rows, values = found.groups()
            pairs = [word.partition("=") for word in rows.replace("|", "").split()]
            yield Citation(text, table, column, {key: value.split(",") for key, _, value in pairs}, values.split())


@cache
def table(named: str, measured: Path) -> list[dict[str, str]]:
    """The rows of a cited table."""
    folder, _, name = named.rpartition("/")
    if folder == PAPERS:
        with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    files = [measured / folder / f"{name}.tsv", measured / folder / "tables" / f"{name}.tsv"]
    return read_tsv(next(path for path in files if path.exists()))


def cells(citation: Citation, measured: Path) -> list[str]:
    """The cited cells, in order. Raises ValueError if their number differs from that of the values."""
    rows = table(citation.table, measured)
    places = [{key: place_of(row[key], values) for key, values in citation.rows.items()} for row in rows]
    chosen = [(list(place.values()), row) for place, row in zip(places, rows, strict=True) if -1 not in place.values()]
    rows = [row for _, row in sorted(chosen, key=lambda found: found[0])]
    if len(rows) != len(citation.values):
        raise ValueError(f"{citation.table} has {len(rows)} such rows, and not {len(citation.values)}: {citation.rows}")
    return [value_of(row, citation.column) for row in rows]


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
    found = []
    for text, lines in blocks(markdown):
        known = {bare(value) for line in lines.splitlines() for value in line.rpartition(" : ")[2].split()}
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)|λ [\d.]+", "", text)
        found += [number for number in NUMBER.findall(plain) if bare(number) not in known and number not in allowed]
    return found


def bare(number: str) -> str:
    """Strip the sign of a number."""
    return number.lstrip("-−+")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_cited_number_is_that_of_its_table_and_stands_in_the_text_before(path: Path) -> None:
    for citation in citations(path.read_text(encoding="utf-8")):
        found = cells(citation, MEASURED)
        wrong = [pair for pair in zip(citation.values, found, strict=True) if not is_equal(*pair)]
        assert not wrong, (citation.table, citation.column, citation.rows, wrong)
        text = citation.text.replace("−", "-")
        lacking = [value for value in citation.values if bare(value) not in text]
        assert not lacking, (citation.table, lacking)


def test_nothing_is_kept_that_no_page_points_to() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in TEXTS}
    cited = {citation.table for page in pages.values() for citation in citations(page)}
    kept = [*MEASURED.glob("*/tables/*.tsv"), *MEASURED.glob("*/figures/*.png")]
    assert len(kept) > 50
    for path in kept:
        folder = path.parents[1]
        named = path.stem in pages[folder / "README.md"] or any(
            f"{folder.name}/figures/{path.name}" in page for page in pages.values()
        )
        assert path.name in ALWAYS_KEPT or f"{folder.name}/{path.stem}" in cited or named, path


@pytest.mark.parametrize(("path", "first", "last"), FINDINGS)
def test_findings_have_no_number_that_is_not_cited(path: str, first: str, last: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    section = text[text.index(first) : text.index(last) if last else len(text)]
    assert sum(1 for _ in citations(section)) > 10
    assert uncited(section, CONSTANTS) == []


def write(folder: Path) -> None:
    (folder / "x" / "tables").mkdir(parents=True)
    (folder / "x" / "tables" / "t.tsv").write_text(
        "seed\tkind\tbleu\tshare\n1\ta\t9.876\t0.25\n2\ta\t-1.25\t\n1\tb\t3\t\n"
    )


@pytest.mark.parametrize(
    ("line", "equal"),
    [
        ("x/t bleu | kind=a seed=1,2 : 9.9 -1.2", True),
        ("x/t bleu | kind=a seed=2,1 : −1.25 9.88", True),
        ("x/t bleu | kind=a seed=1,2 : 9.8 -1.2", False),
        ("x/t bleu | kind=a seed=1,2 : 9.9 1.2", False),
        ("x/t share*100 | kind=a seed=1 : 25", True),
        ("x/t share*100 | kind=a seed=1 : 26", False),
        ("x/t bleu-share | kind=a seed=1 : 9.63", True),
    ],
)
def test_a_citation_is_held_against_its_cells_rounded_as_it_is_written(line: str, equal: bool, tmp_path: Path) -> None:  # noqa: FBT001
    write(tmp_path)
    (citation,) = citations(f"Some text.\n<!-- cite\n{line}\n-->")
    found = cells(citation, tmp_path)
    assert all(is_equal(*pair) for pair in zip(citation.values, found, strict=True)) == equal


def test_a_citation_of_rows_that_are_not_there_and_a_line_that_is_none_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (citation,) = citations("<!-- cite\nx/t bleu | kind=c : 9.9\n-->")
    with pytest.raises(ValueError, match="0 such rows"):
        cells(citation, tmp_path)
    for comment, told in (("<!-- cite\nx/t bleu 9.9\n-->", "is no citation"), ("<!-- cite\nx/t bleu : 9.9", "an end")):
        with pytest.raises(ValueError, match=told):
            list(citations(comment))


def test_a_number_without_a_citation_behind_its_block_is_found() -> None:
    text = "One 1.5 and 20 %.\n<!-- cite\nx/t a : 1.5\n-->\nTwo 1.5, `0.3`, [x](a-0.7.md), λ 0.03 and 0.01.\n"
    assert uncited(text, {"0.01"}) == ["20", "1.5"]


VERDICTS = {
    "holds": "yes",
    "does not": "no",
    "unclear": "unclear",
    "too few heads": "too few heads to tell",
    "not settled": "not settled",
    "not measured": "",
}
"""Verdicts of the scoreboard, by the words for them in texts."""


def verdicts(model: str) -> dict[str, int]:
    """How many claims have each verdict for a model."""
    found = [row[f"verdict_{model}"] for row in read_tsv(MEASURED / "scoreboard/table_scoreboard.tsv")]
    assert {*found} <= {*VERDICTS.values()}
    return {words: found.count(verdict) for words, verdict in VERDICTS.items()}


def test_verdicts_are_counted_as_the_scoreboard_gives_them() -> None:
    page = (MEASURED / "scoreboard/README.md").read_text(encoding="utf-8")
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")
    )
    assert head == ["model", *VERDICTS]
    columns = {*read_tsv(MEASURED / "scoreboard/table_scoreboard.tsv")[0]}
    assert {f"verdict_{model}" for model, *_ in rows} == {name for name in columns if name.startswith("verdict_")}
    for model, *counts in rows:
        assert dict(zip(VERDICTS, map(int, counts), strict=True)) == verdicts(model)


def test_readme_counts_the_verdicts_of_its_first_model() -> None:
    readme = " ".join(TEXTS[0].read_text(encoding="utf-8").split())
    said = re.search(
        r"(\d+) of the scoreboard's (\d+) claims hold, (\d+) do not, (\d+) are unclear or not settled "
        r"and (\d+) were not measured",
        readme,
    )
    assert said
    found = verdicts("paper-size-en-pt")
    unclear = found["unclear"] + found["too few heads"] + found["not settled"]
    counts = (found["holds"], sum(found.values()), found["does not"], unclear, found["not measured"])
    assert tuple(map(int, said.groups())) == counts
