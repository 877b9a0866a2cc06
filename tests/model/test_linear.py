"""The linear map against its formula with either library, and which library multiplies."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

import heads.model.linear
from heads.model.linear import ONEDNN, ROWS, Linear, by_intel, filled, onednn_gains, onednn_trains, weight_gradient


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("outputs", [0, 5])
@torch.no_grad()
def test_it_is_the_formula_in_any_mode_and_precision(
    monkeypatch: pytest.MonkeyPatch, *, bias: bool, dtype: torch.dtype, inference: bool, outputs: int
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(heads.model.linear, "LEAST_PRODUCTS", 0)
    linear, states = Linear(3, outputs, bias=bias).to(dtype), torch.randn(2, 4, 3, dtype=dtype)
    weight, shift = linear.weight, linear.bias if bias else torch.zeros(outputs, dtype=dtype)
    expected = [[[weight[o] @ state + shift[o] for o in range(outputs)] for state in row] for row in states]
    with torch.inference_mode() if inference else nullcontext():
        found = linear(states)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.tensor(expected, dtype=dtype).view(2, 4, outputs))


@pytest.mark.parametrize(("name", "expected"), [("Intel Xeon", True), ("AMD EPYC 9R14", False), ("", False)])
def test_a_processor_is_intels_by_its_name(name: str, *, expected: bool) -> None:
    assert by_intel({"cpu_name": name, "avx512_bf16": True}) is expected
    assert not by_intel({"architecture": "aarch64"})


def test_onednn_is_left_alone_where_mkl_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    amd, intel = {"cpu_name": "AMD EPYC 9R14"}, {"cpu_name": "Intel Xeon"}
    assert onednn_gains(torch.cpu.get_capabilities()) == ONEDNN
    assert onednn_gains(amd)
    assert not onednn_gains(intel)
    assert onednn_trains(amd | {"avx512_f": True})
    assert not onednn_trains(amd | {"avx512_f": False}) and not onednn_trains(amd)
    assert not onednn_trains(intel | {"avx512_f": True})
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not onednn_gains(amd)


def test_only_products_of_float32_that_are_large_enough_are_left_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    linear, states, asked = Linear(64, 32), torch.randn(7, 64), list[tuple[int, ...]]()
    monkeypatch.setattr(heads.model.linear, "ONEDNN", True)
    monkeypatch.setattr(heads.model.linear, "LEAST_PRODUCTS", 7 * 64 * 32)

    def onednn(left: torch.Tensor, right: torch.Tensor, *_: object) -> torch.Tensor:
        asked.append((*left.shape, *right.shape))
        return left @ right.T

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", onednn)
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            linear(states)
            linear(states[1:])
    for trains in (True, False):
        monkeypatch.setattr(heads.model.linear, "ONEDNN_TRAINS", trains)
        linear(states)
        linear(states[1:])
    linear.double()(states.double())
    assert asked == [(7, 64, 32, 64)] * 2 + [(ROWS, 64, 32, 64)]


@pytest.mark.parametrize("learning", [True, False])
def test_a_graph_for_any_number_of_rows_is_exported_in_torchs_own_words(
    monkeypatch: pytest.MonkeyPatch, *, learning: bool
) -> None:
    torch.manual_seed(1)
    linear, states = Linear(64, 32), torch.randn(5, 64)
    linear.requires_grad_(learning)
    monkeypatch.setattr(heads.model.linear, "ONEDNN", True)
    monkeypatch.setattr(heads.model.linear, "ONEDNN_TRAINS", True)
    monkeypatch.setattr(heads.model.linear, "LEAST_PRODUCTS", 0)
    graph = torch.export.export(linear, (torch.randn(7, 64),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert "mkldnn" not in str(graph)
    torch.testing.assert_close(graph.module()(states), states @ linear.weight.T + linear.bias)


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.dtype]:
    """Both precisions in which oneDNN computes a training's products, whatever the processor and however small."""
    monkeypatch.setattr(heads.model.linear, "ONEDNN", True)
    monkeypatch.setattr(heads.model.linear, "ONEDNN_TRAINS", True)
    monkeypatch.setattr(heads.model.linear, "LEAST_PRODUCTS", 0)
    with torch.autocast("cpu", torch.bfloat16, enabled=request.param is torch.bfloat16):
        yield request.param


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [0, 5])
@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, ROWS + 1])
def test_in_training_it_is_the_formula_with_its_gradients_however_many_rows_there_are(
    precision: torch.dtype, *, bias: bool, outputs: int, rows: int
) -> None:
    """With small whole numbers, which bf16 holds exactly, as it does all sums here."""
    generator = torch.Generator().manual_seed(rows)

    def whole(*size: int) -> torch.Tensor:
        return torch.randint(-1, 2, size, generator=generator).float()

    linear, states, slopes = Linear(3, outputs, bias=bias), whole(1, rows, 3), whole(1, rows, outputs)
    for parameter in linear.parameters():
        parameter.data = whole(*parameter.shape)
    states.requires_grad_()
    found = linear(states)
    found.backward(slopes.to(precision))
    weight, shift = linear.weight.detach(), linear.bias.detach() if bias else torch.zeros(outputs)
    assert found.dtype is precision
    assert torch.equal(found.float(), torch.einsum("brd,od->bro", states.detach(), weight) + shift)
    assert states.grad is not None
    assert torch.equal(states.grad, torch.einsum("bro,od->brd", slopes, weight))
    assert linear.weight.grad is not None
    assert torch.equal(linear.weight.grad, torch.einsum("bro,brd->od", slopes, states.detach()))
    if bias:
        assert linear.bias.grad is not None
        assert torch.equal(linear.bias.grad, slopes.sum((0, 1)))


@pytest.mark.parametrize(("width", "outputs"), [(3, 5), (5, 3)])
def test_a_gradient_of_weights_is_right_whichever_side_is_wider(
    precision: torch.dtype, width: int, outputs: int
) -> None:
    inputs, slopes = torch.arange(4.0 * width).view(4, width) % 3, torch.arange(4.0 * outputs).view(4, outputs) % 5
    found = weight_gradient(slopes.to(precision), inputs.to(precision))
    assert torch.equal(found.float(), torch.einsum("no,nd->od", slopes, inputs))


def test_what_is_frozen_costs_no_product_and_states_that_are_not_asked_for_none(precision: torch.dtype) -> None:
    linear, states = Linear(3, 5, bias=False), torch.ones(2, 3)
    linear(states).sum().backward()
    assert states.grad is None
    assert linear.weight.grad is not None
    linear.weight.requires_grad, linear.weight.grad = False, None
    linear(states.requires_grad_()).sum().backward()
    assert linear.weight.grad is None
    torch.testing.assert_close(states.grad, linear.weight.to(precision).sum(0).float().expand(2, 3))


def test_products_in_training_are_of_few_different_numbers_of_rows(precision: torch.dtype) -> None:
    """oneDNN compiles for each number of rows separately."""
    sizes = {filled(torch.ones(2, rows, 3), precision).shape for rows in range(1, 2 * ROWS)}
    assert sizes == {(ROWS, 3), (2 * ROWS, 3), (3 * ROWS, 3), (4 * ROWS, 3)}
    assert float(filled(torch.ones(2, 5, 3), precision).sum()) == 30
