"""The stand-in raises where CUDA does, waits where CUDA waits, and computes what the CPU computes."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from standin import Away, Waited, never_waiting
from torch import Tensor, nn

VALUES = torch.arange(12.0).view(3, 4) - 5
PLACES = torch.tensor([2, 0])
MASK = VALUES > 0

MIXED: dict[str, Callable[[Tensor], Any]] = {
    "a sum": lambda x: x + VALUES,
    "a product": lambda x: x @ VALUES.T,
    "a bias": lambda x: F.linear(x, x, torch.ones(3)),
    "where": lambda x: torch.where(MASK, x, 0.0),
    "a list of tensors": lambda x: torch.cat([x, VALUES]),
    "a stack": lambda x: torch.stack([x, VALUES]),
    "rows by index_select": lambda x: x.index_select(0, PLACES),
    "rows of an embedding": lambda x: F.embedding(PLACES, x),
    "values by gather": lambda x: x.gather(0, PLACES[:, None]),
    "a mask to fill": lambda x: x.masked_fill(MASK, 0.0),
    "a sum into a tensor of the CPU": lambda x: torch.zeros(3, 4).add_(x),
    "a sum into a number of the CPU": lambda x: torch.tensor(1.0).add_(x[0, 0]),
    "values put by rows": lambda x: x.index_put((PLACES,), torch.ones(2, 4)),
    "rows added": lambda x: x.index_add(0, PLACES, x[:2]),
    "a tensor of the CPU at places of the device": lambda x: VALUES[x.new_tensor([2, 0]).long()],
    "elements that are in others": lambda x: torch.isin(x, VALUES),
    "targets of a loss": lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3])),
    "noise of another generator": lambda x: torch.rand(3, generator=torch.Generator(), device=x.device),
    "a map on the CPU": lambda x: nn.Linear(4, 5)(x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], VALUES[None]),
}
"""What a GPU does not do with tensors of two devices."""


@pytest.mark.parametrize("what", MIXED)
def test_tensors_of_two_devices_do_not_mix(gpu: torch.device, what: str) -> None:
    with pytest.raises(RuntimeError, match=r"(on|have) the same device|Expected a 'standin' device"):
        MIXED[what](VALUES.to(gpu))


FREE: dict[str, Callable[[Tensor], Tensor]] = {
    "a single number": lambda x: x * torch.tensor(2.0),
    "a single number first": lambda x: torch.tensor(2.0) - x,
    "rows by an index": lambda x: x[PLACES],
    "values by a mask": lambda x: x[MASK],
    "a number put at places": lambda x: x.index_put((PLACES,), torch.tensor(7.0)),
    "a copy": lambda x: x.clone().copy_(VALUES + 1),
    "a part overwritten": lambda x: _overwritten(x),
    "fresh ones of the same kind": lambda x: torch.ones_like(x) + x.new_zeros(4),
}
"""What a GPU does with them, and what is computed without a word about the device."""


def _overwritten(x: Tensor) -> Tensor:
    x = x.clone()
    x[1:, 2:] = VALUES[:2, :2]
    x.add_(1).t().mul_(2)
    return x


@pytest.mark.parametrize("what", FREE)
def test_what_a_gpu_does_is_done_and_stays_there(gpu: torch.device, what: str) -> None:
    found = FREE[what](VALUES.to(gpu))
    assert found.device == gpu
    assert torch.equal(found.cpu(), FREE[what](VALUES))


READING: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x[0, 0].item(),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "bool": lambda x: bool(x.any()),
    "if": lambda x: 1 if x.any() else 0,
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "a copy onto the CPU": lambda x: torch.zeros(3, 4).copy_(x),
    "a copy from the CPU": lambda x: torch.ones(3).to(x.device),
    "a number from Python": lambda x: torch.tensor(3.0, device=x.device),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0),
    "values by a mask": lambda x: x[x > 0],
    "values put by a mask": lambda x: x.clone().index_put_((x > 0,), x.new_zeros(())),
    "masked_select": lambda x: x.masked_select(x > 0),
    "places on the CPU": lambda x: x[PLACES],
    "a row by a number there": lambda x: x[x[1, 2].long()],
    "equal": lambda x: torch.equal(x, x),
    "unique": lambda x: x.unique(),
    "a number in a text": lambda x: f"{x.sum():.3f}",
}  # fmt: skip
"""What the CPU has to wait for."""


@pytest.mark.parametrize("what", READING)
def test_what_waits_for_the_device_is_found_where_nothing_may(gpu: torch.device, what: str) -> None:
    x = VALUES.to(gpu)
    READING[what](x)
    with never_waiting(), pytest.raises(Waited):
        READING[what](x)


def test_what_does_not_wait_is_let_through(gpu: torch.device) -> None:
    x, places = VALUES.to(gpu), PLACES.to(gpu)
    with never_waiting():
        x.new_zeros(4) + torch.arange(4, device=gpu) + torch.ones(4).to(gpu, non_blocking=True)
        x[places].to(torch.bfloat16).masked_fill(x[places] > 0, 0.0).cumsum(0).topk(2)
        assert x[1:, None].shape == (2, 1, 4) and len(x) == 3


@pytest.mark.parametrize("read", [lambda x: x.numpy(), np.asarray, lambda x: np.array([*x])])
def test_numpy_does_not_read_the_device(gpu: torch.device, read: Callable[[Tensor], Any]) -> None:
    with pytest.raises(TypeError, match="can't convert standin:0 device type tensor to numpy"):
        read(VALUES.to(gpu))


def test_what_is_made_without_a_device_is_on_the_cpu(gpu: torch.device) -> None:
    made = (torch.tensor([1.0]), torch.arange(3), torch.zeros(2), torch.from_numpy(np.ones(2)), torch.rand(2))
    assert {type(one) for one in made} == {Tensor}
    assert {type(one) for one in (torch.eye(2, device=gpu), torch.full((2,), 3.0, device=gpu))} == {Away}


def test_a_module_moves_with_its_parameters_and_learns_there_as_on_the_cpu(gpu: torch.device) -> None:
    torch.manual_seed(1)
    here = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 2))
    there = copy.deepcopy(here)
    before = [*there.parameters()]
    there.to(gpu).double().float()
    assert all(one is other and one.device == gpu for one, other in zip(before, there.parameters(), strict=True))
    there = copy.deepcopy(there)
    for model, x in ((here, VALUES), (there, VALUES.to(gpu))):
        for fused in (True, False):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
            for _ in range(2):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
    for one, other in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(other.detach().cpu(), one.detach())


def test_mixed_precision_multiplies_in_bf16_there(gpu: torch.device) -> None:
    x = VALUES.to(gpu)
    with torch.autocast(gpu.type, torch.bfloat16):
        assert F.linear(x, x).dtype is torch.bfloat16
    assert F.linear(x, x).dtype is torch.float32


def test_inference_mode_holds_there(gpu: torch.device) -> None:
    x = VALUES.to(gpu)
    with torch.inference_mode():
        made = x[1:] * 2
        made += 1
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        made.add_(1)
    x.add_(1)
