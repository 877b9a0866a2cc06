"""Every derived column of the tables, on frames made by hand in which each neighbour of the right number differs."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heads.base.names import ATTENTIONS, BLEU, HALVES, SCOPES
from heads.tables.labels import relevance_columns
from heads.tables.measures import correlations_table, measure_names, measures_table, rank_correlation
from heads.tables.picking import heads_left, kept_share
from heads.tables.pruning import pruning_table
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames, load_reference

PAPER = ("voita_table2_pruning.csv", "voita_figure7_encoder_pruning.csv")
BASELINE, CONTROL = ("baseline", "", "", ""), ("pruned", "{}", "0", "")
PRUNED, SCRATCH, BUDGET = ("pruned", "{}", "0.1", ""), ("scratch", "{}", "0.1", ""), ("pruned", "{}", "", "5")
TRAINED_ON = ("selected", "{}", "0.1", "")


def run(kind: str, scope: str, lam: str, keep: str, experiment: str = "x", seed: int = 1) -> dict[str, Any]:
    return dict(zip(RUN_COLUMNS, (experiment, kind, scope, "", lam, keep, seed), strict=True))


def scope_runs() -> Iterable[dict[str, Any]]:
    """All kinds of runs of two experiments, two seeds and both scopes."""
    for experiment, seed in product(("x", "y"), (1, 2)):
        yield run(*BASELINE, experiment, seed)
        for scope, (kind, _, lam, keep) in product(("enc_self", "all"), (CONTROL, PRUNED, SCRATCH, BUDGET, TRAINED_ON)):
            yield run(kind, scope, lam, keep, experiment, seed)


def models(made: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Four heads of each kind: one encoder, two decoder and three cross-attention heads are left of those in scope."""
    left = dict(zip(ATTENTIONS, (1, 2, 3), strict=True))
    rows = []
    for one in made:
        full = one["kind"] == "baseline" or one["lam"] == "0"
        for attention, head in product(ATTENTIONS, range(4)):
            kept = full or (one["scope"] == "enc_self" and attention != "enc_self") or head < left[attention]
            rows.append({**one, "attention": attention, "layer": 0, "head": head, "live": int(kept), "dev_loss": 1.5,
                         "total_updates": 9})  # fmt: skip
    return pd.DataFrame(rows)


def test_a_share_is_of_the_heads_of_its_own_kinds_where_encoder_and_decoder_have_different_depths() -> None:
    """Three encoder layers beside one decoder layer, of four heads each."""
    rows = [
        {**run(kind, scope, lam, ""), "attention": attention, "layer": layer, "head": head, "dev_loss": 1.5,
         "live": int(kind == "baseline" or attention not in SCOPES[scope] or (layer == 0 and head < 2))}
        for kind, scope, lam in (("baseline", "", ""), ("pruned", "enc_self", "0.1"), ("pruned", "all", "0.1"))
        for attention in ATTENTIONS
        for layer in range(3 if attention == "enc_self" else 1)
        for head in range(4)
    ]  # fmt: skip
    left = heads_left(pd.DataFrame(rows))
    assert left[[f"of_{attention}" for attention in ATTENTIONS]].to_numpy().tolist() == [[12, 4, 4]] * 3
    shares = dict(zip(left["scope"], kept_share(left), strict=True))
    assert shares == {"": 1, "enc_self": 2 / 12, "all": 6 / 20}


@pytest.fixture(scope="module")
def pruning() -> tuple[pd.DataFrame, dict[tuple[Any, ...], float]]:
    """The table, and the score of every run; all differences between two scores are distinct."""
    made = list(scope_runs())
    scores = {tuple(one.values()): 40 + number**2 / 100 for number, one in enumerate(made)}
    facts = {"sentences": 9, "signature": "s"}
    bleu = [
        {**one, "metric": BLEU, "score": score, "chrf": 100 - score, "against": f"{one['kind']}'s", **facts}
        for one in made
        for score in [scores[tuple(one.values())]]
    ]
    gates = [
        {**one, "kind": "gates", "strictly_between": int(head <= number % 7)}
        for number, one in enumerate(made)
        if one["kind"] == "pruned"
        for head in range(9)
    ]
    frames = {SCORED: pd.DataFrame(bleu), "heads.tsv": pd.DataFrame(gates),
              "model.json": models(one for one in made if one["kind"] in ("baseline", "pruned")),
              "train.jsonl": pd.DataFrame(columns=[*RUN_COLUMNS, "update", "dev_loss"])}  # fmt: skip
    return pruning_table(frames, *map(load_reference, PAPER)), scores


