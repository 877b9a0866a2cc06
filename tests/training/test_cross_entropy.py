"""The loss computed some rows at a time equals torch's own, as do its gradients, for any number of rows."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heads.model import linear
from heads.training import cross_entropy
from heads.training.cross_entropy import smoothed_cross_entropy

N, D, V = 7, 5, 11


def inputs(*, size: float, dtype: torch.dtype) -> tuple[list[Tensor], Tensor]:
    """Trainable states [N, D], weight [V, D] and bias [V], and targets [N], one of which occurs twice."""
    generator = torch.Generator().manual_seed(8)
    shapes = [(N, D), (V, D), (V,)]
    parts = [size * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [part.to(dtype).requires_grad_() for part in parts], torch.tensor([3, 0, 10, 3, 7, 1, 5])


@pytest.mark.parametrize("rows", [0, 1, 3, 7, 50])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("size", [0.5, 30.0])
def test_the_loss_and_its_gradients_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch, rows: int, smoothing: float, size: float
) -> None:
    """Size 30 makes probabilities so small that they have no logarithm in float64; a row may be too large by itself."""
    monkeypatch.setattr(cross_entropy, "LEAST_TOKENS", 1)
    monkeypatch.setitem(cross_entropy.CHUNK, "cpu", rows * V + 2)
    (states, weight, bias), targets = inputs(size=size, dtype=torch.float64)
    expected = F.cross_entropy(F.linear(states, weight, bias), targets, label_smoothing=smoothing, reduction="sum")
    found = smoothed_cross_entropy(states, weight, bias, targets, smoothing, torch.float64)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(0.3 * found, (states, weight, bias)),
        torch.autograd.grad(0.3 * expected, (states, weight, bias)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are multiplied with the vocabulary at once."""
    found, multiply = list[int](), cross_entropy.multiplied

    def counted(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            found.append(len(left))
        return multiply(left, right, bias)

    monkeypatch.setattr(cross_entropy, "multiplied", counted)
    return found


def test_a_large_vocabulary_is_multiplied_by_no_fewer_than_256_tokens_at_once(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    monkeypatch.setattr(linear, "ONEDNN", False)
    monkeypatch.setitem(cross_entropy.CHUNK, "cpu", 2 * V)
    states, weight, bias = torch.randn(600, D), torch.randn(V, D), torch.zeros(V)
    smoothed_cross_entropy(states, weight, bias, torch.zeros(600, dtype=torch.int64), 0.1, torch.float32)
    assert sizes == [256, 256, 88]


def test_products_of_bf16_are_right_to_its_eight_bits_and_gradients_keep_their_type() -> None:
    (states, weight, bias), targets = inputs(size=1.0, dtype=torch.float32)
    expected = F.cross_entropy(F.linear(states, weight, bias), targets, label_smoothing=0.1, reduction="sum")
    found = smoothed_cross_entropy(states, weight, bias, targets, 0.1, torch.bfloat16)
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
    whole = torch.autograd.grad(expected, (states, weight, bias))
    for one, other in zip(torch.autograd.grad(found, (states, weight, bias)), whole, strict=True):
        assert one.dtype is torch.float32
        assert float((one - other).norm() / other.norm()) < 0.02
        assert not torch.equal(one, other)


def test_a_projection_that_does_not_learn_gives_its_states_the_same_gradient() -> None:
    (states, weight, bias), targets = inputs(size=1.0, dtype=torch.float64)
    whole = torch.autograd.grad(smoothed_cross_entropy(states, weight, bias, targets, 0.1, torch.float64), states)
    frozen = smoothed_cross_entropy(states, weight.detach(), bias.detach(), targets, 0.1, torch.float64)
    torch.testing.assert_close(torch.autograd.grad(frozen, states), whole)


@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 0.01), (torch.float32, 1e-6)])
def test_products_by_onednn_have_one_number_of_rows_and_what_fills_them_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], dtype: torch.dtype, error: float
) -> None:
    """oneDNN compiles a product for each number of rows."""
    monkeypatch.setattr(linear, "ONEDNN", True)
    monkeypatch.setattr(linear, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(cross_entropy, "LEAST_TOKENS", 1)
    monkeypatch.setitem(cross_entropy.CHUNK, "cpu", 100 * V)
    generator = torch.Generator().manual_seed(9)
    states, weight, bias = (torch.randn(size, generator=generator) for size in ((150, D), (V, D), (V,)))
    targets, learning = torch.randint(0, V, (150,), generator=generator), [states, weight, bias]
    for part in learning:
        part.requires_grad_()
    found = smoothed_cross_entropy(states, weight, bias, targets, 0.1, dtype)
    assert sizes == [64, 64, 64]
    expected = F.cross_entropy(F.linear(states, weight, bias), targets, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(found, expected, rtol=0.3 * error, atol=0)
    whole = torch.autograd.grad(expected, learning)
    for one, other in zip(torch.autograd.grad(found, learning), whole, strict=True):
        assert float((one - other).norm() / other.norm()) < error
