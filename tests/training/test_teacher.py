"""A model that learns from another one's probabilities: the loss and its gradients, and that it comes closer."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heads.model.linear import Linear
from heads.model.transformer import Transformer
from heads.training import divergence as chunks
from heads.training.divergence import divergence
from heads.training.loop import Training

N, D, OTHER, V = 7, 5, 3, 11


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return 3 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def projection(width: int, seed: int) -> Linear:
    made = Linear(width, V)
    made.weight.data, made.bias.data = drawn(V, width, seed=seed), drawn(V, seed=seed + 1)
    return made


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_the_divergence_and_its_gradients_are_those_of_torch(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(chunks, "LEAST_TOKENS", 1)
    monkeypatch.setitem(chunks.CHUNK, "cpu", rows * V)
    states, own = drawn(N, D).requires_grad_(), projection(D, 5)
    wanted, other = drawn(N, OTHER, seed=9).requires_grad_(), projection(OTHER, 7)
    expected = F.kl_div(
        own(states).log_softmax(-1), other(wanted).detach().log_softmax(-1), log_target=True, reduction="sum"
    )
    found = divergence(states, own, wanted, other)
    torch.testing.assert_close(found, expected)
    learning = (states, own.weight, own.bias)
    for one, another in zip(
        torch.autograd.grad(0.3 * found, learning, retain_graph=True),
        torch.autograd.grad(0.3 * expected, learning),
        strict=True,
    ):
        torch.testing.assert_close(one, another)
    (0.3 * found).backward()
    assert wanted.grad is None and other.weight.grad is None, "the teacher does not learn"


def test_a_projection_that_does_not_learn_gives_its_states_the_same_gradient() -> None:
    states, own, other = drawn(N, D).requires_grad_(), projection(D, 5), projection(D, 7)
    (expected,) = torch.autograd.grad(divergence(states, own, drawn(N, D, seed=3), other), states)
    own.requires_grad_(requires_grad=False)
    (found,) = torch.autograd.grad(divergence(states, own, drawn(N, D, seed=3), other), states)
    torch.testing.assert_close(found, expected)


@pytest.fixture
def teacher(tiny_model: Callable[..., Transformer]) -> Transformer:
    """A model that is sure of its answers, with the vocabularies of the training's model."""
    model = tiny_model(dropout=0.4, attention_dropout=0.4).float()
    with torch.no_grad():
        model.projection.weight.mul_(8)
    return model.train()


def test_the_loss_is_the_mean_divergence_at_all_answers_and_the_teacher_has_no_dropout(
    new_training: Callable[..., Training], teacher: Transformer
) -> None:
    training = taught(new_training, teacher)
    members = training.pairs.index[:5]
    model, batch = deepcopy(training.model).eval(), training.pairs.batch(members)
    training.model.eval()
    with torch.no_grad():
        given = (batch.source, batch.source_mask, batch.target_input)
        found, wanted = (
            one.projection(one(*given)[batch.target_mask]).log_softmax(-1) for one in (model, teacher.eval())
        )
        expected = float((wanted.exp() * (wanted - found)).sum(-1).mean())
    assert expected > 0.1
    loss = training.cross_entropy(members, training.prepare(members)[1], None)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_it_comes_closer_to_its_teacher_which_stays(
    new_training: Callable[..., Training], teacher: Transformer
) -> None:
    training = taught(new_training, teacher)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    members = training.pairs.index
    losses = [float(training.step(members)["loss"]) for _ in range(12)]
    assert losses[-1] < 0.8 * losses[0]
    assert training.teacher is not None
    for name, value in training.teacher.state_dict().items():
        assert torch.equal(value, before[name]), name


def taught(new_training: Callable[..., Training], teacher: Transformer) -> Training:
    """A training like any other, but with a teacher."""
    made: Any = new_training()
    return Training(made.model, made.pairs, made.plan, None, teacher)
