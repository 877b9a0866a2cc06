"""LRP through the whole model against plain reimplementations, and properties that must hold."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.analysis.lrp.ratio import PlainRatio
from heads.analysis.lrp.released import Voita2019
from heads.analysis.lrp.rows import rule_of
from heads.analysis.lrp.rules import AtAttention, Attended, AttentionBack
from heads.analysis.lrp.steps import head_relevance
from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.batches import Batch, make_batch
from lrp_released_twin import Code2019, ReleasedTwin
from lrp_twin import AttnLrp, Matrices, Plain, Products, Signs, Twin
from shape_facts import LIKE_T5
from slow_ones import slow_but

PLAIN = PlainRatio(1e-12)
RULES = {
    "plain": Matrices(through_softmax=False),
    "plain-softmax": Matrices(through_softmax=True),
    "plain-product": Products(),
    "z-plus": Signs(1.0, through_softmax=True),
    "z-plus-values": Signs(1.0, through_softmax=False),
    "alpha-beta": Signs(0.5, through_softmax=True),
    "alpha-beta-values": Signs(0.5, through_softmax=False),
    "attnlrp": AttnLrp(through_softmax=True),
    "attnlrp-values": AttnLrp(through_softmax=False),
}
AnyModel = TypeVar("AnyModel", bound=Encoder)
LiveHeads = dict[str, tuple[tuple[int, ...], ...]]
HEADLESS: LiveHeads = {"enc_self": ((0, 1, 2), ()), "dec_self": ((), (2,)), "dec_enc": ((1,), ())}
RECURRENT: LiveHeads = {"enc_self": ((0, 1, 2), ()), "dec_self": (), "dec_enc": ((1,), (0, 2))}
IMPORTED: dict[str, Any] = {
    "attention_biases": True,
    "activation": "silu",
    "positions": "halves",
    "tied_projection": True,
    "norm_epsilon": 1e-2,
}
"""Shape settings that differ in imported models."""


def random_model(*, pre_norm: bool, live: LiveHeads | None = None, **changes: Any) -> Transformer:
    """A random model: two layers of width 6, 3 heads of width 2, feed-forward 7; norms and biases as if trained."""
    live = live or full_heads(layers=2, heads=3)
    changes["decoder_past"] = "self_attention" if live["dec_self"] else "ssru"
    return as_if_trained(Transformer(ModelShape(6, 2, 7, 0.0, pre_norm, 11, 13, 3, live, **changes)))


def as_if_trained(model: AnyModel) -> AnyModel:
    """The model in float64, with random weights, biases and norms."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.double().eval().named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if parameter.ndim == 1:
                parameter.copy_(noise * 0.1 + ("norm.weight" in name))
            else:
                parameter.copy_(noise * max(1, parameter.shape[-1]) ** -0.5)
    return model


def random_batch(lengths: list[tuple[int, int]]) -> Batch:
    """Random pairs with these numbers of subwords."""
    generator = np.random.default_rng(6)
    sources = [generator.integers(4, 11, length).astype(np.int32) for length, _ in lengths]
    targets = [generator.integers(4, 13, length).astype(np.int32) for _, length in lengths]
    return make_batch(sources, targets)


def walks(
    twin_of: Callable[[Transformer, Tensor, Tensor], Twin], model: Transformer, batch: Batch
) -> list[tuple[dict[str, Tensor], float, float]]:
    """A twin's results for all steps: relevance at the heads, the total left at the embeddings, the logit."""
    results = []
    for row in range(len(batch.source)):
        source, target = batch.source[row][batch.source_mask[row]], batch.target_input[row][batch.target_mask[row]]
        twin = twin_of(model, source, target)
        for step in range(len(twin.logits)):
            results.append((*twin.walk(step), float(twin.logits[step].max())))
    return results


