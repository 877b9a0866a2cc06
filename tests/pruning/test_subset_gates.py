"""Gates with an exact number of open heads: the distribution they claim, and losses whose best set is known."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations

import pytest
import torch
from torch import Tensor

from heads.base.files import UserError
from heads.config.trainings import SubsetSettings
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates
from heads.pruning.subset_gates import SubsetGates, exact_top, gumbel, relaxed_top

Shape = Callable[..., ModelShape]
SETTINGS = SubsetSettings(
    learning_rate=0.1, temperature_first=2.0, temperature_last=0.02, cooldown_share=0.25, straight_through=True
)
RELAXED = SETTINGS.model_copy(update={"straight_through": False})
UPDATES = 200
LIVE = {"enc_self": ((0, 2), ()), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((2,), (0, 1))}
LOGITS = torch.tensor([0.4, -1.0, 1.2, 0.0], dtype=torch.float64)


def flat(gates: Gates) -> Tensor:
    return torch.cat([gate for layers in gates.values() for gate in layers])


def generator(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chance_of_set(logits: Tensor, chosen: tuple[int, ...]) -> float:
    """The chance of this set in draws without replacement with weights exp(logit), over all orders (Plackett-Luce)."""
    weights, total = logits.exp().tolist(), 0.0
    for order in permutations(chosen):
        left, chance = sum(weights), 1.0
        for index in order:
            chance, left = chance * weights[index] / left, left - weights[index]
        total += chance
    return total


@pytest.mark.parametrize("count", [1, 2, 3])
def test_drawn_sets_are_as_likely_as_drawing_without_replacement(count: int) -> None:
    draws, noise = 5_000, generator()
    tops = (exact_top(LOGITS + gumbel(LOGITS, noise), count) for _ in range(draws))
    counts = Counter(tuple(top.nonzero()[:, 0].tolist()) for top in tops)
    for chosen in combinations(range(4), count):
        chance = chance_of_set(LOGITS, chosen)
        assert abs(counts[chosen] / draws - chance) < 5 * math.sqrt(chance * (1 - chance) / draws)


def test_relaxed_gates_add_up_to_the_count_at_every_temperature_and_harden_as_it_falls() -> None:
    scores = LOGITS + gumbel(LOGITS, generator())
    for temperature in (1e3, 2.0, 0.3, 1e-8):
        assert float(relaxed_top(scores, 3, temperature).sum()) == pytest.approx(3)
    torch.testing.assert_close(relaxed_top(scores, 3, 1e-8), exact_top(scores, 3))
    torch.testing.assert_close(relaxed_top(scores, 3, 1e9), torch.full_like(scores, 3 / 4))


def test_one_relaxed_gate_is_a_softmax_and_two_follow_the_definition_written_out() -> None:
    torch.testing.assert_close(relaxed_top(LOGITS, 1, 0.7), (LOGITS / 0.7).softmax(0))
    first = [math.exp(x / 0.7) for x in LOGITS.tolist()]
    first = [x / sum(first) for x in first]
    second = [math.exp((x + math.log(1 - p)) / 0.7) for x, p in zip(LOGITS.tolist(), first, strict=True)]
    expected = [p + q / sum(second) for p, q in zip(first, second, strict=True)]
    assert relaxed_top(LOGITS, 2, 0.7).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [1000.0, 0.5, 1e-8])
def test_gradients_stay_finite_at_the_papers_temperatures_for_logits_far_apart(temperature: float) -> None:
    scores = (LOGITS * 40).clone().requires_grad_()
    (relaxed_top(scores, 3, temperature) * torch.arange(4)).sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_straight_through_gates_are_zeros_and_ones_with_the_gradient_of_the_relaxed_ones(tiny_shape: Shape) -> None:
    cost, found = torch.arange(9.0), []
    for settings in (SETTINGS, RELAXED):
        gates = SubsetGates(tiny_shape(live_heads=LIVE), "all", 4, settings, UPDATES)
        sampled = flat(gates.sampled(generator()))
        found.append(sampled.detach())
        (sampled * cost).sum().backward()
        assert gates.weights.grad is not None
        found.append(gates.weights.grad)
    assert sorted(found[0].tolist()) == pytest.approx([0] * 5 + [1] * 4)
    assert not torch.allclose(found[0], found[2])
    assert found[1].abs().min() > 0
    torch.testing.assert_close(found[1], found[3])


def test_exactly_the_budget_is_open_in_every_sample_and_in_the_finished_model(tiny_shape: Shape) -> None:
    shape, noise = tiny_shape(live_heads=LIVE), generator()
    for budget in range(1, 10):
        gates = SubsetGates(shape, "all", budget, SETTINGS, UPDATES)
        for drawn in (gates.sampled(noise), gates.sampled(noise), gates.binary()):
            assert [len(gate) for layers in drawn.values() for gate in layers] == [2, 0, 1, 3, 1, 2]
            assert float(flat(drawn).detach().sum()) == pytest.approx(budget)
    assert set(flat(gates.binary()).tolist()) <= {0.0, 1.0}


def test_the_finished_model_keeps_the_largest_logits_of_the_scope(tiny_shape: Shape) -> None:
    gates = SubsetGates(tiny_shape(live_heads=LIVE), "enc_self", 1, SETTINGS, UPDATES)
    gates.weights.data = torch.tensor([-0.3, 0.2])
    binary = gates.binary()
    assert {kind: [gate.tolist() for gate in layers] for kind, layers in binary.items()} == {"enc_self": [[0, 1], []]}


def test_the_temperature_falls_by_the_same_factor_every_draw_and_then_stays(tiny_shape: Shape) -> None:
    gates, seen, noise = SubsetGates(tiny_shape(), "all", 3, SETTINGS, UPDATES), [], generator()
    for _ in range(60):
        seen.append(gates.temperature())
        gates.sampled(noise)
    factor = (0.02 / 2.0) ** (1 / 50)
    assert seen[:51] == pytest.approx([2.0 * factor**i for i in range(51)])
    assert seen[50:] == pytest.approx([0.02] * 10)


@pytest.mark.parametrize("budget", [0, 19])
def test_a_budget_that_the_scope_does_not_have_is_an_error_of_the_user(tiny_shape: Shape, budget: int) -> None:
    with pytest.raises(UserError, match="18"):
        SubsetGates(tiny_shape(), "all", budget, SETTINGS, UPDATES)


def test_the_chances_add_up_to_the_budget_and_pull_at_no_logit(tiny_shape: Shape) -> None:
    gates = SubsetGates(tiny_shape(), "all", 3, SETTINGS, UPDATES)
    expected = gates.expected_open()
    expected.backward()
    assert float(expected.detach()) == pytest.approx(3)
    assert gates.weights.grad is not None and gates.weights.grad.abs().max() < 1e-6


def test_the_chance_of_a_head_with_a_budget_of_one_is_how_often_it_is_drawn(tiny_shape: Shape) -> None:
    gates, noise, draws = SubsetGates(tiny_shape(live_heads=LIVE), "enc_self", 1, SETTINGS, UPDATES), generator(), 4000
    gates.weights.data = torch.tensor([0.9, -0.4])
    drawn = sum(float(flat(gates.sampled(noise)).detach()[0]) for _ in range(draws)) / draws
    assert drawn == pytest.approx(float(flat(gates.chances()).detach()[0]), abs=5 * 0.5 / math.sqrt(draws))


def learned(gates: SubsetGates, loss: Callable[[Gates], Tensor], *, updates: int, rate: float, seed: int) -> None:
    optimizer, noise = torch.optim.Adam(gates.parameters(), lr=rate), generator(seed)
    for _ in range(updates):
        optimizer.zero_grad()
        loss(gates.sampled(noise)).backward()
        optimizer.step()


@pytest.mark.parametrize("settings", [SETTINGS, RELAXED])
def test_training_finds_the_best_pair_although_it_is_not_the_two_best_heads(
    tiny_shape: Shape, settings: SubsetSettings
) -> None:
    def loss(gates: Gates) -> Tensor:
        open_heads = flat(gates)
        return -(2.0 * open_heads[3] + 1.5 * open_heads[7] + 1.4 * open_heads[5] - 3 * open_heads[3] * open_heads[7])

    gates = SubsetGates(tiny_shape(), "all", 2, settings, UPDATES)
    learned(gates, loss, updates=150, rate=0.1, seed=3)
    assert flat(gates.binary()).nonzero()[:, 0].tolist() == [3, 5]
