"""Claims about losing little, for models with little to lose: those that always give one label or hardly translate."""

from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fake_labels import write_told
from fake_results import World, table_of, write_results
from heads.base.files import read_json, read_tsv, write_json, write_tsv
from heads.base.names import ACCURACY, BLEU
from heads.tables.catalogue import TABLES
from heads.tables.claims import too_weak
from heads.tables.gathering import table_of_runs
from heads.tables.reading import SCORED, load_reference
from heads.tables.verdicts import TOO_WEAK
from slow_ones import slow_but


def classifier(accuracy: float, majority: float, examples: int) -> dict[str, pd.DataFrame]:
    row = {"kind": "baseline", "metric": ACCURACY, "score": accuracy, "majority": majority, "sentences": examples}
    return {SCORED: pd.DataFrame([row, {**row, "kind": "pruned", "score": 0.0}])}


def translator(bleu: float, copied: float | None) -> dict[str, pd.DataFrame]:
    row = {"kind": "baseline", "metric": BLEU, "score": bleu, "copied_bleu": copied}
    frame = pd.DataFrame([row, {**row, "kind": "pruned", "score": 0.0}])
    return {SCORED: frame.astype({"copied_bleu": float})}


@pytest.mark.parametrize(("majority", "examples"), slow_but([(50, 100)], [(40, 500), (50, 100), (70, 1000)]))
def test_a_classifier_has_to_be_right_more_often_than_the_likeliest_label_could_be_by_luck(
    majority: int, examples: int
) -> None:
    """Weak if as many right answers, or more, have a chance above one in forty at the likeliest label's share."""
    p, weak, known = majority / 100, [], []
    chances = [comb(examples, k) * p**k * (1 - p) ** (examples - k) for k in range(examples + 1)]
    for right in range(examples + 1):
        luck = sum(chances[right:])
        known.append(luck >= 0.025)
        if abs(luck - 0.025) < 1e-3 or right % (examples // 50) == 0:
            weak.append((right, too_weak(classifier(100 * right / examples, majority, examples))))
    assert len({answer for _, answer in weak}) == 2
    assert [(right, known[right]) for right, _ in weak] == weak
    assert too_weak(classifier(majority, majority, examples)), "whoever always says the likeliest label"


def test_a_translator_needs_five_bleu_and_twice_what_its_source_scores_as_the_translation() -> None:
    told = [(4.9, 0.0), (5.1, 0.0), (5.1, 2.5), (9.9, 5.0), (10.1, 5.0), (4.9, None), (5.1, None), (30.0, 16.0)]
    answers = [True, False, False, True, False, True, False, True]
    assert [too_weak(translator(bleu, copied)) for bleu, copied in told] == answers


def test_a_model_that_was_not_scored_is_not_called_weak() -> None:
    assert not too_weak({SCORED: translator(1.0, 0.0)[SCORED][1:]})


def harmless(runs: Sequence[Path], score: str) -> None:
    """Rewrite results as if nothing done to the unpruned model, or to those pruned from it, changed anything."""
    for run in runs:
        for name in ("ablation.tsv", "ablation.dev.tsv", "layers_to_one.tsv", "masking_curve.tsv", "checkpoints.tsv"):
            if not (run / name).exists():
                continue
            rows: list[dict[str, Any]] = list(read_tsv(run / name))
            for row in rows:
                row |= {key: 0.0 for key in row if "_change" in key or "behind" in key}
                row |= {key: 0.5 for key in row if "p_value" in key}
                row |= {key: 0.9 for key in row if key == score}
                row |= {key: 1.0 for key in row if "_kept_" in key}
            write_tsv(run / name, rows, tuple(rows[0]))


def verdicts_of(rows: Sequence[dict[str, Any]], reference: str) -> dict[str, str]:
    by_measure = {(row["claim"], row["measure"]): row["id"] for row in load_reference(reference).to_dict("records")}
    named = [(by_measure.get((row["claim"], row["measure"])), row["holds"] or "") for row in rows]
    return {identity: said for identity, said in named if identity is not None}


LITTLE = ("heads_that_matter", "layers_with_one_head", "layers_with_one_head_oracle", "free_share")


@pytest.mark.parametrize(
    ("accuracy", "said"), slow_but([(44.0, TOO_WEAK)], [(40.0, TOO_WEAK), (44.0, TOO_WEAK), (60.0, "yes")])
)
def test_a_classifier_that_always_says_the_likeliest_label_loses_nothing_and_shows_nothing(
    tmp_path: Path, accuracy: float, said: str
) -> None:
    runs = write_told(tmp_path / "told", World(layers=8, heads=6, lams=("0.1",)))
    harmless(runs, "accuracy")
    for run in runs:
        if (run / "accuracy.json").exists():
            write_json(run / "accuracy.json", {**read_json(run / "accuracy.json"), "accuracy": accuracy})
    found = verdicts_of(table_of_runs("claims", runs).to_dict("records"), "michel_nli_claims.csv")
    assert {name: found[name] for name in LITTLE} == dict.fromkeys(LITTLE, said)
    assert found["importance_over_ablation"] != TOO_WEAK != found["faster_in_larger_batches"]


@pytest.mark.parametrize(
    ("bleu", "copied", "weak"),
    slow_but([], [(0.9, None, True), (12.0, 6.5, True), (12.0, None, False)]),
)
def test_a_translator_of_hardly_any_bleu_answers_no_claim_about_losing_little(
    tmp_path: Path, bleu: float, copied: float | None, *, weak: bool
) -> None:
    runs = write_results(tmp_path / "poor", World(layers=8, heads=6, lams=("0.01", "0.1")))
    harmless(runs, "bleu")
    for run in runs:
        if (run / "bleu.json").exists():
            own = {"bleu": bleu} if copied is None else {"bleu": bleu, "copied_bleu": copied}
            write_json(run / "bleu.json", {**read_json(run / "bleu.json"), **own})
    rows = table_of("claims", [run for run in runs if TABLES["claims"].need.inputs([f"x/{run.relative_to(tmp_path)}"])])
    for reference in TABLES["claims"].need.reference:
        floor = load_reference(reference).set_index("id")["floor"]
        for identity, said in verdicts_of(rows, reference).items():
            assert (said == TOO_WEAK) == (weak and floor[identity] == "yes" and bool(said)), identity
            assert not (weak and floor[identity] == "yes" and said == "yes"), identity
    found = verdicts_of(rows, "michel_claims.csv")
    assert [found[name] for name in LITTLE] == [TOO_WEAK if weak else "yes"] * 4


def test_only_claims_that_a_model_without_anything_to_lose_would_meet_have_a_floor() -> None:
    for name in TABLES["claims"].need.reference:
        rows = load_reference(name)
        assert set(rows["floor"]) <= {"yes", "no"}
        for row in rows[rows["floor"] == "yes"].to_dict("records"):
            # Nothing lost: a change of 0, no head or layer that matters, all of the heads free, all of BLEU kept.
            nothing = 0.0 if row["condition"] == "at most" or row["limit"] <= 0 else 1.0
            meets = nothing <= row["limit"] if row["condition"] == "at most" else nothing >= row["limit"]
            assert row["condition"] == "all" or meets
    assert set(load_reference("alignment_claims.csv")["floor"]) == {"no"}
