"""Masking single heads, or all heads of a layer but one, on models where the outcome is known."""

from __future__ import annotations

from collections.abc import Callable

import torch
from test_permutations import REFERENCES

from few_heads import USEFUL, random_batch, translator, with_useful_heads
from heads.analysis.ablation import (
    CHOICE_COLUMNS,
    COLUMNS,
    Row,
    ablation_rows,
    choice_rows,
    gates_without,
    kept_alone,
    masked_alone,
)
from heads.model.head_removal import prune
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.pruning.selection import keep_best

LIVE = {"enc_self": ((0, 2), ()), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((2,), (0, 1))}


def test_a_head_masked_by_its_gate_is_the_same_as_one_that_is_gone(tiny_model: Callable[..., Transformer]) -> None:
    model, batch = tiny_model(live_heads=LIVE), random_batch(3, 1)
    gates = gates_without(model, [("dec_self", 1, 2), ("enc_self", 0, 0)])
    smaller = prune(model, {kind: [[bool(g) for g in gate] for gate in layers] for kind, layers in gates.items()})
    assert smaller.shape.live_heads["dec_self"] == ((1,), (0, 1))
    assert smaller.shape.live_heads["enc_self"] == ((2,), ())
    inputs = (batch.source, batch.source_mask, batch.target_input)
    torch.testing.assert_close(model(*inputs, gates), smaller(*inputs))


def test_each_head_is_masked_alone_or_left_alone_in_its_layer(tiny_shape: Callable[..., ModelShape]) -> None:
    shape = tiny_shape(live_heads=LIVE)
    assert masked_alone(shape) == {head: {head} for head in shape.heads()}
    alone = kept_alone(shape)
    assert tuple(alone) == shape.heads()
    assert alone["dec_self", 1, 1] == {("dec_self", 1, 0), ("dec_self", 1, 2)}
    assert alone["dec_self", 0, 1] == set()


def test_masking_finds_the_only_heads_that_matter_and_all_others_change_nothing(
    tiny_model: Callable[..., Transformer],
) -> None:
    model = with_useful_heads(tiny_model())
    translate = translator(model, random_batch(150, 2))
    rows = ablation_rows(model, masked_alone(model.shape), translate, translate(None), resamples=100)
    assert all(tuple(row) == COLUMNS for row in rows)
    changes = {head: float(row["bleu_change"]) for head, row in zip(model.shape.heads(), rows, strict=True)}
    assert keep_best({head: -change for head, change in changes.items()}, len(USEFUL)) == list(USEFUL)
    for head, row in zip(model.shape.heads(), rows, strict=True):
        assert (float(row["bleu_change"]) < 0 and float(row["p_value"]) < 0.05) == (head in USEFUL)
        assert head in USEFUL or (row["bleu_change"], row["p_value"]) == (0, 1)


def test_a_case_that_masks_nothing_is_not_translated_again(tiny_model: Callable[..., Transformer]) -> None:
    model, calls = tiny_model(live_heads=LIVE), []

    def translate(gates: Gates | None) -> list[str]:
        calls.append(gates)
        return REFERENCES

    rows = ablation_rows(model, kept_alone(model.shape), translate, REFERENCES, resamples=10)
    assert len(rows) == 9
    assert len(calls) == 1 + 7  # dec_self and dec_enc of layer 0 have one head each


def test_the_head_of_a_layer_is_chosen_on_one_set_and_scored_on_another() -> None:
    def rows(*scores: float) -> list[Row]:
        places = [("dec_enc", 0, 0), ("dec_enc", 0, 2), ("dec_enc", 1, 1)]
        return [dict(zip(COLUMNS, (*p, s, s - 30, s / 100), strict=True)) for p, s in zip(places, scores, strict=True)]

    table = choice_rows(rows(25.0, 24.0, 11.0), rows(20.0, 28.0, 12.0))
    assert [tuple(row) for row in table] == [CHOICE_COLUMNS] * 2
    assert tuple(table[0].values()) == ("dec_enc", 0, 2, 0, 20.0, -10.0, 0.2, 2, 28.0, -2.0, 0.28)
    assert tuple(table[1].values()) == ("dec_enc", 1, 1, 1, 12.0, -18.0, 0.12, 1, 12.0, -18.0, 0.12)
