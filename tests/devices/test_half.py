"""A GPU's updates are computed by a copy in bf16, whose gradients move weights in fp32."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heads.pruning.gates import HardConcreteGates
from heads.training.loop import Training
from heads.training.optimizers import hidden_matrices
from slow_ones import slow_but
from trainings_elsewhere import New, on

CPU = torch.device("cpu")
MEMBERS = np.arange(12)


def gradients(training: Training) -> dict[str, Tensor]:
    """The gradients of a training's weights, and of its gates, after an update without gates' noise."""
    pruning = training.pruning
    gates = None
    if pruning is not None:
        assert isinstance(pruning.gates, HardConcreteGates)
        gates = pruning.gates.chances()  # between 0 and 1, and not random
    training.cross_entropy(MEMBERS, training.prepare(MEMBERS)[1], gates)
    named = [*training.model.named_parameters(), *(pruning.gates.named_parameters() if pruning else ())]
    return {name: one.grad.cpu() for name, one in named if one.grad is not None}


def both(new_training: New, gpu: torch.device, target: str = "", scope: str = "all", **how: Any) -> list[Training]:
    """The same training in fp32 on the CPU, and in bf16 on the device."""

    def new(precision: str) -> Training:
        return new_training(precision=precision, batch_tokens=200, **how)

    return [on(CPU, new("fp32"), target, scope), on(gpu, new("bf16"), target, scope)]


@pytest.mark.parametrize("micro_batch_tokens", slow_but([25], [200, 25]))
@pytest.mark.parametrize(
    ("target", "scope"),
    slow_but([("", ""), ("lam-0.3", "enc_self")], [("", ""), ("lam-0.3", "all"), ("lam-0.3", "enc_self")]),
)
@pytest.mark.parametrize("model", [{}, {"tied_projection": True}], ids=["untied", "tied"])
def test_gradients_in_bf16_are_those_in_fp32_up_to_rounding(
    new_training: New, gpu: torch.device, micro_batch_tokens: int, target: str, scope: str, model: dict[str, Any]
) -> None:
    exact, rough = map(
        gradients, both(new_training, gpu, target, scope, model=model, micro_batch_tokens=micro_batch_tokens)
    )
    assert rough.keys() == exact.keys()
    assert {one.dtype for one in rough.values()} == {torch.float32}
    for name, gradient in exact.items():
        assert alike(rough[name], gradient) > 0.95, name
    told, wanted = (torch.cat([found[name].flatten() for name in exact]) for found in (rough, exact))
    assert alike(told, wanted) > 0.99
    assert float(told.norm()) == pytest.approx(float(wanted.norm()), rel=0.05)
    assert not told.equal(wanted)


def alike(one: Tensor, other: Tensor) -> float:
    """The cosine of two tensors of one shape."""
    return float(torch.cosine_similarity(one.flatten(), other.flatten(), 0))


@pytest.mark.slow
def test_updates_in_bf16_learn_like_those_in_fp32(new_training: New, gpu: torch.device) -> None:
    """Which they could not if the copy missed what the weights have learnt, or kept an old gradient."""
    found = []
    for training in both(new_training, gpu, "lam-0.01", "all"):
        for update in range(30):
            training.step(np.arange(20) + update % 4)
        found.append(training.losses.read())
    exact, rough = found
    assert exact[-1] < 0.8 * exact[0]
    assert rough[0] == pytest.approx(exact[0], rel=0.005)
    assert np.mean(rough) == pytest.approx(np.mean(exact), rel=0.02)


class Conversions(TorchDispatchMode):
    """Collects the shapes of tensors that are converted to another type, and the types of normalised states."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes, self.normed = set[torch.Size](), set[torch.dtype]()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation is torch.ops.aten._to_copy.default and "dtype" in (kwargs or {}):
            self.shapes.add(args[0].shape)
        if operation is torch.ops.aten.native_layer_norm.default:
            self.normed.add(args[0].dtype)
        return operation(*args, **(kwargs or {}))


def test_neither_weights_nor_states_are_converted_one_at_a_time(new_training: New, gpu: torch.device) -> None:
    _, training = both(new_training, gpu)
    training.step(MEMBERS)
    batches = training.prepare(MEMBERS)[1]
    with Conversions() as found:
        training.step(MEMBERS, batches)
    assert found.normed == {torch.bfloat16}
    matrices = {one.shape for one in hidden_matrices(training.model)}
    assert matrices and not matrices & found.shapes
    learnt = [*training.model.parameters(), *training.optimizers.state().values()]
    assert {one.dtype for one in learnt} == {torch.float32}
