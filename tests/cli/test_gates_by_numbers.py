"""`gates` and `pruned` by their numbers: the table of gates, the heads that stay, and the pruned model's facts."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from heads.base.files import read_json, read_jsonl, read_tsv, write_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.model.folder import load_model
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from known_experiment import LEFT, SETTINGS, STANDSTILL, Known, command, known_model, loss, same, save, weights
from known_trainings import RATE, Train


def gates_with(log_alpha: float) -> dict[str, Any]:
    return {"gates": {"hard_concrete": {"temperature": 0.5, "low": -0.2, "high": 1.1, "log_alpha_init": log_alpha}}}


@pytest.mark.parametrize("log_alpha", [-6.0, 6.0])
def test_a_model_with_gates_is_looked_at_with_them_as_they_will_stay(
    known: Known, train: Train, log_alpha: float
) -> None:
    run = train("gates", **gates_with(log_alpha), flags={"scope": "enc_self"})
    stays = log_alpha > 0
    model = prune(known_model(), {"enc_self": [[stays] * 3] * 2}).eval()
    right, whole = (loss(each, known.pairs("dev"), 0.0) for each in (model, known_model()))
    assert read_json(run / "model.json")["dev_loss"] == pytest.approx(right, rel=1e-4)
    assert (right == whole) if stays else (abs(right - whole) > 1)


def test_the_table_of_gates_tells_of_each_gated_head_under_its_first_number_what_its_logit_says(
    known: Known, train: Train, tmp_path: Path
) -> None:
    """The start is already pruned; the gates of its encoder learn, so that no two are equal."""
    live = {"enc_self": [[0, 2], [1]], "dec_self": [[0, 1, 2]] * 2, "dec_enc": [[0, 1, 2]] * 2}
    keep = {kind: [[head in layer for head in range(3)] for layer in layers] for kind, layers in live.items()}
    start = save(prune(known_model(), keep), tmp_path / "start", total_updates=11)
    changes = gates_with(0.3)
    changes["gates"] |= {"gate_learning_rate": 0.4, "updates": 4, "record_every": 3}
    run = train("gates", start=start, flags={"scope": "enc_self"}, **changes)
    rows = read_tsv(run / "heads.tsv")
    assert list(rows[0]) == ["attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between"]
    places = [(row["attention"], row["layer"], row["head"]) for row in rows]
    assert places == [("enc_self", "0", "0"), ("enc_self", "0", "2"), ("enc_self", "1", "1")]
    log_alphas = [float(row["log_alpha"]) for row in rows]
    assert len(set(log_alphas)) == 3 and all(value != pytest.approx(0.3) for value in log_alphas)
    for row, value in zip(rows, log_alphas, strict=True):
        # P(s > x) of the stretched distribution: sigmoid(log alpha - temperature * log((x - low) / (high - x))).
        above = {x: 1 / (1 + math.exp(-value + 0.5 * math.log((x + 0.2) / (1.1 - x)))) for x in (0.0, 1.0)}
        assert float(row["p_open"]) == pytest.approx(above[0.0], rel=1e-4)
        chances = {"closed": 1 - above[0.0], "open": above[1.0], "between": above[0.0] - above[1.0]}
        assert row["open"] == str(int(chances["open"] > chances["closed"]))
    records = read_jsonl(run / "gates.jsonl")
    assert [record["update"] for record in records] == [1, 3, 4]
    assert all(record["lam"] == [0.5] for record in records)
    shown = [value for layer in records[-1]["p_open"]["enc_self"] for value in layer]
    assert shown == pytest.approx([float(row["p_open"]) for row in rows], abs=6e-5)
    assert read_json(run / "model.json")["total_updates"] == 11 + 4


def test_gates_on_the_encoder_leave_the_decoder_as_it_was_and_gates_on_all_do_not(known: Known, train: Train) -> None:
    start = weights(known.baseline)
    for scope in ("enc_self", "all"):
        trained = weights(train("gates", flags={"scope": scope}, training=RATE))
        names = [name for name, value in trained.items() if not torch.equal(value, start[name])]
        moved = {name.partition(".")[0].partition("_")[0] for name in names}
        encoder, decoder = {"source", "encoder"}, {"target", "decoder", "projection"}
        assert moved == (encoder if scope == "enc_self" else encoder | decoder)


@pytest.mark.parametrize(("target", "kept"), [("keep-5", {"all": 5}), ("dsp-7", {"all": 7}), (
    "keep-1-2-3", {"enc_self": 1, "dec_self": 2, "dec_enc": 3})])  # fmt: skip
def test_a_number_of_heads_asked_for_is_the_number_that_stays(train: Train, target: str, kept: dict[str, int]) -> None:
    rows = read_tsv(train("gates", flags={"target": target}) / "heads.tsv")
    assert len(rows) == 18
    for scope, count in kept.items():
        assert sum(row["open"] == "1" for row in rows if scope in ("all", row["attention"])) == count
    if target.startswith("dsp"):
        assert sum(float(row["p_open"]) for row in rows) == pytest.approx(7, abs=1e-3)


def test_gates_on_heads_and_units_are_trained_together_and_the_smaller_model_answers_as_the_one_with_gates(
    known: Known, train: Train, tmp_path: Path
) -> None:
    changes = gates_with(0.3)
    changes["gates"] |= {"gate_learning_rate": 0.4, "updates": 4, "record_every": 3}
    run = train("gates", flags={"scope": "everything", "target": "keep-7-9"}, **changes)
    rows, units = read_tsv(run / "heads.tsv"), known_model().shape.units("enc_ffn")
    opened = {kind: [row["open"] for row in rows if row["attention"] == kind] for kind in (*ATTENTIONS, *FEEDFORWARDS)}
    assert {kind: len(each) for kind, each in opened.items()} == dict.fromkeys(ATTENTIONS, 6) | dict.fromkeys(
        FEEDFORWARDS, sum(units)
    )
    assert sum(opened[kind].count("1") for kind in ATTENTIONS) == 7
    assert sum(opened[kind].count("1") for kind in FEEDFORWARDS) == 9
    last = read_jsonl(run / "gates.jsonl")[-1]
    assert {*last["p_open"]} == {*ATTENTIONS} and len(last["lam"]) == 2
    for stack in FEEDFORWARDS:
        chances = [float(row["p_open"]) for row in rows if row["attention"] == stack]
        assert sum(last["open_units"][stack]) == pytest.approx(sum(chances), abs=0.15)
    logged = read_jsonl(run / "train.jsonl")[-1]
    assert 7 < logged["expected_open_heads"] < 18 and 9 < logged["expected_open_units"] < 2 * sum(units)
    smaller = load_model(pruned(run, run / "heads.tsv", tmp_path / "known/pruned/everything/keep-7-9/seed-1"))
    assert isinstance(smaller, Transformer)
    assert len(smaller.shape.heads()) == 7 and sum(map(sum, smaller.shape.live_units.values())) == 9
    found = loss(smaller, known.pairs("dev"), 0.0)
    assert found == pytest.approx(read_json(run / "model.json")["dev_loss"], rel=1e-5)


def test_each_sort_of_gates_learns_at_a_rate_of_its_own(train: Train) -> None:
    """`dsp` gates use the rate of the section `subset`, all others `gate_learning_rate`."""
    for target, subset, rest in (("lam-0.5", 0.3, STANDSTILL), ("keep-5", 0.3, STANDSTILL), ("dsp-5", STANDSTILL, 0.3)):
        moved = {}
        for name, rates in (("other", (subset, rest)), ("own", (rest, subset))):
            plan = {
                "gate_learning_rate": rates[1],
                "subset": {**SETTINGS["gates"]["subset"], "learning_rate": rates[0]},
            }
            rows = read_tsv(train("gates", flags={"target": target}, gates=plan) / "heads.tsv")
            moved[name] = {row["log_alpha"] for row in rows}
        assert len(moved["other"]) == 1 < len(moved["own"]), target


def pruned(run: Path, gates: Path, out: Path) -> Path:
    command("pruned", start_model=run, gates=gates, model=out, heads=out / "heads.tsv")
    return out


@pytest.mark.parametrize("scope", [("enc_self",), ATTENTIONS])
def test_a_pruned_model_is_without_the_heads_that_its_table_closes_and_tells_what_its_gates_told(
    known: Known, tmp_path: Path, scope: tuple[str, ...]
) -> None:
    """The column `open` decides whether a head stays, not the probability next to it."""
    run = save(known_model(), tmp_path / "gates", dev_loss=0.125, total_updates=19, dev_bleu=33.0, updates=12)
    rows = [
        {"attention": kind, "layer": layer, "head": head, "log_alpha": -1.0,
         "p_open": 0.9 - 0.8 * LEFT[kind][layer][head], "open": int(LEFT[kind][layer][head]), "strictly_between": 0}
        for kind in scope for layer in range(2) for head in range(3)
    ]  # fmt: skip
    write_tsv(tmp_path / "gates.tsv", rows, tuple(rows[0]))
    out = pruned(run, tmp_path / "gates.tsv", tmp_path / "pruned")
    left = {kind: LEFT[kind] for kind in scope}
    assert same(weights(out), prune(known_model(), left).state_dict())
    facts = read_json(out / "model.json")
    told = {"dev_loss": 0.125, "total_updates": 19, "dev_bleu": 33.0, "updates": 12}
    assert {name: facts[name] for name in told} == told
    assert facts["provenance"]["commit"] != "0" * 40 and "seed" not in facts["provenance"], "its own, not its gates'"
    whole = [[True] * 3] * 2
    assert [(row["attention"], row["layer"], row["head"], row["open"]) for row in read_tsv(out / "heads.tsv")] == [
        (kind, str(layer), str(head), str(int(left.get(kind, whole)[layer][head])))
        for kind in ATTENTIONS for layer in range(2) for head in range(3)
    ]  # fmt: skip
