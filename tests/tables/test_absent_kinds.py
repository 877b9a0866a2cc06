"""Claims about kinds of attention that a model lacks, and about training from scratch for a pretrained model."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fake_results import World, write_results, write_results_without
from heads.base.files import read_json, write_json
from heads.base.names import ATTENTIONS, BLEU
from heads.tables import claims_pruning as claims
from heads.tables.catalogue import TABLES
from heads.tables.claims import CLAIMS, stated
from heads.tables.claims_michel import source_needed_most
from heads.tables.evidence import Evidence
from heads.tables.gathering import table_of_runs
from heads.tables.reading import READ_COLUMNS, frame_of, load_reference
from heads.tables.verdicts import NOT_MEASURED, Finding
from made_evidence import swept
from slow_ones import slow_but

NEED = {
    "source_over_self": {"dec_self", "dec_enc"},
    "self_near_source": {"dec_self", "dec_enc"},
    "self_over_encoder": {"dec_self", "enc_self"},
    "self_near_encoder": {"dec_self", "enc_self"},
    "self_in_low_layers": {"dec_self"},
    "source_in_high_layers": {"dec_enc"},
}
"""The kinds without which each claim cannot be measured."""
LEFT = {"enc_self": [[1, 0, 0, 0]] * 3, "dec_self": [[1, 1, 0, 0]] * 3, "dec_enc": [[1, 1, 1, 0]] * 3}


def lacking(*kinds: str) -> Evidence:
    """A model with more and more heads left by kind, except for kinds that it never had."""
    return swept(lam1={kind: layers for kind, layers in LEFT.items() if kind not in kinds})


@pytest.mark.parametrize("kinds", [("dec_self",), ("dec_enc",), ("dec_self", "dec_enc")])
def test_a_claim_about_a_kind_that_the_model_lacks_is_not_measured(kinds: Sequence[str]) -> None:
    for name, needed in NEED.items():
        found, whole = claims.PRUNING_CLAIMS[name](lacking(*kinds)), claims.PRUNING_CLAIMS[name](lacking())
        assert np.isnan(found.ours) == bool(needed & {*kinds}), name
        assert not np.isnan(whole.ours)


def test_a_kind_whose_heads_are_all_gone_is_not_one_that_was_never_there() -> None:
    gone = swept(lam1={**LEFT, "dec_self": [[0] * 4] * 3})
    assert claims.more_left(gone, "dec_enc", "dec_self").ours == pytest.approx(0.75)
    assert claims.encoder_fewest(gone).ours == 0


def test_the_encoder_is_held_against_the_kinds_that_are_there_by_shares_of_their_heads() -> None:
    assert (claims.encoder_fewest(lacking("dec_self")).ours, claims.encoder_fewest(lacking("dec_self")).of) == (1, 1)
    assert claims.encoder_fewest(lacking("dec_self", "dec_enc")) == NOT_MEASURED
    assert claims.encoder_fewest(lacking("enc_self")) == NOT_MEASURED
    # Six layers of four against two: 8 of 24 encoder heads are more than 3 of 8 of another kind, but a smaller share.
    deep = {"enc_self": [[1, 1, 0, 0]] * 4 + [[0] * 4] * 2, "dec_enc": [[1, 1, 1, 0], [0] * 4]}
    for dec_self, fewest in (([[1, 1, 1, 0], [1, 1, 0, 0]], 1), ([[1, 1, 0, 0], [0] * 4], 0)):
        assert claims.encoder_fewest(swept(lam1={**deep, "dec_self": dec_self})).ours == fewest
    even = swept(lam1={"enc_self": [[1, 0, 0]] * 2, "dec_enc": [[1, 0, 0]]})
    assert claims.encoder_fewest(even).ours == 0, "a third each"


def test_one_layer_has_no_low_and_no_high_layers() -> None:
    assert claims.low_minus_high(swept(lam1={"enc_self": [[1]], "dec_self": [[1, 0]]}), "dec_self", sign=1) == (
        NOT_MEASURED
    )


def test_a_third_of_the_decoder_can_only_go_where_there_is_one() -> None:
    baseline = {"kind": "baseline", "scope": "", "lam": "", "keep": "", "method": "", "scores": np.array([30.0])}
    pruned = {**baseline, "kind": "pruned", "scope": "all", "lam": "0.1"}
    sizes = {"total": 4, "of": 24, "of_enc_self": 24, "enc_self": 4, "dec_self": 0, "dec_enc": 0}
    for of_encoder, measured in ((24, False), (0, False), (16, True)):
        runs = pd.DataFrame([{**baseline, **sizes}, {**pruned, **sizes, "of_enc_self": of_encoder}])
        empty = pd.DataFrame()
        found = claims.most_encoder_heads_free(Evidence(empty, runs, empty, empty, empty), 14 / 48, 61 / 96)
        assert found == (Finding(0.0, relative=0.0) if measured else NOT_MEASURED)


def curve(*kinds: str) -> dict[str, pd.DataFrame]:
    """A masking curve for these kinds, of which cross-attention needs its heads most."""
    rows = [
        {"order": "example", "attention": kind, "share": share, "metric": BLEU, "score": bleu,
         "score_kept_low": bleu / 30, "score_kept_high": bleu / 30}
        for kind in kinds
        for share, bleu in ((0.0, 30.0), (1.0, 0.0 if kind == "dec_enc" else 20.0))
    ]  # fmt: skip
    return {"masking_curve.tsv": frame_of(rows, READ_COLUMNS["masking_curve.tsv"])}


def test_which_kind_needs_its_heads_most_is_not_told_of_two() -> None:
    assert source_needed_most(curve(*ATTENTIONS), 0.8).ours > 0
    for missing in ATTENTIONS:
        assert np.isnan(source_needed_most(curve(*({*ATTENTIONS} - {missing})), 0.8).ours), missing


ASKED = {
    ("dec_self",): {"source_over_self", "self_near_source", "self_in_low_layers", "decoder_keeps",
                    "source_needed_most"},
    ("dec_self", "dec_enc"): {"source_over_self", "self_near_source", "self_in_low_layers", "source_in_high_layers",
                              "decoder_keeps", "source_collapses", "source_needed_most", "encoder_fewest",
                              "three_quarters_of_encoder"},
}  # fmt: skip


Rows = dict[tuple[str, str, str], dict[Hashable, Any]]


def claims_of(runs: Sequence[Path]) -> Rows:
    """The rows of the table of claims, by what they claim."""
    rows = table_of_runs("claims", runs).to_dict("records")
    return {(row["claim"], row["measure"], row["rule"]): row for row in rows}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The claims of models with every kind of attention."""
    return claims_of(write_results_without(tmp_path_factory.mktemp("results") / "whole", ()))


