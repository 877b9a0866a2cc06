"""The rungs that are picked of ladders, against every combination of rungs."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest

from heads.model.shape import Place
from heads.pruning.rungs import Limits, interpolated, picked

PLACES: list[Place] = [("enc_self", 0), ("enc_self", 1), ("dec_enc", 0), ("enc_ffn", 0)]
RUNGS = [(4, 3, 1, 0), (4, 2, 0), (5, 3, 2), (5, 3, 2)]


def drawn_ladders(seed: int = 3) -> dict[Place, dict[int, float]]:
    """Losses that rise as heads go, but for one that falls once."""
    drawn = np.random.default_rng(seed)
    ladders = {
        place: dict(zip(own, sorted(drawn.random(len(own)).tolist()), strict=True))
        for place, own in zip(PLACES, RUNGS, strict=True)
    }
    ladders[PLACES[0]][1] -= 0.5
    return ladders


def cheapest(
    ladders: Mapping[Place, Mapping[int, float]], limits: Sequence[Limits], *, same: bool = False
) -> float | None:
    """The least sum of losses of all combinations within the limits; same: with equal numbers in the last two."""
    sums = [
        sum(ladder[number] for ladder, number in zip(ladders.values(), numbers, strict=True))
        for numbers in product(*RUNGS)
        if (not same or numbers[2] == numbers[3])
        and all(
            limit.least
            <= sum(limit.cost(place) * number for place, number in zip(PLACES, numbers, strict=True))
            <= limit.most
            for limit in limits
        )
    ]
    return min(sums, default=None)


def cost(*costs: float) -> dict[Place, float]:
    """A cost for each place."""
    return dict(zip(PLACES, costs, strict=True))


@pytest.mark.parametrize("together", [(), [PLACES[2:]]])
@pytest.mark.parametrize("kept", [*range(4, 19)])
def test_of_all_rungs_that_add_up_to_a_number_those_with_the_least_loss_are_picked(
    kept: int, together: Sequence[Sequence[Place]]
) -> None:
    ladders, limits = drawn_ladders(), [Limits(lambda _: 1.0, kept, kept)]
    best, found = cheapest(ladders, limits, same=bool(together)), picked(ladders, limits, together)
    if best is None:
        assert found is None
        return
    assert found is not None and list(found) == PLACES
    assert sum(found.values()) == kept
    assert sum(ladders[place][number] for place, number in found.items()) == pytest.approx(best)
    assert not together or found[PLACES[2]] == found[PLACES[3]]


@pytest.mark.parametrize("most", [0.1, 2.5, 7.3, 11.0, 1e6])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_several_limits_with_costs_of_any_size_are_all_kept(most: float, unit: float) -> None:
    ladders = drawn_ladders(5)
    sizes, times = cost(2.0 * unit, 0.5 * unit, 0.0, 1.0 * unit), cost(0.1, 0.2, 0.3, 0.0)
    limits = [Limits(sizes.__getitem__, 0.0, most * unit), Limits(times.__getitem__, 0.9, 2.0)]
    best, found = cheapest(ladders, limits), picked(ladders, limits)
    if best is None:
        assert found is None
        return
    assert found is not None
    assert sum(ladders[place][number] for place, number in found.items()) == pytest.approx(best)


def test_without_a_limit_each_sub_layer_keeps_what_loses_least() -> None:
    assert picked(drawn_ladders(), []) == dict(zip(PLACES, (1, 4, 5, 5), strict=True))


def test_between_measured_rungs_losses_rise_as_squared_errors_do() -> None:
    errors = {8: 0.0, 7: 1.0, 6: 4.0, 5: 8.0, 4: 10.0, 3: 16.0, 2: 20.0, 1: 80.0}
    found = interpolated({8: 0.5, 4: 1.0, 2: 5.0}, 1, errors.__getitem__)
    assert found == pytest.approx({8: 0.5, 7: 0.55, 6: 0.7, 5: 0.9, 4: 1.0, 3: 3.4, 2: 5.0})
    assert list(interpolated({8: 0.0, 4: 1.0, 1: 4.0}, 2, errors.__getitem__)) == [8, 6, 4, 2]