def test_each_pruned_model_stands_beside_its_own_relatives_and_their_distance_is_ours_minus_theirs(
    pruning: tuple[pd.DataFrame, dict[tuple[Any, ...], float]],
) -> None:
    table, scores = pruning
    for row in table.to_dict("records"):
        one = {name: row[name] for name in RUN_COLUMNS}
        ours = scores[tuple(one.values())]
        place = {"experiment": one["experiment"], "seed": one["seed"]}
        relatives = {"baseline": run(*BASELINE, **place)}
        if one["kind"] == "pruned":
            relatives["control"] = run("pruned", one["scope"], "0", "", **place)
            relatives["scratch"] = {**one, "kind": "scratch"}
            relatives["trained_on"] = {**one, "kind": "selected"}
        others = {name: scores.get(tuple(relative.values())) for name, relative in relatives.items()}
        assert (row["score"], row["chrf"], row["against"]) == (ours, 100 - ours, f"{one['kind']}'s")
        for name in ("baseline", "control", "scratch"):
            other = others.get(name)
            if other is None:
                assert pd.isna(row[f"score_{name}"]) and pd.isna(row[f"score_minus_{name}"])
            else:
                assert (row[f"score_{name}"], row[f"score_minus_{name}"]) == (other, pytest.approx(ours - other))
        on, scratch = others.get("trained_on"), others.get("scratch")
        assert pd.isna(row["score_trained_on"]) if on is None else row["score_trained_on"] == on
        if on is not None and scratch is not None:
            assert row["score_trained_on_minus_scratch"] == pytest.approx(on - scratch)


def test_shares_are_of_the_heads_in_scope_and_gates_are_those_of_the_same_run(
    pruning: tuple[pd.DataFrame, dict[tuple[Any, ...], float]],
) -> None:
    table, scores = pruning
    found = table.set_index(["experiment", "seed", "kind", "scope", "lam", "keep"])
    rows = {scope: found.loc["y", 2, "pruned", scope, "0.1", ""] for scope in ("enc_self", "all")}
    assert rows["enc_self"][[*ATTENTIONS, "total", "of", "kept_share_of_scope"]].tolist() == [1, 4, 4, 9, 12, 0.25]
    assert rows["all"][[*ATTENTIONS, "total", "of", "kept_share_of_scope"]].tolist() == [1, 2, 3, 6, 12, 0.5]
    assert found["kept_share_of_scope"].loc["x", 1, "baseline", "", "", ""] == 1
    numbers = {key: number for number, key in enumerate(scores)}
    for row in table[table["kind"] == "pruned"].to_dict("records"):
        number = numbers[tuple(row[name] for name in RUN_COLUMNS)]
        assert row["gates_strictly_between"] == number % 7 + 1


def test_models_of_the_encoder_stand_beside_figure_7_and_all_others_beside_table_2(
    pruning: tuple[pd.DataFrame, dict[tuple[Any, ...], float]],
) -> None:
    table = pruning[0].query("experiment == 'x' and seed == 1").set_index(["kind", "scope", "lam", "keep"])
    columns = ["paper_item", "paper_corpus", "paper_kept", "paper_of", "paper_score", "paper_score_minus_baseline"]
    encoder, whole = table.loc["pruned", "enc_self", "0.1", ""], table.loc["pruned", "all", "0.1", ""]
    assert encoder[columns].tolist() == ["Fig 7", "WMT", 12, 48, 29.45, pytest.approx(-0.15)]
    assert pd.isna(encoder["paper_score_minus_scratch"]) and encoder["paper_tag"] == "[fig]"
    assert whole[columns].tolist() == ["Table 2", "WMT", 75, 144, 29.62, pytest.approx(0.02)]
    assert whole["paper_score_minus_scratch"] == pytest.approx(29.62 - 29.47)
    assert whole["paper_tag"] == "[blog], heads [D]"
    assert table.loc["baseline", "", "", ""][columns[:4]].tolist() == ["Table 2", "WMT", 144, 144]


