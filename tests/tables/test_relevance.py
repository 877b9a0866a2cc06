"""Readings of relevance: which one decides a claim, and how a verdict says that it depends on the reading."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from heads.tables.claims import board_of, with_other_readings
from heads.tables.labels import is_shown, side_by_side
from heads.tables.reading import load_reference

WRITTEN, OF_SUMS, ABSOLUTE = "plain, signed by step", "plain, signed of sums", "plain, absolute"
POSITIVE, OTHER = "z-plus, signed by step", "attnlrp, absolute"
PAPER = load_reference("voita_claims.csv").set_index("id", drop=False).loc[["relevance_confidence", "rare_heads"]]
RELEVANCE, RARE = ({"claim": row["claim"], "measure": row["measure"]} for row in PAPER.to_dict("records"))


def claims(*told: tuple[str, object, str, str | None], about: dict[str, str] = RELEVANCE) -> list[dict[str, Any]]:
    """Rows of experiment, seed, reading and verdict, all of one claim, each with its own number."""
    names = ("experiment", "seed", "rule", "holds")
    return [
        {**dict(zip(names, row, strict=True)), **about, "ours": float(number), "of": float("nan"), "source": ""}
        for number, row in enumerate(told)
    ]


def notes(rows: list[dict[str, Any]]) -> dict[tuple[object, object, str, str], str]:
    """The other readings noted beside each verdict."""
    table = with_other_readings(pd.DataFrame(rows))
    assert list(table.columns) == [*list(rows[0])[:4], "other_readings", *list(rows[0])[4:]]
    keys = table[["experiment", "seed", "measure", "rule"]].itertuples(index=False, name=None)
    return dict(zip(keys, table["other_readings"], strict=True))


def test_the_verdict_by_the_paper_as_written_says_which_other_readings_say_otherwise_and_no_other_row_does() -> None:
    rows = claims(
        *(("x", 1, reading, verdict) for reading, verdict in
          ((POSITIVE, "unclear"), (OTHER, "no"), (ABSOLUTE, "yes"), (OF_SUMS, "no"), (WRITTEN, "no"))),
        *(("x", 2, reading, "yes") for reading in (POSITIVE, OTHER, ABSOLUTE, OF_SUMS, WRITTEN)),
        *(("x", "mean", reading, verdict) for reading, verdict in
          ((POSITIVE, ""), (OTHER, "no"), (ABSOLUTE, "yes"), (OF_SUMS, "unclear"), (WRITTEN, "yes"))),
        *(("x", "sd", reading, None) for reading in (POSITIVE, OTHER, ABSOLUTE, OF_SUMS, WRITTEN)),
    )  # fmt: skip
    found = notes([*rows, *claims(("x", 1, "", "no"), about=RARE)])
    assert {place[1]: note for place, note in found.items() if note} == {
        1: "absolute: yes, z-plus: unclear",
        "mean": "signed of sums: unclear, z-plus: not measured",
    }
    assert {place[3] for place, note in found.items() if note} == {WRITTEN}


def test_an_experiment_that_did_not_measure_a_reading_says_nothing_of_it() -> None:
    rows = claims(("x", 1, WRITTEN, "no"), ("x", 1, POSITIVE, "yes"), ("y", 1, WRITTEN, "no"))
    assert list(notes(rows).values()) == ["z-plus: yes", "", ""]


def test_claims_of_which_none_is_about_relevance_have_no_other_reading() -> None:
    assert list(notes(claims(("x", 1, "", "no"), about=RARE)).values()) == [""]


def test_the_paper_as_written_decides_wherever_it_stands_among_the_rules() -> None:
    every = [f"{rule}, {share}" for rule in ("z-plus", "attnlrp", "plain")
             for share in ("signed by step", "signed of sums", "absolute")]  # fmt: skip
    assert side_by_side(every) == [WRITTEN, OF_SUMS, ABSOLUTE, POSITIVE]
    assert side_by_side([OTHER, POSITIVE]) == [POSITIVE]
    assert side_by_side([OTHER, OTHER, "alpha-beta, absolute"]) == [OTHER]
    assert side_by_side([]) == []


def test_pictures_show_all_shares_of_the_papers_rule_and_absolute_ones_of_others() -> None:
    assert all(is_shown(reading) for reading in (WRITTEN, OF_SUMS, ABSOLUTE, OTHER, "plain-product, absolute"))
    assert not any(is_shown(reading) for reading in (POSITIVE, "plain-product, signed by step"))


@pytest.mark.parametrize("order", [1, -1])
def test_the_scoreboard_has_the_verdict_of_the_paper_as_written_and_what_others_say(order: int) -> None:
    rows = claims(
        ("x", 1, WRITTEN, "no"), ("y", 1, WRITTEN, "no"), ("x", 1, ABSOLUTE, "yes"), ("x", 1, POSITIVE, "yes")
    )
    rows += claims(("x", 1, "", "yes"), about=RARE)
    found = with_other_readings(pd.DataFrame(rows[::order]))
    found = found.assign(relative_percent=None, metric="bleu")
    relevance, rare = board_of(found, PAPER.reset_index(drop=True)).to_dict("records")
    assert (relevance["rule"], rare["rule"]) == (WRITTEN, "")
    assert (relevance["ours_x"], relevance["verdict_x"]) == (0.0, "no")
    assert relevance["other_readings_x"] == "absolute: yes, z-plus: yes"
    assert (relevance["verdict_y"], relevance["other_readings_y"]) == ("no", "")
    assert (rare["verdict_x"], rare["other_readings_x"], rare["other_readings_y"]) == ("yes", "", "")
