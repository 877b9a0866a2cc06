"""The scoreboard: a row a claim with each experiment's findings, and how verdicts depend on readings of relevance."""

from typing import Any

import pandas as pd
import pytest

from fake_results import World, table_of, write_results
from heads.figures.scoreboard import LOOKS, figure_of
from heads.tables.catalogue import TABLES
from heads.tables.claims import FOUND, board_of, stated, with_other_readings
from heads.tables.claims_heads import RELEVANCE_CLAIMS
from heads.tables.labels import is_shown, side_by_side
from heads.tables.reading import load_reference

SEVERAL, ONE = "regains", "demo"
"""Experiments with two seeds and one; a word in the first one's name asks for other decimals if it stands alone."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """The rows of both tables of claims, of both experiments."""
    folder = tmp_path_factory.mktemp("results")
    runs = write_results(folder / SEVERAL, World(layers=2, heads=3, lams=("0.1",), seeds=(1, 2)))
    runs += write_results(folder / ONE, World(layers=2, heads=3, lams=("0.01",), trees=False))
    return {name: table_of(name, runs) for name in ("claims", "scoreboard")}


def test_the_scoreboard_has_a_row_a_claim_and_the_papers_number_before_ours(
    tables: dict[str, list[dict[str, str]]],
) -> None:
    board, papers = tables["scoreboard"], stated(*map(load_reference, TABLES["scoreboard"].need.reference))
    papers = papers[papers["metric"] == "bleu"]
    assert [row["measure"] for row in board] == papers["measure"].tolist() and len(board) > 50
    for row, paper in zip(board, papers.to_dict("records"), strict=True):
        words = ("study", "topic", "name", "claim", "source", "tag")
        assert [row[name] for name in words] == [paper[name] for name in words]
        assert row["rule"] == ("plain, signed by step" if paper["id"] in RELEVANCE_CLAIMS else "")
        assert row["holds_if"] == paper["condition"]
        numbers = {name: float(row[name]) if row[name] else float("nan") for name in ("paper", "paper_of", "limit")}
        assert numbers == pytest.approx({name: paper[name] for name in numbers}, abs=5e-5, nan_ok=True), row["name"]
    ours = [name for name in board[0] if name.endswith((SEVERAL, ONE))]
    assert ours == [f"{what}_{name}" for name in (SEVERAL, ONE) for what in FOUND.values()]
    assert list(board[0])[-12:] == ["paper", "paper_of", *ours]


def test_each_experiment_has_its_own_number_and_verdict_and_of_several_seeds_those_of_their_mean(
    tables: dict[str, list[dict[str, str]]],
) -> None:
    keys = ("claim", "measure", "rule")
    claims = {(row["experiment"], row["seed"], *(row[key] for key in keys)): row for row in tables["claims"]}
    differ = 0
    for row in tables["scoreboard"]:
        for experiment, seed in ((SEVERAL, "mean"), (ONE, "1")):
            own = claims[experiment, seed, *(row[key] for key in keys)]
            found = [row[f"{what}_{experiment}"] for what in FOUND.values()]
            assert found == [own[name] for name in FOUND], (experiment, row["name"])
        differ += row[f"ours_{SEVERAL}"] != claims[SEVERAL, "1", *(row[key] for key in keys)]["ours"]
    assert differ > 15


def test_seeds_that_count_out_of_different_numbers_have_a_mean_that_is_out_of_none() -> None:
    """Found when two seeds had a function for different numbers of relations: the figure used None as a number."""
    paper = load_reference("alignment_claims.csv").iloc[:1]
    row = {"experiment": "x", "metric": "bleu", **paper[["claim", "measure"]].iloc[0], "rule": ""}
    row |= {"other_readings": "", "relative_percent": None}
    rows = [(1, 0.0, 3, "no"), (2, 1.0, 4, "yes"), ("mean", 0.5, None, "unclear"), ("sd", 0.7, None, None)]
    found = pd.DataFrame(
        [{**row, **dict(zip(("seed", "ours", "of", "holds"), each, strict=True))} for each in rows], dtype=object
    )
    (cells,) = board_of(found, paper).to_dict("records")
    assert figure_of(cells["ours_x"], cells["of_x"]) == "0.50"
    assert cells["verdict_x"] == "unclear"


def test_relevance_by_other_rules_than_the_papers_is_not_measured_and_the_picture_says_so(
    tables: dict[str, list[dict[str, str]]],
) -> None:
    found = pd.DataFrame(tables["claims"])
    lacking = (found["experiment"] == ONE) & found["rule"].str.startswith("plain")
    assert lacking.any()
    board = board_of(found[~lacking], *map(load_reference, TABLES["scoreboard"].need.reference))
    about = board["rule"] != ""
    assert (board.loc[about, f"verdict_{ONE}"] == "").all() and board.loc[about, f"ours_{ONE}"].isna().all()
    assert (board.loc[about, f"verdict_{SEVERAL}"] != "").any() and (board.loc[~about, f"verdict_{ONE}"] != "").any()
    assert set(board[f"verdict_{ONE}"]) <= {*LOOKS}


def test_names_for_a_picture_are_short_and_tell_rows_apart_together_with_the_measure() -> None:
    papers = pd.concat([load_reference(name) for name in TABLES["scoreboard"].need.reference])
    assert papers["name"].str.len().between(5, 58).all() and papers["topic"].str.len().between(5, 52).all()
    # Rows of a topic are adjacent, so that a figure can name it once.
    topics = papers["study"] + papers["topic"]
    assert (topics != topics.shift()).sum() == topics.nunique() == 16
    assert papers.groupby(topics).size().min() >= 2


WRITTEN, OF_SUMS, ABSOLUTE = "plain, signed by step", "plain, signed of sums", "plain, absolute"
POSITIVE, OTHER = "z-plus, signed by step", "attnlrp, absolute"
TWO = load_reference("voita_claims.csv").set_index("id", drop=False).loc[["relevance_confidence", "rare_heads"]]
RELEVANCE, RARE = ({"claim": row["claim"], "measure": row["measure"]} for row in TWO.to_dict("records"))


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
    relevance, rare = board_of(found, TWO.reset_index(drop=True)).to_dict("records")
    assert (relevance["rule"], rare["rule"]) == (WRITTEN, "")
    assert (relevance["ours_x"], relevance["verdict_x"]) == (0.0, "no")
    assert relevance["other_readings_x"] == "absolute: yes, z-plus: yes"
    assert (relevance["verdict_y"], relevance["other_readings_y"]) == ("no", "")
    assert (rare["verdict_x"], rare["other_readings_x"], rare["other_readings_y"]) == ("yes", "", "")