def test_rows_follow_lambda_as_a_number_and_budgets_from_large_to_small() -> None:
    made = [run("pruned", "all", lam, "") for lam in ("0.1", "0.03", "0")]
    made += [run("pruned", "all", "", keep) for keep in ("9", "12")]
    made += [run(*BASELINE), run("pruned", "enc_self", "1", "")]
    facts = {"metric": BLEU, "score": 1.0, "chrf": 2.0, "against": "references", "sentences": 1, "signature": ""}
    bleu = pd.DataFrame([{**one, **facts} for one in made])
    gates = pd.DataFrame(columns=[*RUN_COLUMNS, "strictly_between"])
    curves = pd.DataFrame(columns=[*RUN_COLUMNS, "update", "dev_loss"])
    frames = {SCORED: bleu, "model.json": models(made), "heads.tsv": gates, "train.jsonl": curves}
    table = pruning_table(frames, *map(load_reference, PAPER))
    order = table[["scope", "lam", "keep"]].agg(" ".join, axis=1).str.strip().tolist()
    assert order == ["", "enc_self 1", "all 0", "all 0.03", "all 0.1", "all  12", "all  9"]


HEADS = [(attention, layer, head) for attention in ATTENTIONS for layer in range(2) for head in range(3)]


def measured() -> Frames:
    """A baseline's files, in which every number encodes its place, and a pruned model's, which must not be read."""
    files = ("lrp.tsv", "confidence.tsv", "causal.tsv", "importance.tsv", "ablation.tsv")
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in files}
    roles, gates = [], []
    for (kind, shift), (number, place) in product((("baseline", 0), ("pruned", 500)), enumerate(HEADS)):
        head = {**run(kind, *BASELINE[1:]), **dict(zip(("attention", "layer", "head"), place, strict=True))}
        value = number + shift
        for rule, more in (("plain", 0.1), ("z-plus", 0.2)):
            shares = {"relevance": -value - more, "relevance_of_sums": 50 - value - more}
            rows["lrp.tsv"].append({**head, "rule": rule, **shares, "relevance_absolute": value + more})
        rows["confidence.tsv"].append({**head, "confidence": value + 0.3})
        rows["causal.tsv"].append({**head, "causal_gate": value + 0.7, "effect": f"effect {value}"})
        for form, more in (("example", 0.4), ("token", 0.5)):
            found = {"importance": 1000 + value, "importance_normalised": value + more}
            rows["importance.tsv"].append({**head, "form": form, **found})
        score = {"metric": BLEU, "score": 900 + value, "score_change": value - 10, "p_value": 0.5}
        rows["ablation.tsv"].append({**head, **score})
        if place[0] == "enc_self":
            for role, name, accuracy, baseline in (
                ("positional", "-1", 0.1 * number, np.nan), ("positional", "+1", 0.05, np.nan),
                ("syntactic", "obj", 0.9, 0.8), ("syntactic", "amod", 0.5, 0.1 * number),
                ("rare", "rarest", 0.01 * number, np.nan), ("positional_words", "-1", 0.07 * number, np.nan),
            ):  # fmt: skip
                facts = {"role": role, "name": name, "accuracy": accuracy + shift, "baseline": baseline}
                halves = (accuracy + 0.4 + shift, 0.6 - accuracy + shift, 0.5)
                facts |= dict(zip(HALVES, halves, strict=True))
                where = {key: head[key] for key in (*RUN_COLUMNS, "layer", "head")}
                roles.append({**where, "trees": "gold", **facts})
                roles.append({**where, "trees": "stanza", **facts, "accuracy": 99.0, "by_bias": 99.0})
    opened = {("all", "0.1"): 4, ("all", "0.3"): 2, ("all", "0"): 18, ("all", ""): 18, ("enc_self", "0.2"): 1}
    for (scope, lam), count in opened.items():
        for number, place in enumerate(HEADS):
            if scope == "all" or place[0] == "enc_self":
                head = {**run("gates", scope, lam, ""), **dict(zip(("attention", "layer", "head"), place, strict=True))}
                gates.append({**head, "open": int(number < count)})
    frames = {name: pd.DataFrame(part) for name, part in rows.items()}
    return {**frames, "roles.tsv": pd.DataFrame(roles), "heads.tsv": pd.DataFrame(gates)}


