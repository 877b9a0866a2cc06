"""Causal gates recognise heads that do nothing, harm or help."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from heads.__main__ import main
from heads.analysis.ablation import gates_without
from heads.analysis.causal_gating import (
    FACILITATES,
    INTERFERES,
    IRRELEVANT,
    CausalSettings,
    Row,
    causal_rows,
    effect_of,
)
from heads.base.columns import CAUSAL_COLUMNS
from heads.base.files import read_tsv
from heads.model.folder import save_folder
from heads.model.shape import Head
from heads.model.transformer import Transformer
from heads.text.batches import Batch, make_batch, pairs_of
from heads.text.vocabulary import Tokens
from model_folders import opinionated

HARMFUL, IDLE = ("enc_self", 1, 1), ("dec_enc", 1, 2)
LONG = CausalSettings(updates=150)


@pytest.fixture(scope="module")
def model() -> Transformer:
    """A model with one head that has no effect: the columns that carry its output are zero."""
    made = opinionated(seed=4)
    output = dict(made.named_modules())["decoder.1.cross_attention.output"]
    output.weight.data[:, 4:6] = 0.0
    return made


def text_of(model: Transformer, without: Head) -> list[Batch]:
    """Random sentences whose target at each step is the token likeliest without the given head."""
    generator = np.random.default_rng(3)
    found = []
    for _ in range(4):
        sides = [[generator.integers(4, most, 7).astype(np.int32) for _ in range(16)] for most in (70, 60)]
        batch = make_batch(*sides)
        with torch.inference_mode():
            gates = gates_without(model, [without])
            states = model(batch.source, batch.source_mask, batch.target_input, gates)
            likeliest = model.projection(states).argmax(-1)
        found.append(Batch(batch.source, batch.source_mask, batch.target_input, likeliest.clone(), batch.target_mask))
    return found


@pytest.fixture(scope="module")
def rows(model: Transformer) -> dict[Head, Row]:
    found = causal_rows(model, text_of(model, HARMFUL), LONG)
    assert [tuple(row) for row in found] == [CAUSAL_COLUMNS] * len(found)
    return {(str(row["attention"]), int(row["layer"]), int(row["head"])): row for row in found}


def test_every_live_head_has_a_row_in_the_order_of_the_shape(model: Transformer, rows: dict[Head, Row]) -> None:
    assert (*rows,) == model.shape.heads()


def test_a_head_without_which_the_text_was_made_interferes(rows: dict[Head, Row]) -> None:
    assert rows[HARMFUL]["effect"] == INTERFERES
    assert float(rows[HARMFUL]["gate_nudged_open"]) < 0.5


def test_a_head_that_gives_nothing_goes_where_it_is_nudged(rows: dict[Head, Row]) -> None:
    assert rows[IDLE]["effect"] == IRRELEVANT
    # Only the nudge moves it: without one it stays at its initial value.
    assert float(rows[IDLE]["gate"]) == pytest.approx(1 / (1 + np.exp(-LONG.first_logit)), abs=1e-6)
    assert float(rows[IDLE]["gate_nudged_open"]) > 0.99
    assert float(rows[IDLE]["gate_nudged_closed"]) < 0.02


def test_most_of_the_others_help(rows: dict[Head, Row]) -> None:
    others = [row["effect"] for head, row in rows.items() if head not in (HARMFUL, IDLE)]
    assert others.count(FACILITATES) > len(others) / 2


def test_the_model_stays_as_it_was(model: Transformer) -> None:
    before = {name: value.clone() for name, value in model.named_parameters()}
    causal_rows(model, text_of(model, HARMFUL)[:1], CausalSettings(updates=2))
    for name, value in model.named_parameters():
        assert torch.equal(value, before[name])
        assert value.requires_grad
        assert value.grad is None


@pytest.mark.parametrize(
    ("opened", "closed", "effect"),
    [(1.0, 0.5, FACILITATES), (0.49, 0.1, INTERFERES), (0.5, 0.49, IRRELEVANT), (0.4, 0.6, FACILITATES)],
)
def test_what_a_head_does_by_its_gates(opened: float, closed: float, effect: str) -> None:
    assert effect_of(opened, closed) == effect


def test_batches_are_seen_in_a_drawn_order(model: Transformer) -> None:
    """Batches come sorted by length; a single update sees only the first batch of the drawn order."""
    batches = [one for without in (HARMFUL, IDLE) for one in text_of(model, without)]
    first = int(np.random.default_rng(1).permutation(len(batches))[0])
    once = CausalSettings(updates=1)
    assert first and causal_rows(model, batches, once) == causal_rows(model, [batches[first]], once)
    assert causal_rows(model, batches, once) != causal_rows(model, [batches[0]], once)


@pytest.fixture
def told(tmp_path: Path) -> list[str]:
    """Arguments of the command, settings left out, for a model and eighteen pairs of varied length."""
    save_folder(opinionated(seed=4), tmp_path / "model", {}, {})
    draw = np.random.default_rng(5)
    for side, most in (("source", 70), ("target", 60)):
        ids = [draw.integers(4, most, length) for length in (*range(3, 12), *range(3, 12))]
        offsets = np.cumsum([0, *map(len, ids)])
        save_file({"ids": np.concatenate(ids).astype(np.int32), "offsets": offsets}, tmp_path / f"{side}.safetensors")
    files = {"model": "model", "source": "source.safetensors", "target": "target.safetensors", "out": "causal.tsv"}
    flags = [word for flag, name in files.items() for word in (f"--{flag}", str(tmp_path / name))]
    return ["causal", "--device", "cpu", *flags]


def test_the_command_fits_gates_on_the_first_dev_pairs_by_its_settings(told: list[str], tmp_path: Path) -> None:
    settings = CausalSettings(updates=3, nudge=0.1, learning_rate=0.5, sentences=16, batch_tokens=14)
    assert main([*told, "--settings", json.dumps({"causal": settings.model_dump()})]) == 0
    source, target = (Tokens(tmp_path / f"{side}.safetensors") for side in ("source", "target"))
    pairs = pairs_of(source, target, 14, labelled=False)
    batches = [batch for _, batch in pairs.in_order(14, 16)]
    assert len(batches) > 3
    expected = causal_rows(opinionated(seed=4), batches, settings)
    for row, wanted in zip(read_tsv(tmp_path / "causal.tsv"), expected, strict=True):
        assert (row["attention"], int(row["layer"]), int(row["head"])) == tuple(wanted.values())[:3]
        for name in ("gate", "gate_nudged_open", "gate_nudged_closed", "causal_gate"):
            assert float(row[name]) == pytest.approx(float(wanted[name]), rel=1e-4)
        nudged = [float(row[f"gate_nudged_{way}"]) for way in ("open", "closed")]
        assert float(row["causal_gate"]) == pytest.approx(sum(nudged) / 2, rel=1e-4)


def test_no_updates_are_refused_in_one_sentence(told: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*told, "--settings", json.dumps({"causal": CausalSettings().model_dump()})]) == 1
    assert capsys.readouterr().err == "error: causal.updates is 0, so no gates are fitted: set a number, such as 60.\n"
