"""The scoreboard: one row per claim, each experiment's findings in its own columns, against the table of claims."""

from __future__ import annotations

import pandas as pd
import pytest

from fake_results import World, table_of, write_results
from heads.figures.scoreboard import LOOKS, figure_of
from heads.tables.claims import FOUND, board_of, stated
from heads.tables.claims_heads import RELEVANCE_CLAIMS
from heads.tables.needs import NEEDS
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
    board, papers = tables["scoreboard"], stated(*map(load_reference, NEEDS["scoreboard"].reference))
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
    board = board_of(found[~lacking], *map(load_reference, NEEDS["scoreboard"].reference))
    about = board["rule"] != ""
    assert (board.loc[about, f"verdict_{ONE}"] == "").all() and board.loc[about, f"ours_{ONE}"].isna().all()
    assert (board.loc[about, f"verdict_{SEVERAL}"] != "").any() and (board.loc[~about, f"verdict_{ONE}"] != "").any()
    assert set(board[f"verdict_{ONE}"]) <= {*LOOKS}


def test_names_for_a_picture_are_short_and_tell_rows_apart_together_with_the_measure() -> None:
    papers = pd.concat([load_reference(name) for name in NEEDS["scoreboard"].reference])
    assert papers["name"].str.len().between(5, 58).all() and papers["topic"].str.len().between(5, 52).all()
    # Rows of a topic are adjacent, so that a figure can name it once.
    topics = papers["study"] + papers["topic"]
    assert (topics != topics.shift()).sum() == topics.nunique() == 16
    assert papers.groupby(topics).size().min() >= 2