def test_every_measure_of_a_head_is_the_baselines_own() -> None:
    table = measures_table(measured()).set_index(["attention", "layer", "head"])
    assert list(table.index) == HEADS
    row = table.loc["enc_self", 1, 0]
    expected = {"lrp_plain_signed_by_step": -3.1, "lrp_plain_signed_of_sums": 46.9, "lrp_plain_absolute": 3.1,
                "lrp_z-plus_signed_by_step": -3.2, "lrp_z-plus_signed_of_sums": 46.8, "lrp_z-plus_absolute": 3.2,
                "confidence": 3.3, "importance_example": 3.4, "importance_token": 3.5, "score_lost": 7,
                "causal_gate": 3.7, "positional_accuracy": 0.3, "positional_words_accuracy": 0.21,
                "positional_by_bias": 0.7, "positional_by_content": 0.55,
                "syntactic_gain": 0.2, "rare_accuracy": 0.03,
                "gate_survival_all": 0.5, "gate_last_lambda_all": 0.1, "gate_survival_enc_self": 0,
                "gate_last_lambda_enc_self": 0}  # fmt: skip
    assert row[list(expected)].astype(float).to_dict() == pytest.approx(expected)
    assert row["causal_effect"] == "effect 3"
    # A head whose removal raises BLEU by two costs minus two.
    assert table.loc["dec_self", 1, 0]["score_lost"] == 10 - 9
    assert table.loc["dec_enc", 0, 0]["score_lost"] == 10 - 12
    lambdas = [table.loc[place][["gate_survival_all", "gate_last_lambda_all"]].tolist() for place in HEADS[:5]]
    assert lambdas == [[1, 0.3], [1, 0.3], [0.5, 0.1], [0.5, 0.1], [0, 0]]
    assert table.loc["enc_self", 0, 0][["gate_survival_enc_self", "gate_last_lambda_enc_self"]].tolist() == [1, 0.2]
    assert table.loc["dec_self"][["positional_accuracy", "gate_survival_enc_self"]].isna().all(axis=None)


def test_measures_in_other_units_and_places_are_not_compared_and_readings_of_relevance_that_are_shown_are() -> None:
    table = measures_table(measured())
    names = measure_names(table)
    assert not {"layer", "seed", "gate_last_lambda_all", "gate_last_lambda_enc_self"} & set(names)
    shown = {"lrp_plain_signed_by_step", "lrp_plain_signed_of_sums", "lrp_plain_absolute", "lrp_z-plus_absolute"}
    assert {"gate_survival_all", "score_lost", "causal_gate", "positional_accuracy"} <= set(names)
    assert not {"causal_effect", "positional_words_accuracy"} & set(names)
    assert {name for name in names if name.startswith("lrp_")} == shown
    readings = product(("plain", "z-plus"), ("signed by step", "signed of sums", "absolute"))
    assert list(relevance_columns(table).items()) == [
        (f"{rule}, {share}", f"lrp_{rule}_{share.replace(' ', '_')}") for rule, share in readings
    ]


def test_correlations_over_all_heads_and_within_layers_stand_in_their_own_columns() -> None:
    """Confidence falls from layer to layer while importance rises; within a layer both rise."""
    frames = measured()
    confidence = frames["confidence.tsv"]
    frames["confidence.tsv"] = confidence.assign(confidence=confidence["head"] - 10 * confidence["layer"])
    table = correlations_table(frames)
    pair = table[(table["measure_a"] == "confidence") & (table["measure_b"] == "importance_example")]
    rows = pair.set_index("attention")
    assert rows.index.tolist() == [*ATTENTIONS, "all"]
    assert rows[["heads", "layers"]].to_numpy().tolist() == [[6, 2]] * 3 + [[18, 6]]
    a, b, layers = np.array([0, 1, 2, -10, -9, -8]), np.arange(6), np.repeat([0, 1], 3)
    row = rows.loc["dec_enc"]
    assert row[["rho", "p_value"]].tolist() == pytest.approx(rank_correlation(a, b, np.zeros(6, int)))
    within = rank_correlation(a, b, layers)
    assert row[["rho_within_layers", "p_value_within_layers"]].tolist() == pytest.approx(within)
    assert row["rho"] < 0 < row["rho_within_layers"] == 1
    roles = table[(table["measure_a"] == "positional_accuracy") | (table["measure_b"] == "positional_accuracy")]
    assert set(roles["attention"]) == {"enc_self"}


def test_a_model_with_one_kind_of_attention_has_no_second_rows_for_all_of_them() -> None:
    found = {name: frame.query("attention == 'enc_self'") for name, frame in measured().items() if "attention" in frame}
    table = correlations_table({**measured(), **found})
    assert len(table) and set(table["attention"]) == {"enc_self"}
