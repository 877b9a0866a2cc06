"""Confidence, importance and attention of a classifier against the definitions: which positions count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_lrp_classifier import EXAMPLES, batch_of, random_model

from heads.analysis.attention_weights import attend
from heads.analysis.confidence import confidence
from heads.analysis.importance import importance_rows
from heads.syntax.alignment import Words
from heads.text.special_ids import BOS, EOS


def weights_of(model: Any, ids: list[int]) -> list[torch.Tensor]:
    """Attention weights [H, S, S] of each layer for a single example."""
    trace: dict[str, torch.Tensor] = {}
    source = torch.tensor(ids)[None]
    model.encode(source, torch.ones_like(source, dtype=torch.bool), trace=trace)
    return [trace[f"enc_self.{layer}.weights"][0] for layer in range(2)]


@torch.no_grad()
def test_confidence_leaves_start_and_separators_out_on_both_sides() -> None:
    model, sums, tokens = random_model(pre_norm=True), torch.zeros(2, 3, dtype=torch.float64), 0
    for ids in EXAMPLES:
        real = torch.tensor([subword not in (BOS, EOS) for subword in ids])
        tokens += int(real.sum())
        for layer, weights in enumerate(weights_of(model, ids)):
            sums[layer] += weights[:, real][:, :, real].amax(-1).sum(-1)
    rows = confidence(model, [batch_of(EXAMPLES)])
    assert [(row["layer"], row["head"]) for row in rows] == [(layer, head) for layer in range(2) for head in range(3)]
    assert [row["confidence"] for row in rows] == pytest.approx((sums / tokens).flatten().tolist())
    assert {row["tokens"] for row in rows} == {tokens}


@torch.no_grad()
def test_a_sentence_is_read_alone_between_start_and_separator() -> None:
    model = random_model(pre_norm=True)
    subwords = [np.array(ids, np.int32) for ids in ([5, 9, 7], [4])]
    sentences = [Words(number, (), (), ids, np.zeros((0, len(ids)))) for number, ids in enumerate(subwords)]
    found = {len(words.subwords): weights for words, weights in attend(model, sentences, 100)}
    for ids in ([5, 9, 7], [4]):
        whole = torch.cat(weights_of(model, [BOS, *ids, EOS]))
        np.testing.assert_allclose(found[len(ids)], whole[:, 1:-1, 1:-1].float(), atol=1e-6)


def test_importance_is_what_the_loss_of_a_label_changes_by_per_gate() -> None:
    model, batch = random_model(pre_norm=True), batch_of(EXAMPLES)
    rows = importance_rows(model, [batch], label_smoothing=0.1)
    expected = torch.zeros(2, 3, dtype=torch.float64)
    for row in range(len(EXAMPLES)):
        gates = [torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        ids = batch.source[row : row + 1, : len(EXAMPLES[row])]
        logits = model.projection(model(ids, torch.ones_like(ids, dtype=torch.bool), None, {"enc_self": gates}))[0]
        loss = F.cross_entropy(logits, batch.target_output[row], label_smoothing=0.1)
        expected += torch.stack(torch.autograd.grad(loss, gates)).abs() / len(EXAMPLES)
    found = [row["importance"] for row in rows if row["form"] == "example"]
    assert found == pytest.approx(expected.flatten().tolist())
