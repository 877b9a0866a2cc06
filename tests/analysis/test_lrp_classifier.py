"""LRP from a label's logit back through pooler and encoder, against a plain reimplementation."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from test_lrp_model import RULES, as_if_trained
from torch import Tensor

from heads.analysis.lrp.rows import generated, relevance_rows, rule_of
from heads.analysis.lrp.steps import head_relevance
from heads.config.analyses import LrpSettings
from heads.model.alone import Classifier
from heads.model.shape import ModelShape
from heads.model.sublayers import Layer
from heads.text.batches import Batch, Examples
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Tokens
from lrp_twin import Matrices, Twin

HEADS = (0, 1, 2)
OF_BERT: dict[str, Any] = {
    "attention_biases": True,
    "activation": "gelu",
    "positions": "learned",
    "max_positions": 9,
    "embedding_norm": True,
    "scaled_embedding": False,
}


def random_model(*, pre_norm: bool, live: tuple[tuple[int, ...], ...] = (HEADS, HEADS), **changes: Any) -> Classifier:
    """A random classifier with two layers of width 6 and 4 labels; norms and biases as if trained."""
    heads = {"enc_self": live, "dec_self": (), "dec_enc": ()}
    own = {"labels": 4, "token_types": 2, **changes}
    return as_if_trained(Classifier(ModelShape(6, 2, 7, 0.0, pre_norm, 11, 4, 3, heads, **own)))


class _Tokens:
    """A stand-in for a token file."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = [np.array(row, np.int32) for row in rows]
        self.lengths = np.array([len(row) for row in rows], np.int32)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.rows[index]


EXAMPLES = [[BOS, 5, 9, EOS, 7, 4, EOS], [BOS, 6, EOS], [BOS, 10, 8, 8, EOS, 5, EOS]]


def batch_of(rows: list[list[int]]) -> Batch:
    examples, labels = cast(tuple[Tokens, Tokens], (_Tokens(rows), _Tokens([[2]] * len(rows))))
    return Examples(examples, labels, max_subwords=20).batch(np.arange(len(rows)))


class ExampleTwin(Twin):
    """A classifier's pass over one example, with everything that LRP from its label needs."""

    def __init__(self, model: Classifier, source: Tensor, rule: Matrices) -> None:
        self.model, self.rule = model, rule  # type: ignore[assignment]
        self.sums = {"encoder": [], "decoder": []}
        states = model.source_embedding(source[None])[0]
        for layer in cast(list[Layer], model.encoder):
            states = self.attend("encoder", f"enc_self.{layer.index}", states, layer)
            states = self.transform("encoder", f"enc_ffn.{layer.index}", states, layer)
        self.encoder_top, self.memory = states, model.encoder_norm(states)
        self.pooler = model.pooler
        self.output = (self.memory[:1] @ self.pooler.weight.T + self.pooler.bias).tanh()
        self.logits = self.output @ model.projection.weight.T + model.projection.bias

    def walk(self, step: int = 0) -> tuple[dict[str, Tensor], float]:
        met: dict[str, Tensor] = {}
        best, projection = int(self.logits[step].argmax()), self.model.projection
        logit = self.logits[step, best : best + 1]
        at_pooled = self.rule.matrix(
            self.output, projection.weight[best : best + 1], projection.bias[best : best + 1], logit[None]
        )
        at_memory = torch.zeros_like(self.memory)
        at_memory[:1] = self.rule.matrix(self.memory[:1], self.pooler.weight, self.pooler.bias, at_pooled)
        relevance = self.rule.norm(self.model.encoder_norm, self.encoder_top, at_memory)
        for taken in reversed(self.sums["encoder"]):
            relevance, _ = self.through_sum(taken, relevance, met)
        return met, float(relevance.sum())


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("order", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("changes", [{}, OF_BERT, {"live": ((0, 2), ())}], ids=["ours", "bert", "fewer"])
@torch.no_grad()
def test_the_walk_from_a_label_equals_a_plain_walk_of_each_example(
    name: str, order: str, changes: dict[str, Any]
) -> None:
    model, batch = random_model(pre_norm=order == "pre-norm", **changes), batch_of(EXAMPLES)
    found = head_relevance(model, batch, rule_of(name, 1e-13))
    assert max(float(part.max()) for part in found.deviations().values()) < 1e-6
    assert next(iter(found.places)) == "pooler" and len(found.logits) == 3
    for number, example in enumerate(EXAMPLES):
        twin = ExampleTwin(model, torch.tensor(example), RULES[name])
        met, _ = twin.walk()
        torch.testing.assert_close(found.logits[number], twin.logits[0].max())
        for layer in range(2):
            wanted = met[f"enc_self.{layer}"].double()
            torch.testing.assert_close(found.heads["enc_self"][layer][number], wanted, rtol=1e-6, atol=1e-8)


def test_all_rules_give_shares_of_a_classifiers_heads() -> None:
    model = random_model(pre_norm=True)
    settings = LrpSettings(rules=("plain", "z-plus", "attnlrp", "voita-2019"))
    rows, conservation = relevance_rows(model, [generated(model, batch_of(EXAMPLES))], settings)
    assert len(rows) == 4 * 6 and {row["attention"] for row in rows} == {"enc_self"}
    assert {row["steps"] for row in rows} == {3}
    assert [row["place"] for row in conservation][:2] == ["pooler", "enc_ffn.1"]
