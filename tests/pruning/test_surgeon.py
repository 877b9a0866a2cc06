"""What the surgeon removes from an output map, against least squares over every subset of its inputs."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.pruning import surgeon
from heads.pruning.surgeon import OutputMap, order_of_removal, refitted

GROUPS, SIZE, WIDTH, SUBWORDS = 5, 2, 3, 40


def text(groups: int = GROUPS, size: int = SIZE, *, bias: bool = True) -> tuple[Tensor, Tensor, Tensor | None]:
    """Correlated inputs [N, C], with a column of ones if there is a bias, a weight [D, C] and a bias [D]."""
    generator = torch.Generator().manual_seed(7)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    inputs = drawn(SUBWORDS, groups * size) @ drawn(groups * size, groups * size) + 0.5
    weight, offset = drawn(WIDTH, groups * size), drawn(WIDTH)
    return (torch.cat([inputs, torch.ones(SUBWORDS, 1)], 1), weight, offset) if bias else (inputs, weight, None)


def made(inputs: Tensor, weight: Tensor, bias: Tensor | None, groups: int = GROUPS) -> OutputMap:
    """The map of these inputs."""
    return OutputMap.of(inputs.T @ inputs, weight, bias, groups)


def least_squares(inputs: Tensor, weight: Tensor, bias: Tensor | None, kept: tuple[int, ...], size: int) -> float:
    """The squared error of the best output map that uses these groups and the bias alone, by numpy."""
    whole = inputs.numpy() @ np.vstack([weight.numpy().T, *([] if bias is None else [bias.numpy()[None]])])
    columns = [place for group in kept for place in range(group * size, (group + 1) * size)]
    columns += [] if bias is None else [inputs.shape[1] - 1]
    if not columns:
        return float((whole**2).sum())
    used = inputs.numpy()[:, columns]
    found = np.linalg.lstsq(used, whole, rcond=None)[0]
    return float(((used @ found - whole) ** 2).sum())


@pytest.fixture(autouse=True)
def _almost_no_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surgeon, "RIDGE", 1e-13)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("groups", "size"), [(5, 2), (6, 1), (2, 4)])
def test_weights_of_every_subset_are_the_least_squares_solution(groups: int, size: int, *, bias: bool) -> None:
    given = text(groups, size, bias=bias)
    inputs, weight, offset = given
    what = made(*given, groups)
    whole = inputs @ what.weight
    for number in range(groups + 1):
        for kept in combinations(range(groups), number):
            outputs = inputs[:, what.inputs(kept)] @ refitted(what, kept)
            error = float(((outputs - whole) ** 2).sum())
            assert error == pytest.approx(least_squares(inputs, weight, offset, kept, size), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fresh", [0.0, 0.75])
@pytest.mark.parametrize("later", [1, 4, 64])
@pytest.mark.parametrize(("groups", "size"), [(5, 2), (9, 1)])
def test_each_group_that_goes_is_the_cheapest_of_all_that_are_left(
    groups: int, size: int, later: int, fresh: float, monkeypatch: pytest.MonkeyPatch, *, bias: bool
) -> None:
    monkeypatch.setattr(surgeon, "FRESH", fresh)
    monkeypatch.setattr(surgeon, "LATER", later)
    given = text(groups, size, bias=bias)
    order, errors = order_of_removal(made(*given, groups))
    left = set(range(groups))
    for group, error in zip(order, errors, strict=True):
        each = {one: least_squares(*given, tuple(sorted(left - {one})), size) for one in left}
        assert each[group] == min(each.values())
        assert error == pytest.approx(each[group], rel=1e-6)
        left.remove(group)
    assert not left


def test_a_copy_of_an_input_goes_first_and_costs_nothing() -> None:
    inputs, weight, bias = text(6, 1)
    inputs[:, 2] = 3 * inputs[:, 4] + 1  # the bias makes up for the 1
    order, errors = order_of_removal(OutputMap.of(inputs.T @ inputs + 1e-9 * torch.eye(7), weight, bias, 6), 5)
    assert order[0] in (2, 4)
    assert errors[0] == pytest.approx(0, abs=1e-5)


def test_removal_ends_at_the_fewest_and_the_same_groups_are_in_front() -> None:
    given = text()
    order, errors = order_of_removal(made(*given))
    assert order_of_removal(made(*given), 2) == (order[:3], errors[:3])


def test_units_that_are_always_zero_go_first_and_change_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surgeon, "RIDGE", 1e-6)
    inputs, weight, bias = text(6, 1)
    inputs[:, [1, 3]] = 0
    what = made(inputs, weight, bias, 6)
    order, errors = order_of_removal(what, 4)
    assert sorted(order) == [1, 3]
    assert errors[1] < 1e-4 * errors_of_one(what)
    kept = [0, 2, 4, 5]
    assert torch.allclose(refitted(what, kept), what.weight[what.inputs(kept)])


def errors_of_one(what: OutputMap) -> float:
    """What it costs to remove one group more than those that are zero."""
    return order_of_removal(what, 3)[1][-1]
