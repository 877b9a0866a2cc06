"""How the training commands follow their settings: rates, seeds, schedules, records, and frozen weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heads.base.files import read_json, read_jsonl, read_tsv, write_tsv
from heads.base.names import ATTENTIONS
from heads.config.trainings import TrainingSettings
from heads.model.checkpoint import load_tensors
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.training.schedule import learning_rate
from tiny_commands import command, started, write_data

New = Callable[..., TrainingSettings]
ONE = {"updates": 1, "average_last": 1, "average_every": 100}


@pytest.fixture
def data(digit_pairs: Callable[..., Pairs], tmp_path: Path) -> Path:
    return write_data(tmp_path, digit_pairs)


@pytest.fixture
def baseline(data: Path, training_settings: New) -> Path:
    return command("baseline", data, training_settings())


@pytest.mark.parametrize(
    ("target", "start", "rate"), [("lam-50", 3.0, 0.03), ("keep-2", 3.0, 0.03), ("dsp-7", 0.0, 0.2)]
)
def test_gates_learn_at_the_rate_that_their_kind_is_told(
    data: Path, baseline: Path, training_settings: New, target: str, start: float, rate: float
) -> None:
    """Adam's first update moves each weight with a gradient by the learning rate, whatever the gradient."""
    subset = {"learning_rate": 0.2, "temperature_first": 1.0}
    gates = {**ONE, "gate_learning_rate": 0.03, "hard_concrete": {"log_alpha_init": 3.0}, "subset": subset}
    scope = ["--scope", "all", "--target", target]
    folder = command("gates", data, training_settings(), *started(baseline), *scope, gates=gates)
    moved = [float(row["log_alpha"]) - start for row in read_tsv(folder / "heads.tsv")]
    assert [abs(change) for change in moved] == pytest.approx([rate] * 18, rel=1e-3)


@pytest.mark.parametrize("target", ["lam-1", "keep-2", "dsp-2"])
@pytest.mark.parametrize("scope", ["enc_self", "all"])
def test_only_what_the_encoder_needs_learns_when_its_heads_alone_have_gates(
    data: Path, baseline: Path, training_settings: New, scope: str, target: str
) -> None:
    more = ["--scope", scope, "--target", target]
    tuned = command("gates", data, training_settings(), *started(baseline), *more)
    before, after = (load_tensors(folder / "model.safetensors")[0] for folder in (baseline, tuned))
    learnt = {name for name, value in before.items() if not torch.equal(value, after[name])}
    of_encoder = {name for name in before if name.split(".")[0] in ("encoder", "encoder_norm", "source_embedding")}
    assert len(of_encoder) > 20
    assert learnt == (of_encoder if scope == "enc_self" else set(before))


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_fine_tuning_goes_on_where_the_schedule_of_its_start_ended_and_scratch_starts_it_anew(
    data: Path, training_settings: New
) -> None:
    """The baseline has done three updates, so the next training starts at the fourth of the schedule."""
    training = training_settings(evaluate_every=1)
    baseline = command("baseline", data, training, baseline={"updates": 3})
    start, gates = started(baseline), {"updates": 2}
    folders = {
        "baseline": baseline,
        "gates": command("gates", data, training, *start, "--scope=all", "--target=keep-9", gates=gates),
    }
    heads = ["--heads", str(folders["gates"] / "heads.tsv")]
    folders["selected"] = command("selected", data, training, *start, *heads, selected=gates)
    faster = {"learning_rate_factor": 3.0}
    folders["scratch"] = command("scratch", data, training, "--unpruned", start[-1], *heads, scratch=faster)
    anew = ["--unpruned", start[-1], "--scope=all", "--target=lam-1"]
    folders["penalty_gates"] = command("penalty_gates", data, training, *anew, scratch=faster)
    numbers = {"baseline": (1, 2, 3), "gates": (4, 5), "selected": (4, 5), "scratch": (1, 2), "penalty_gates": (1, 2)}
    for stage, folder in folders.items():
        rates = [row["learning_rate"] for row in read_jsonl(folder / "log.jsonl")]
        times = 3.0 if numbers[stage] == (1, 2) else 1.0
        assert rates == pytest.approx([times * learning_rate(number, training) for number in numbers[stage]]), stage
        assert read_json(folder / "model.json")["total_updates"] == numbers[stage][-1]


def test_the_record_of_gates_has_their_chances_and_the_penalty_at_the_updates_that_were_asked_for(
    data: Path, baseline: Path, training_settings: New
) -> None:
    gates = {"updates": 7, "record_every": 3, "gate_learning_rate": 0.03, "hard_concrete": {"log_alpha_init": 0.4}}
    more = ["--scope", "enc_self", "--target", "lam-50"]
    folder = command("gates", data, training_settings(evaluate_every=2), *started(baseline), *more, gates=gates)
    records = read_jsonl(folder / "gates.jsonl")
    assert [record["update"] for record in records] == [1, 3, 6, 7]
    assert [record["lam"] for record in records] == [[50.0]] * 4
    chance = 1 / (1 + math.exp(-(0.4 - 0.03 + 0.7913)))  # 0.33 log 11 = 0.7913
    (kind,) = records[0]["p_open"]
    assert kind == "enc_self"
    assert records[0]["p_open"][kind] == [pytest.approx([chance] * 3, abs=2e-4)] * 2
    last = [float(row["p_open"]) for row in read_tsv(folder / "heads.tsv")]
    assert [p for layer in records[-1]["p_open"][kind] for p in layer] == pytest.approx(last, abs=1e-4)


@pytest.mark.parametrize("stage", ["baseline", "scratch"])
def test_the_seed_makes_the_weights_that_a_new_model_starts_from(
    data: Path, training_settings: New, stage: str
) -> None:
    """With a tiny learning rate, an update leaves the weights as they were."""
    training, more = training_settings(learning_rate=3e-8), []
    if stage == "scratch":
        rows = [
            {"attention": kind, "layer": layer, "head": head, "open": int(head != layer)}
            for kind in ATTENTIONS
            for layer in range(2)
            for head in range(3)
        ]
        write_tsv(data / "heads.tsv", rows, ("attention", "layer", "head", "open"))
        whole = command("baseline", data, training, baseline=ONE)
        more = ["--unpruned", str(whole), "--heads", str(data / "heads.tsv")]
    folder = command(stage, data, training, *more, "--seed", "5", baseline=ONE, scratch=ONE)
    torch.manual_seed(5)
    expected = Transformer(ModelShape.from_dict(read_json(folder / "model.json")["shape"])).state_dict()
    found = load_tensors(folder / "model.safetensors")[0]
    assert len(found["decoder.0.cross_attention.query.weight"]) == (6 if stage == "baseline" else 4)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6, msg=name)
