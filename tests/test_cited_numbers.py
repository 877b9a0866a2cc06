"""The documented findings agree with the committed tables, and every number in them is cited."""

from __future__ import annotations

from pathlib import Path

import pytest

from cited_numbers import bare, cells, citations, is_equal, uncited

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
    with pytest.raises(ValueError, match="is no citation"):
        list(citations("<!-- cite\nx/t bleu 9.9\n-->"))


def test_a_number_without_a_citation_behind_its_block_is_found() -> None:
    text = "One 1.5 and 20 %.\n<!-- cite\nx/t a : 1.5\n-->\nTwo 1.5, `0.3`, [x](a-0.7.md), λ 0.03 and 0.01.\n"
    assert uncited(text, {"0.01"}) == ["20", "1.5"]
