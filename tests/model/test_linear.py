"""The linear map against its formula, whoever multiplies, and who does."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

import heads.model.linear
from heads.model.linear import Linear


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("outputs", [0, 5])
@torch.no_grad()
def test_it_is_the_formula_in_any_mode_and_precision(
    *, bias: bool, dtype: torch.dtype, inference: bool, outputs: int
) -> None:
    torch.manual_seed(1)
    linear, states = Linear(3, outputs, bias=bias).to(dtype), torch.randn(2, 4, 3, dtype=dtype)
    weight, shift = linear.weight, linear.bias if bias else torch.zeros(outputs, dtype=dtype)
    expected = [[[weight[o] @ state + shift[o] for o in range(outputs)] for state in row] for row in states]
    with torch.inference_mode() if inference else nullcontext():
        found = linear(states)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.tensor(expected, dtype=dtype).view(2, 4, outputs))


def test_nothing_but_inference_is_left_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training is the same to the last bit as with torch's own."""
    torch.manual_seed(1)
    linear, states = Linear(64, 64), torch.randn(7, 64)
    monkeypatch.setattr(heads.model.linear, "ONEDNN", True)
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *_: "oneDNN")
    with torch.inference_mode():
        assert linear(states) == "oneDNN"
    with torch.no_grad():
        assert torch.equal(linear(states), torch.nn.functional.linear(states, linear.weight, linear.bias))
