"""Measures of a classifier against plain reimplementations: LRP from a label's logit, and which positions count."""

from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_lrp_model import RULES, as_if_trained
from torch import Tensor

from heads.analysis.attention_weights import attend
from heads.analysis.confidence import confidence
from heads.analysis.importance import importance_rows
from heads.analysis.lrp.rows import generated, relevance_rows, rule_of
from heads.analysis.lrp.steps import head_relevance
from heads.config.analyses import LrpSettings
from heads.model.encoder_only import Classifier
from heads.model.shape import ModelShape
from heads.model.sublayers import Layer
from heads.syntax.words import Words
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
        self.model, self.rule, self.query_factor = model, rule, 1.0  # type: ignore[assignment]
        self.added = {}
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
