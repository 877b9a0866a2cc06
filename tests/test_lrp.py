"""The rules of single operations against matrices and loops, and the table."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn

from heads.checkpoints import save_model
from heads.cli import lrp as command
from heads.files import read_tsv, write_text
from heads.lrp.rows import relevance_rows, shares
from heads.lrp.rules import Back, PlainRatio, stabilised
from heads.lrp.walk import head_relevance
from heads.names import ATTENTIONS
from test_lrp_model import SETTINGS, LiveHeads, random_batch, random_model

RULE = PlainRatio(1e-13)


def randn(*shape: int, seed: int = 1) -> Tensor:
    """Seeded normal numbers in float64."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shared_out(matrix: Tensor, inputs: Tensor, relevance: Tensor) -> Tensor:
    """The plain ratio, neuron by neuron: relevance [V] of the outputs of `matrix` [V, U] to that of inputs [U]."""
    received = torch.zeros_like(inputs)
    for v in range(len(relevance)):
        total = sum(matrix[v, u] * inputs[u] for u in range(len(inputs)))
        for u in range(len(inputs)):
            received[u] += matrix[v, u] * inputs[u] / total * relevance[v]
    return received


def assert_shares_out(back: Back, inputs: Tensor, outputs: Tensor, matrices: Tensor, steps: int = 4) -> None:
    """`back` agrees with the plain ratio of each position's matrix [B, Q, V, U], for several steps at once."""
    multiplier = randn(len(inputs), steps, *outputs.shape[1:], seed=9)
    received = inputs[:, None] * back(multiplier)
    for b, g, q in np.ndindex(*multiplier.shape[:3]):
        relevance = multiplier[b, g, q] * outputs[b, q]
        torch.testing.assert_close(received[b, g, q], shared_out(matrices[b, q], inputs[b, q], relevance))
        torch.testing.assert_close(received[b, g, q].sum(), relevance.sum())


@pytest.mark.parametrize("bias", ["with a bias", ""])
@torch.no_grad()
def test_a_linear_layer_shares_relevance_in_the_ratio_of_contributions(bias: str) -> None:
    layer, inputs = nn.Linear(6, 7, bias=bool(bias)).double(), randn(2, 3, 6)
    outputs, back = RULE.linear(layer, inputs)
    torch.testing.assert_close(outputs, layer(inputs))
    assert_shares_out(back, inputs, outputs, layer.weight.expand(2, 3, 7, 6))


@torch.no_grad()
def test_a_relu_passes_relevance_on_unchanged() -> None:
    layer, inputs = nn.Linear(6, 7).double(), randn(2, 3, 6)
    outputs, back = RULE.relu_of_linear(layer, inputs)
    torch.testing.assert_close(outputs, layer(inputs).relu())
    assert_shares_out(back, inputs, outputs, layer.weight.expand(2, 3, 7, 6))


