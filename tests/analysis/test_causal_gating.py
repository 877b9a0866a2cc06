"""Causal gates know a head that does nothing, one that is in the way, and those that help."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heads.analysis.ablation import gates_without
from heads.analysis.causal_gating import (
    COLUMNS,
    FACILITATES,
    INTERFERES,
    IRRELEVANT,
    CausalSettings,
    Row,
    causal_rows,
    effect_of,
)
from heads.model.shape import Head
from heads.model.transformer import Transformer
from heads.text.batches import Batch, make_batch
from model_folders import opinionated

HARMFUL, IDLE = ("enc_self", 1, 1), ("dec_enc", 1, 2)
LONG = CausalSettings(updates=150)


@pytest.fixture(scope="module")
def model() -> Transformer:
    """One of its heads gives nothing: the columns that carry its output are zero."""
    made = opinionated(seed=4)
    output = dict(made.named_modules())["decoder.1.cross_attention.output"]
    output.weight.data[:, 4:6] = 0.0
    return made


def text_of(model: Transformer, without: Head) -> list[Batch]:
    """Sentences, and after each token the one that the model without a head holds for the likeliest."""
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
    assert [tuple(row) for row in found] == [COLUMNS] * len(found)
    return {(str(row["attention"]), int(row["layer"]), int(row["head"])): row for row in found}


def test_every_live_head_has_a_row_in_the_order_of_the_shape(model: Transformer, rows: dict[Head, Row]) -> None:
    assert (*rows,) == model.shape.heads()


def test_a_head_without_which_the_text_was_made_interferes(rows: dict[Head, Row]) -> None:
    assert rows[HARMFUL]["effect"] == INTERFERES
    assert float(rows[HARMFUL]["gate_nudged_open"]) < 0.5


def test_a_head_that_gives_nothing_goes_where_it_is_nudged(rows: dict[Head, Row]) -> None:
    assert rows[IDLE]["effect"] == IRRELEVANT
    # Nothing but the nudge moves it: unnudged it stays where all began.
    assert float(rows[IDLE]["gate"]) == pytest.approx(1 / (1 + np.exp(-LONG.start)), abs=1e-6)
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