ORDERS = ("pre-norm", "post-norm")
LIVE = {"all heads": None, "layers without heads": HEADLESS, "recurrent": RECURRENT}
SHAPES: dict[str, dict[str, Any]] = {"ours": {}, "imported": IMPORTED, "T5": LIKE_T5}
EACH_WITH_EACH = [
    tuple(cases[place] for cases, place in zip((tuple(RULES), ORDERS, tuple(LIVE), tuple(SHAPES)), places, strict=True))
    for places in itertools.product(*(range(len(cases)) for cases in (RULES, ORDERS, LIVE, SHAPES)))
    if sum(places) % 3 == 0
]
"""A third of all combinations, in which each rule meets every value of the others, and these meet one another."""


@pytest.mark.parametrize(("name", "order", "heads", "shape"), slow_but(EACH_WITH_EACH[::7], EACH_WITH_EACH))
@torch.no_grad()
def test_the_walk_of_all_steps_equals_a_plain_walk_of_each(name: str, order: str, heads: str, shape: str) -> None:
    live, changes = LIVE[heads], SHAPES[shape]
    if changes is LIKE_T5 and name == "plain-product":  # a factor's share depends on how the product was scaled
        changes = {**LIKE_T5, "scaled_products": True}
    model, batch = random_model(pre_norm=order == "pre-norm", live=live, **changes), random_batch([(3, 4), (2, 2)])
    found = head_relevance(model, batch, rule_of(name, 1e-13))
    expected = walks(partial(Twin, rule=RULES[name]), model, batch)
    assert max(float(part.max()) for part in found.deviations().values()) < 1e-7
    assert len(found.logits) == len(expected) == 8
    for step, (met, _, logit) in enumerate(expected):
        torch.testing.assert_close(float(found.logits[step]), logit)
        for kind, layer in itertools.product(model.shape.kinds, range(2)):
            torch.testing.assert_close(
                found.heads[kind][layer][step], met[f"{kind}.{layer}"].double(), rtol=1e-6, atol=1e-8
            )