@pytest.mark.parametrize("kinds", slow_but([(("dec_self", "dec_enc"),)], [(kinds,) for kinds in ASKED]))
def test_the_table_of_claims_is_made_of_models_without_a_kind_and_leaves_its_claims_empty(
    whole: Rows, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    less = claims_of(write_results_without(tmp_path / "less", kinds))
    told = stated(*map(load_reference, TABLES["claims"].need.reference)).query("metric == 'bleu'")
    names = {(row["claim"], row["measure"]): row["id"] for row in told.to_dict("records")}
    assert whole.keys() == less.keys()
    for key, row in less.items():
        name = names[key[:2]]
        if name in ASKED[kinds]:
            assert row["holds"] == "" and np.isnan(row["ours"]), name
    assert ASKED[kinds] <= {*CLAIMS}
    both = [key for key in less if names[key[:2]] in ("encoder_keeps", "heads_that_matter", "encoder_10_of_48")]
    assert [less[key]["holds"] for key in both] == [whole[key]["holds"] for key in both]


@pytest.mark.parametrize(
    ("facts", "shape", "penalty_measured"),
    # Older facts do not say so, but biases do: no training here gives an attention biases.
    slow_but(
        [({"pretrained": True}, {}, False)],
        [({}, {}, True), ({"pretrained": True}, {}, False), ({}, {"attention_biases": True}, False)],
    ),
)
def test_a_model_that_came_trained_is_compared_with_scratch_once_both_levelled_and_with_nothing_else(
    tmp_path: Path, facts: dict[str, bool], shape: dict[str, bool], *, penalty_measured: bool
) -> None:
    """Its updates are unknown. The fake gates' loss still falls; gates from scratch are compared as they are."""
    runs = write_results(tmp_path / "made", World(layers=2, heads=3, lams=("0.01", "0.1")))
    (source,) = (run for run in runs if run.parts[-4:-1] == ("scratch", "all", "lam-0.1"))
    penalty = source.parents[3] / "pruned_from_scratch/all/lam-0.1/seed-1"
    penalty.mkdir(parents=True)
    for name in ("bleu.json", "bleu_statistics.tsv", "model.json"):
        (penalty / name).write_bytes((source / name).read_bytes())
    for run in runs:
        old = read_json(run / "model.json")
        told = {**facts} if run.parts[-2] == "baseline" else {}
        write_json(run / "model.json", {**old, **told, "shape": {**old["shape"], **shape}})
    rows = table_of_runs("claims", [*runs, penalty]).to_dict("records")
    claims = load_reference("voita_claims.csv")
    names = {(row["claim"], row["measure"]): row["id"] for row in claims.to_dict("records")}
    found = {names.get((row["claim"], row["measure"])): row for row in rows}
    for name in ("scratch_not_better", "scratch_gain"):
        assert not np.isnan(found[name]["ours"]) and found[name]["holds"] == "not settled", name
    assert np.isnan(found["penalty_from_scratch"]["ours"]) != penalty_measured
    assert not np.isnan(found["encoder_fewest"]["ours"])