def test_a_layer_norm_shares_as_its_jacobian_at_a_fixed_standard_deviation() -> None:
    norm, inputs = nn.LayerNorm(6).double(), randn(2, 3, 6) + 0.5
    nn.init.normal_(norm.weight, 1, 0.1, generator=torch.Generator().manual_seed(2))
    nn.init.normal_(norm.bias, 0, 0.1, generator=torch.Generator().manual_seed(3))
    deviation = (inputs.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()

    def linearised(row: Tensor, fixed: Tensor) -> Tensor:
        return (row - row.mean()) / fixed * norm.weight

    jacobian = torch.func.vmap(torch.func.vmap(torch.func.jacrev(linearised)))(inputs, deviation)
    with torch.no_grad():
        assert_shares_out(RULE.norm(norm, inputs), inputs, norm(inputs), jacobian.detach())


def test_attention_shares_a_heads_relevance_among_values_in_the_ratio_over_keys() -> None:
    weights, values, multiplier = randn(2, 3, 4, 5).softmax(-1), randn(2, 5, 3, 2), randn(2, 6, 4, 3, 2, seed=4)
    found = values[:, None] * RULE.attention(weights, multiplier)
    expected = torch.zeros_like(found)
    for b, g, h, e in np.ndindex(2, 6, 3, 2):
        outputs = weights[b, h] @ values[b, :, h, e]
        expected[b, g, :, h, e] = shared_out(weights[b, h], values[b, :, h, e], outputs * multiplier[b, g, :, h, e])
    torch.testing.assert_close(found, expected)


def test_the_stabiliser_moves_a_denominator_away_from_zero_and_upwards_at_zero() -> None:
    denominators = torch.tensor([-2.0, -0.0, 0.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([-2.25, 0.25, 0.25, 3.25], dtype=torch.float64)
    torch.testing.assert_close(stabilised(denominators, 0.25), expected)


def test_shares_sum_to_one_and_a_step_whose_relevance_cancels_is_left_out() -> None:
    relevance = torch.tensor([[3.0, -1.0, 2.0], [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    signed, absolute, usable = shares(relevance, 1e-9)
    torch.testing.assert_close(signed[0], torch.tensor([0.75, -0.25, 0.5], dtype=torch.float64))
    torch.testing.assert_close(absolute[0], torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64) / 6)
    assert usable.tolist() == [True, False, False]
    assert not signed[1:].any()
    assert not absolute[1:].any()


def test_the_table_averages_shares_over_all_steps_and_names_original_heads() -> None:
    live: LiveHeads = {"enc_self": ((0, 2), ()), "dec_self": ((), (1, 2)), "dec_enc": ((1,), (0, 1, 2))}
    model, batches = random_model(pre_norm=True, live=live), [random_batch([(3, 4), (2, 2)]), random_batch([(5, 1)])]
    table = relevance_rows(model.float(), batches, SETTINGS)
    heads = [(row["attention"], row["layer"], row["head"]) for row in table.rows]
    assert heads == [(kind, i, head) for kind in ATTENTIONS for i, layer in enumerate(live[kind]) for head in layer]
    parts = [head_relevance(model.double(), batch, SETTINGS).heads["dec_enc"][1] for batch in batches]
    steps = [step / step.sum() for part in parts for step in part]
    found = [row for row in table.rows if row["attention"] == "dec_enc" and row["layer"] == 1]
    assert [row["relevance"] for row in found] == pytest.approx((sum(steps) / len(steps)).tolist())
    assert [row["steps"] for row in found] == [5 + 3 + 2] * 3
    assert sum(float(str(row["relevance_absolute"])) for row in found) == pytest.approx(1)
    assert (table.steps, table.left_out) == (10, 0)


def test_a_layer_that_no_relevance_reaches_has_rows_of_zero_and_no_steps() -> None:
    model = random_model(pre_norm=True)
    nn.init.zeros_(model.get_parameter("decoder.0.cross_attention.output.weight"))
    table = relevance_rows(model, [random_batch([(3, 4)])], SETTINGS)
    rows = [row for row in table.rows if row["attention"] == "dec_enc" and row["layer"] == 0]
    assert [(row["relevance"], row["relevance_absolute"], row["steps"]) for row in rows] == [(0.0, 0.0, 0)] * 3
    assert table.left_out == 5


@pytest.mark.parametrize("stabiliser", [0.5, float("nan")])
def test_relevance_that_is_not_conserved_is_an_error(stabiliser: float) -> None:
    coarse = dataclasses.replace(SETTINGS, stabiliser=stabiliser)
    with pytest.raises(ValueError, match="not conserved"):
        relevance_rows(random_model(pre_norm=True), [random_batch([(3, 4)])], coarse)


def test_the_generated_prefix_is_what_the_model_finds_likeliest_at_every_step() -> None:
    model = random_model(pre_norm=True)
    with torch.no_grad():
        model.projection.bias[[0, 1, 3]] = -50.0  # a search never takes these pieces
    batch = command.generated(model, random_batch([(3, 4), (2, 2)]))
    chosen = model.projection(model(batch.source, batch.source_mask, batch.target_input)).argmax(-1)
    # The last step may be an end that the length limit forced.
    below_limit = torch.arange(chosen.shape[1]) < batch.target_mask.sum(1, keepdim=True) - 1
    checked = batch.target_mask & below_limit
    assert checked.sum() > 2
    assert torch.equal(chosen[checked], batch.target_output[checked])


def test_the_command_writes_the_table_of_the_generated_batches(tmp_path: Path) -> None:
    model, batch = random_model(pre_norm=False).float(), random_batch([(3, 4), (2, 2)])
    save_model(model, tmp_path / "model.safetensors", tmp_path / "model.json", {})
    write_text(tmp_path / "lrp.yaml", "lrp: {sentences: 2, batch_tokens: 7, stabiliser: 0.000000001}\n")
    for side, lengths in (("source", (3, 2)), ("target", (4, 2))):
        ids = [getattr(batch, f"{side}_output" if side == "target" else side)[i, :n] for i, n in enumerate(lengths)]
        offsets = np.array([0, lengths[0], sum(lengths)])
        save_file({"ids": torch.cat(ids).int().numpy(), "offsets": offsets}, tmp_path / f"{side}.safetensors")
    names = {"model": "model.safetensors", "shape": "model.json", "settings": "lrp.yaml", "out": "lrp.tsv"}
    names |= {side: f"{side}.safetensors" for side in ("source", "target")}
    paths = {flag: tmp_path / name for flag, name in names.items()}
    command.run(argparse.Namespace(**paths, device="cpu", threads=1))
    expected = relevance_rows(model, [command.generated(model, batch)], SETTINGS).rows
    found = read_tsv(tmp_path / "lrp.tsv")
    assert [float(row["relevance"]) for row in found] == pytest.approx([row["relevance"] for row in expected], rel=1e-4)
    assert [row["steps"] for row in found] == [str(row["steps"]) for row in expected]