@pytest.mark.parametrize("eps", slow_but([0.01], [1e-7, 0.01]))
@pytest.mark.parametrize("order", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("live", [None, HEADLESS], ids=["all-heads", "layers-without-heads"])
@torch.no_grad()
def test_the_walk_by_the_released_code_equals_that_code(eps: float, order: str, live: LiveHeads | None) -> None:
    """The position of eps matters only when it is large."""
    twin = partial(ReleasedTwin, rule=Code2019(eps))
    model, batch = random_model(pre_norm=order == "pre-norm", live=live), random_batch([(3, 4), (2, 2)])
    found, expected = head_relevance(model, batch, Voita2019(eps)), walks(twin, model, batch)
    assert len(expected) == 8
    for step, (met, _, _) in enumerate(expected):
        for kind, layer in itertools.product(ATTENTIONS, range(2)):
            torch.testing.assert_close(found.heads[kind][layer][step], met[f"{kind}.{layer}"].double())
    left = torch.tensor([amount for _, amount, _ in expected], dtype=torch.float64)
    torch.testing.assert_close(found.places["enc_self.0"][:, 0], left)


def test_the_names_stand_for_the_codes_with_their_own_constants() -> None:
    assert rule_of("voita-2019", 0.5) == Voita2019(1e-7)


def test_the_rule_of_the_released_code_knows_no_recurrent_decoder_and_says_so() -> None:
    model = random_model(pre_norm=True, live=RECURRENT)
    with pytest.raises(UserError, match=r"does not support recurrent decoders: remove it from lrp\.rules\.$"):
        head_relevance(model, random_batch([(3, 4)]), rule_of("voita-2019", 1e-13))


@torch.no_grad()
def test_relevance_that_meets_nothing_but_a_bias_ends_there_and_is_accounted_for() -> None:
    model, batch = random_model(pre_norm=True), random_batch([(3, 4)])
    model.get_parameter("decoder.0.feedforward.inner.bias").fill_(-50.0)
    model.get_parameter("decoder.1.feedforward.inner.bias").fill_(-50.0)
    for _, left, logit in walks(partial(Twin, rule=Plain()), model, batch):
        assert abs(left - logit) > 1e-3
    assert max(float(part.max()) for part in head_relevance(model, batch, PLAIN).deviations().values()) < 1e-7


@torch.no_grad()
def test_the_account_notices_relevance_that_a_wrong_rule_loses() -> None:
    class Leaking(PlainRatio):
        def attention(self, seen: Attended) -> AttentionBack:
            back = super().attention(seen)
            return lambda multiplier, account: AtAttention(0.5 * back(multiplier, account).values)

    found = head_relevance(random_model(pre_norm=True), random_batch([(3, 4)]), Leaking(1e-12))
    deviations = found.deviations()
    assert float(deviations["dec_ffn.1"].max()) < 1e-9
    assert float(deviations["enc_self.0"].min()) > 1e-3


@pytest.mark.parametrize("chunk_elements", [1, 200, 10**6])
def test_how_many_steps_are_walked_together_changes_nothing(chunk_elements: int) -> None:
    model, batch = random_model(pre_norm=True), random_batch([(3, 4), (2, 6), (5, 1)])
    expected, found = head_relevance(model, batch, PLAIN), head_relevance(model, batch, PLAIN, chunk_elements)
    for kind, layer in itertools.product(ATTENTIONS, range(2)):
        torch.testing.assert_close(found.heads[kind][layer], expected.heads[kind][layer])


def test_batch_mates_and_padding_change_nothing() -> None:
    model = random_model(pre_norm=True)
    whole = head_relevance(model, random_batch([(3, 4), (5, 1), (2, 6)]), PLAIN)
    batch = random_batch([(3, 4), (5, 1), (2, 6)])
    alone = make_batch([batch.source[2, :2].numpy()], [batch.target_output[2, :6].numpy()])
    found = head_relevance(model, alone, PLAIN)
    for kind, layer in itertools.product(ATTENTIONS, range(2)):
        torch.testing.assert_close(whole.heads[kind][layer][5 + 2 :], found.heads[kind][layer])


def test_a_head_whose_slice_of_the_output_projection_is_zero_meets_no_relevance() -> None:
    model = random_model(pre_norm=False)
    with torch.no_grad():
        model.get_parameter("decoder.1.cross_attention.output.weight")[:, 2:4] = 0.0
        model.get_parameter("encoder.0.self_attention.output.weight")[:, 4:6] = 0.0
    found = head_relevance(model, random_batch([(3, 4), (2, 2)]), PLAIN)
    assert (found.heads["dec_enc"][1][:, 1] == 0).all()
    assert (found.heads["enc_self"][0][:, 2] == 0).all()
    assert (found.heads["dec_enc"][1][:, [0, 2]] != 0).all()


def test_later_subwords_of_the_target_do_not_matter_to_a_step() -> None:
    model, batch = random_model(pre_norm=True), random_batch([(3, 4)])
    before = head_relevance(model, batch, PLAIN)
    batch.target_input[0, 3] = 4 + (batch.target_input[0, 3] - 3) % 9
    after = head_relevance(model, batch, PLAIN)
    torch.testing.assert_close(after.heads["dec_self"][0][:3], before.heads["dec_self"][0][:3])
    assert not torch.allclose(after.heads["dec_self"][0][3], before.heads["dec_self"][0][3])


def test_a_position_that_sees_itself_alone_makes_nothing_of_rounding(tiny_shape: Callable[..., ModelShape]) -> None:
    """In wide models, one matrix product and three side by side differ in their last bits."""
    shape = tiny_shape(width=128, head_width=16, original_heads=8, live_heads=full_heads(layers=2, heads=8))
    torch.manual_seed(2)
    model = Transformer(shape).double().eval()
    generator = np.random.default_rng(3)
    sides = [[generator.integers(4, 9, n).astype(np.int32) for n in (9, 7, 5)] for _ in range(2)]
    found = head_relevance(model, make_batch(*sides), rule_of("z-plus", 1e-12))
    assert max(float(deviation.max()) for deviation in found.deviations().values()) < 1e-9
