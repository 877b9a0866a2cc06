"""Muon updates the matrices of layers, by its definition, and Adam updates everything else as usual."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from heads.config.trainings import TrainingSettings
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.training import optimizers
from heads.training.job import frozen_beside
from heads.training.loop import Training
from heads.training.optimizers import NEWTON_SCHULZ, Muon, NewWeights, Optimizers

New = Callable[..., Training]
MEMBERS = np.arange(9)


def test_muon_takes_matrices_of_layers_and_adam_the_rest(new_training: New) -> None:
    training = new_training(scope="all", optimizer="muon")
    adam, muon = training.optimizers.each
    names = {id(value): name for name, value in training.model.named_parameters()}
    taken = [names[id(value)] for value in muon.param_groups[0]["params"]]
    hidden = ("query", "key", "value", "output", "inner", "outer")
    expected = [
        name
        for name in names.values()
        if name.split(".")[0] in ("encoder", "decoder") and name.endswith(".weight") and name.split(".")[-2] in hidden
    ]
    assert sorted(taken) == sorted(expected)
    assert len(taken) == 2 * 6 + 2 * 10, "four maps an attention and two of the feed-forward layer"
    model, gates = (group["params"] for group in adam.param_groups)
    assert len(taken) + len(model) == len(names)
    assert len(gates) == 6


def test_a_step_of_muon_turns_its_momentum_into_one_with_singular_values_near_one(new_training: New) -> None:
    """By its singular vectors: what is added is U S V' of the momentum with all of S in 0.35 to 1.65, times 0.2 rate
    sqrt(longer side), so that a full matrix has the root mean square 0.2 rate of a typical step of Adam."""
    training = new_training(optimizer="muon", updates_before=50)
    _, muon = training.optimizers.each
    before = {value: value.detach().clone() for value in muon.param_groups[0]["params"]}
    rates = [training.step(MEMBERS)["learning_rate"]]
    for value, old in before.items():
        assert value.grad is not None
        u, _, v = torch.linalg.svd(value.grad.double(), full_matrices=False)
        longer = max(value.shape)
        changed = u.T @ (old - value.detach()).double() @ v.T / (rates[0] * 0.2 * longer**0.5)
        singular = changed.diagonal()
        large = torch.linalg.svdvals(value.grad.double()) > 0.05 * torch.linalg.matrix_norm(value.grad.double(), 2)
        assert ((singular > 0.35) & (singular < 1.65))[large].all()
        rest = changed - torch.diag(singular)
        assert float(rest.abs().max()) < 0.1, "nothing is changed across singular vectors, nor does a weight decay"


def test_no_three_steps_bring_singular_values_nearer_to_one() -> None:
    """Of all odd polynomials of degree 5, the closest to one has a largest error of alternating sign in four places."""
    low, high = 0.003, 1.0
    for step, (first, third, fifth) in enumerate(NEWTON_SCHULZ):
        values = np.geomspace(low, high, 20_001)
        x = 1.02 * values if step == 0 else values  # which leaves room for a rounding error
        error = 1 - (first * x + third * x**3 + fifth * x**5)
        largest = abs(error).max()
        signs = np.sign(error[abs(error) > 0.99 * largest])
        assert 1 + np.count_nonzero(np.diff(signs)) == 4
        low, high = 1 - largest, 1 + largest
    assert low > 0.35 and high < 1.65


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_singular_values_between_the_bounds_come_near_one_and_vectors_stay(dtype: torch.dtype, rank: int) -> None:
    """A matrix of rank one has the largest singular value that there may be, which must not grow without end."""
    generator = torch.Generator().manual_seed(rank)
    u, v = (torch.linalg.qr(torch.randn(side, rank, generator=generator)).Q for side in (6, 9))
    singular = torch.logspace(-2, 0, rank) if rank > 1 else torch.ones(1)
    (found,) = optimizers.orthogonal((u * singular @ v.T)[None], dtype)
    within = u.T @ found.float() @ v
    assert ((within.diagonal() > 0.34) & (within.diagonal() < 1.67)).all()
    assert float((within - torch.diag(within.diagonal())).abs().max()) < (0.1 if dtype is torch.bfloat16 else 1e-4)


@pytest.mark.parametrize(("dtype", "within"), [(torch.bfloat16, 0.0), (torch.float32, 0.02)])
def test_muon_goes_where_that_of_torch_goes(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, within: float) -> None:
    """Over several steps of wide, tall, square and empty matrices, bit for bit in torch's own precision."""
    monkeypatch.setattr(optimizers, "NEWTON_SCHULZ", ((3.4445, -4.775, 2.0315),) * 5)
    generator = torch.Generator().manual_seed(4)
    sizes = ((5, 9), (9, 5), (6, 6), (0, 5))
    ours = [torch.nn.Parameter(torch.randn(size, generator=generator)) for size in sizes]
    theirs = [torch.nn.Parameter(matrix.detach().clone()) for matrix in ours]
    one = Muon(ours, dtype)
    other = torch.optim.Muon(theirs, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    for rate in (0.1, 0.3, 0.2):
        for mine, torchs in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            torchs.grad = mine.grad.clone()
        one.param_groups[0]["lr"] = other.param_groups[0]["lr"] = rate
        one.step()
        other.step()
    for mine, torchs in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=0.0, atol=within)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_what_is_frozen_is_left_alone_and_a_layer_without_heads_is_no_trouble(
    tiny_shape: Callable[..., ModelShape], training_settings: Callable[..., TrainingSettings], optimizer: str
) -> None:
    live = {"enc_self": ((), (0, 2)), "dec_self": ((1,), (0,)), "dec_enc": ((0,), ())}
    model = Transformer(tiny_shape(live_heads=live))
    for module in frozen_beside("enc_self", model):
        module.requires_grad_(requires_grad=False)
    optimizers = Optimizers(model, training_settings(optimizer=optimizer), (), 0.0)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    for value in optimizers.parameters():
        value.grad = torch.ones_like(value)
    optimizers.step(0.1)
    changed = {
        name for name, value in model.named_parameters() if value.numel() and not torch.equal(value, before[name])
    }
    encoder = {name for name in before if name.startswith(("encoder", "source_embedding")) and before[name].numel()}
    assert changed == encoder


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_new_weights_go_by_a_multiple_of_the_rate_and_by_adam(
    tiny_model: Callable[..., Transformer], training_settings: Callable[..., TrainingSettings], optimizer: str
) -> None:
    """Adam's first step is as long as the rate, whatever the gradient is."""
    model = tiny_model()
    new = tuple(value for name, value in model.named_parameters() if name.startswith("decoder.0.self_attention."))
    settings = training_settings(optimizer=optimizer, adam_epsilon=1e-12)
    optimizers = Optimizers(model, settings, (), 0.0, torch.float32, NewWeights(new, 7.0))
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    for value in model.parameters():
        value.grad = torch.rand_like(value) + 1
    optimizers.step(0.01)
    moved = {name: before[name] - value.detach() for name, value in model.named_parameters()}
    fresh = {id(value) for value in new}
    for name, value in model.named_parameters():
        if id(value) in fresh:
            torch.testing.assert_close(moved[name], torch.full_like(value, 0.07), rtol=1e-3, atol=1e-6)
        elif optimizer == "adam" or not name.startswith(("encoder.", "decoder.")):
            torch.testing.assert_close(moved[name], torch.full_like(value, 0.01), rtol=1e-3, atol=1e-6)
    assert len(list(optimizers.parameters())) == len(before), "each parameter is moved by one optimiser"
