"""bf16 is used only in matrix products, and only if it is asked for and the processor gains by it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heads.model import attention
from heads.training import devices
from heads.training.devices import products_dtype
from heads.training.loop import Training
from heads.training.optimizers import Muon

New = Callable[..., Training]
CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"avx512_bf16": True, "amx_bf16": False, "cpu_name": "AMD EPYC 9R14"}, torch.bfloat16),
        ({"avx512_bf16": True, "amx_bf16": True, "cpu_name": "Intel Xeon"}, torch.bfloat16),
        ({"avx512_bf16": True, "amx_bf16": False, "cpu_name": "Intel Xeon"}, torch.float32),
        ({"avx512_bf16": False, "amx_bf16": True, "cpu_name": "Intel Xeon"}, torch.bfloat16),
        ({"avx512_bf16": False, "amx_bf16": False}, torch.float32),
        ({"architecture": "aarch64"}, torch.float32),
    ],
)
def test_a_cpu_multiplies_in_bf16_if_asked_and_if_it_gains_by_it(
    monkeypatch: pytest.MonkeyPatch, features: dict[str, Any], expected: torch.dtype
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "get_capabilities", lambda: features)
    assert products_dtype("bf16", CPU) is expected
    assert products_dtype("fp32", CPU) is torch.float32
    assert products_dtype("bf16", GPU) is torch.bfloat16
    assert products_dtype("fp32", GPU) is torch.float32


class Products(TorchDispatchMode):
    """Records the precision of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.dtype] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            self.found.append(out.dtype)
        return out


def bf16(new_training: New, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Training:
    """A training in bf16 on any processor; torch emulates what this one lacks."""
    monkeypatch.setattr(devices.torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    return new_training(precision="bf16", **changes)


def test_a_training_in_bf16_has_maps_in_bf16_attention_in_fp32_and_weights_in_fp32(
    new_training: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = []
    attend: Any = attention.attend

    def watched(queries: Tensor, keys: Tensor, values: Tensor, *options: Any, causal: bool) -> Tensor:
        heads: Tensor = attend(queries, keys, values, *options, causal=causal)
        attended.append({part.dtype for part in (heads, queries, keys, values)})
        return heads

    training = bf16(new_training, monkeypatch)
    monkeypatch.setattr(attention, "attend", watched)
    with Products() as products:
        training.step(np.arange(9))
    assert attended == [{torch.float32}] * 6, "2 layers of the encoder, 2 of the decoder with two attentions each"
    assert set(products.found) == {torch.bfloat16}
    maps = sum(parameter.dim() == 2 for parameter in training.model.parameters())
    assert len(products.found) > maps, "those of forward and backward passes"
    for value in [*training.model.parameters(), *training.optimizers.state().values()]:
        assert value.dtype is torch.float32
    for value in training.model.parameters():
        assert value.grad is not None
        assert value.grad.dtype is torch.float32


def test_bf16_learns_like_fp32(new_training: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean loss of the same updates agrees within 0.5 % but is not equal; single losses drift apart."""
    means = []
    exact, rough = new_training(), bf16(new_training, monkeypatch)
    for training in (exact, rough):
        losses = [float(training.step(np.arange(20) + update % 4)["loss"]) for update in range(30)]
        assert losses[-1] < 0.8 * losses[0]
        means.append(np.mean(losses))
    assert means[1] != means[0]
    assert means[1] == pytest.approx(means[0], rel=0.005)


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_muon_multiplies_in_the_numbers_of_the_training(
    new_training: New, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    _, muon = new_training(precision=precision, optimizer="muon").optimizers.each
    assert isinstance(muon, Muon)
    assert muon.dtype is (torch.bfloat16 if precision == "bf16" else torch.float32)
