"""The papers' own numbers against their claims, with intervals as wide as ours, and claims about one corpus."""

from pathlib import Path

import pandas as pd
import pytest

from fake_results import World, table_of, write_results
from heads.__main__ import main
from heads.tables.catalogue import TABLES
from heads.tables.claims import stated
from heads.tables.reading import load_reference
from heads.tables.verdicts import Finding, holds

PAPERS = pd.concat([load_reference(name) for name in TABLES["claims"].need.reference]).fillna({"corpus": ""})
DECIDED = stated(*map(load_reference, TABLES["claims"].need.reference)).assign(file=PAPERS["margin"].to_numpy())
WITH_MARGIN = {
    *("rarest", "two_rarest", "two_rarest_wmt"),
    *("encoder_10_of_48", "encoder_10_of_48_control", "encoder_5_of_48", "encoder_4_of_48", "all_58_of_144"),
}
HALF, MEASURED_ON = {"BLEU": 0.53, "share": 0.013}, {"BLEU": 400, "share": 2001}
"""The widest half interval of a change of BLEU, and of a share of rare words, in two runs on news, and the number of
sentences each was measured on."""
BLEU = {"scratch_gain", "penalty_from_scratch", "encoder_from_scratch", "three_quarters_of_encoder", "all_75_of_144"}


def told(row: dict[str, object], sentences: int) -> Finding:
    """The paper's number as a finding on the given number of sentences: four times as many halve the interval."""
    identity, ours = str(row["id"]), float(str(row["paper"]))
    kind = "share" if "rarest" in identity else "BLEU" if identity in BLEU | WITH_MARGIN else ""
    half = HALF[kind] * (MEASURED_ON[kind] / sentences) ** 0.5 if kind else 0.0
    return Finding(ours, float(str(row["paper_of"])), low=ours - half, high=ours + half)


def answer(row: dict[str, object], finding: Finding) -> str:
    return holds(finding, str(row["condition"]), float(str(row["limit"])))


@pytest.mark.parametrize("claim", DECIDED.dropna(subset="paper").to_dict("records"), ids=lambda row: row["id"])
def test_a_paper_meets_its_own_claim_and_is_never_told_no_however_few_sentences(claim: dict[str, object]) -> None:
    assert answer(claim, Finding(float(str(claim["paper"])), float(str(claim["paper_of"])))) == "yes"
    for sentences in (400, 500, 1000, 3000):
        assert answer(claim, told(claim, sentences)) in ("yes", "unclear")
    if claim["id"] in WITH_MARGIN:
        assert answer(claim, told(claim, 3000)) == "yes", "a test set as large as the paper's"


def test_a_margin_is_on_the_worse_side_of_the_limit_and_the_measure_says_it() -> None:
    assert {*PAPERS[PAPERS["margin"] > 0]["id"]} == WITH_MARGIN
    for before, row in zip(PAPERS.to_dict("records"), DECIDED.to_dict("records"), strict=True):
        margin = 0.0 if pd.isna(before["margin"]) else before["margin"]
        assert row["margin"] == margin
        if before["id"] in WITH_MARGIN:
            assert row["limit"] == pytest.approx(before["limit"] - margin) and row["condition"] == "at least"
            assert row["measure"].endswith(f"; our margin {margin}")
        else:
            assert row["limit"] == before["limit"] or pd.isna(before["limit"])
    upper = load_reference("voita_claims.csv").query("condition == 'at most'").assign(margin=0.5)
    assert (stated(upper)["limit"] == upper["limit"].to_numpy() + 0.5).all() and len(upper) > 1


def test_a_loss_that_is_half_a_point_worse_than_the_papers_is_still_a_no() -> None:
    for row in DECIDED[DECIDED["id"].isin(WITH_MARGIN) & DECIDED["paper"].notna()].to_dict("records"):
        worse = told({**row, "paper": row["paper"] - 0.5}, 3000)
        assert answer(row, worse) == "no", row["id"]


@pytest.mark.slow
def test_numbers_of_a_corpus_are_held_against_experiments_that_are_compared_with_it(tmp_path: Path) -> None:
    """On one of the paper's two corpora two kinds are nearly equal, on the other two others."""
    runs = write_results(tmp_path / "news", World(layers=2, heads=3, lams=("0.1",)))
    runs += write_results(tmp_path / "films", World(layers=2, heads=3, lams=("0.1",)))
    rows = table_of("claims", runs, "--compared-with", "films=OpenSubtitles")
    ours = {(row["experiment"], row["claim"], row["measure"]): row["ours"] for row in rows}
    corpora = {"news": "WMT", "films": "OpenSubtitles"}
    asked = set()
    for row in DECIDED[DECIDED["metric"] == "bleu"].to_dict("records"):
        for experiment, corpus in corpora.items():
            found = ours[experiment, row["claim"], row["measure"]]
            if row["corpus"] not in ("", corpus):
                assert found == "", row["id"]
            elif found:
                asked.add((row["id"], experiment))
    assert {("two_rarest_wmt", "news"), ("two_rarest", "films"), ("rarest", "films"), ("self_near_source", "news"),
            ("self_near_encoder", "films"), ("self_over_encoder", "films")} <= asked  # fmt: skip
    assert {
        row["ours"] for row in table_of("claims", runs) if row["measure"].startswith("share in which the best")
    } == {""}


def test_the_corpus_of_a_claim_is_the_one_that_its_number_was_read_on() -> None:
    for row in PAPERS[PAPERS["corpus"] != ""].dropna(subset="paper").to_dict("records"):
        assert row["corpus"] in row["source"], row["id"]
    pairs = PAPERS.set_index("id")["corpus"]
    assert {*pairs[["encoder_10_of_48", "encoder_5_of_48", "all_75_of_144", "all_58_of_144"]]} == {"WMT"}
    assert pairs["encoder_4_of_48"] == "OpenSubtitles"


def test_a_corpus_that_the_paper_does_not_have_is_a_fault_of_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["table", "--name", "claims", "--compared-with", "films=Films", "--out", "t.tsv"])
    assert "'films=Films' is not EXPERIMENT=CORPUS, with WMT or OpenSubtitles" in capsys.readouterr().err


def test_what_is_claimed_is_counted_by_whose_it_is() -> None:
    assert PAPERS["study"].value_counts().to_dict() == {
        "Voita et al. 2019": 39, "Michel et al. 2019": 15, "Michel et al. 2019, BERT": 7,
        "Garg et al. 2019": 3, "ours": 2}  # fmt: skip
    ours = PAPERS[PAPERS["study"] == "ours"]
    assert {*ours["id"]} == {"encoder_10_of_48_control", "all_75_of_144_control"}
    assert ours["paper"].isna().all() and set(ours["source"]) == {"no such control"}
    surnames = PAPERS["study"].str.partition(" et al.")[0]
    assert all(a in b for a, b in zip(surnames, PAPERS["source"], strict=True) if a != "ours")
