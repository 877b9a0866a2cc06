"""The hard-concrete distribution against sampling, finite differences and its own formula solved by hand."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.base.targets import Target
from heads.config.trainings import HardConcrete
from heads.model.shape import ModelShape, full_heads
from heads.pruning.gates import (
    HardConcreteGates,
    budgets_of,
    probability_one,
    probability_open,
    sample,
    strictly_between,
)
from heads.pruning.penalty import DrivenPenalty
from slow_ones import slow_but

Shape = Callable[..., ModelShape]
MODEL = ModelShape(10, 2, 7, 0.0, pre_norm=True, source_subwords=9, target_subwords=9, original_heads=3,
                   live_heads=full_heads(layers=2, heads=3))  # fmt: skip
DRAWS = 400_000
LOG_ALPHAS = torch.tensor([-3.0, -1.1, 0.0, 0.6, 2.5], dtype=torch.float64)


@pytest.fixture(params=["hard_concrete", "lopsided"])
def shape(request: pytest.FixtureRequest) -> HardConcrete:
    chosen: HardConcrete = request.getfixturevalue(request.param)
    return chosen


def drawn(shape: HardConcrete) -> Tensor:
    """Gates [DRAWS, 5] from the definition's own noise."""
    noise = torch.rand(DRAWS, len(LOG_ALPHAS), generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    return sample(LOG_ALPHAS.expand(DRAWS, -1), noise, shape)


def assert_within_five_standard_errors(frequency: Tensor, probability: Tensor) -> None:
    error = (probability * (1 - probability) / DRAWS).sqrt()
    assert ((frequency - probability).abs() < 5 * error + 1e-9).all(), (frequency, probability)


def test_the_chances_of_exactly_zero_and_exactly_one_agree_with_sampling(shape: HardConcrete) -> None:
    gates = drawn(shape)
    assert ((gates >= 0) & (gates <= 1)).all()
    assert_within_five_standard_errors((gates == 0).double().mean(0), 1 - probability_open(LOG_ALPHAS, shape))
    assert_within_five_standard_errors((gates == 1).double().mean(0), probability_one(LOG_ALPHAS, shape))


def test_a_gate_equals_its_definition_written_for_one_number(lopsided: HardConcrete) -> None:
    for u in (0.02, 0.4, 0.55, 0.97):
        s = 1 / (1 + math.exp(-(math.log(u) - math.log(1 - u) + 0.3) / 0.7))
        expected = min(1.0, max(0.0, s * 1.5 - 0.3))
        gate = sample(torch.tensor(0.3, dtype=torch.float64), torch.tensor(u, dtype=torch.float64), lopsided)
        assert float(gate) == pytest.approx(expected, abs=1e-12)


def test_the_gradient_of_sampled_gates_equals_a_finite_difference_with_the_same_noise(shape: HardConcrete) -> None:
    noise = torch.rand(7, 5, generator=torch.Generator().manual_seed(12), dtype=torch.float64)
    log_alpha = LOG_ALPHAS.clone().requires_grad_()
    gates = sample(log_alpha.expand(7, -1), noise, shape)
    (gradient,) = torch.autograd.grad(gates.sum(), log_alpha)
    for index in range(5):
        step = torch.zeros(5, dtype=torch.float64)
        step[index] = 1e-6
        ends = [sample((LOG_ALPHAS + sign * step).expand(7, -1), noise, shape).sum() for sign in (1, -1)]
        assert float(gradient[index]) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-8)
    assert (gradient > 0).any()


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_noise_at_the_very_edge_gives_finite_gates_and_gradients(hard_concrete: HardConcrete, edge: float) -> None:
    log_alpha = torch.zeros(3, requires_grad=True)
    gates = sample(log_alpha, torch.full((3,), edge), hard_concrete)
    gates.sum().backward()
    assert log_alpha.grad is not None
    assert gates.isfinite().all()
    assert log_alpha.grad.isfinite().all()


def test_the_authors_gate_is_exactly_zero_or_one_beyond_2_4_for_their_interval(hard_concrete: HardConcrete) -> None:
    bound = math.log(1.1 / 0.1)  # sigmoid(x) * 1.2 - 0.1 = 1 solved for x; by symmetry 0 at minus that
    assert bound == pytest.approx(2.40, abs=0.005)
    log_alpha = torch.tensor([-bound - 1e-6, -bound + 1e-6, 0.0, bound - 1e-6, bound + 1e-6], dtype=torch.float64)
    assert strictly_between(log_alpha, hard_concrete).tolist() == [False, True, True, True, False]


def test_strictly_between_is_what_its_name_says(lopsided: HardConcrete) -> None:
    stretched = [1.5 / (1 + math.exp(-float(x))) - 0.3 for x in LOG_ALPHAS]
    assert strictly_between(LOG_ALPHAS, lopsided).tolist() == [0 < value < 1 for value in stretched]
    assert len({0 < value < 1 for value in stretched}) == 2


def test_every_live_head_of_the_scope_has_one_gate_and_no_other(tiny_shape: Shape, hard_concrete: HardConcrete) -> None:
    live = {"enc_self": ((0, 2), ()), "dec_self": ((0, 1, 2), (1,)), "dec_enc": ((), (0, 2))}
    shape = tiny_shape(live_heads=live)
    sizes = {
        scope: {k: [len(g) for g in v] for k, v in HardConcreteGates(shape, scope, hard_concrete).binary().items()}
        for scope in ("enc_self", "all")
    }
    assert sizes["enc_self"] == {"enc_self": [2, 0]}
    assert sizes["all"] == {"enc_self": [2, 0], "dec_self": [3, 1], "dec_enc": [0, 2]}


def test_the_penalty_equals_the_mean_number_of_sampled_gates_above_zero(lopsided: HardConcrete) -> None:
    gates, generator, draws = HardConcreteGates(MODEL, "all", lopsided), torch.Generator().manual_seed(13), 3000
    with torch.no_grad():
        for value in gates.parameters():
            value.add_(torch.randn(value.shape, generator=generator))
        counts = torch.tensor(
            [sum(float((g > 0).sum()) for k in gates.sampled(generator).values() for g in k) for _ in range(draws)]
        )
    standard_error = float(counts.std()) / math.sqrt(draws)
    assert abs(float(counts.mean()) - float(gates.expected_open().detach())) < 5 * standard_error
    assert standard_error < 0.05


def test_gates_are_drawn_alike_for_the_same_generator_and_each_on_its_own(lopsided: HardConcrete) -> None:
    gates = HardConcreteGates(MODEL, "all", lopsided)
    first, again = (gates.sampled(torch.Generator().manual_seed(14)) for _ in range(2))
    values = torch.cat([gate for kind in ATTENTIONS for gate in first[kind]])
    torch.testing.assert_close(torch.cat([g for kind in ATTENTIONS for g in again[kind]]), values, rtol=0, atol=0)
    inside = values[(values > 0) & (values < 1)]
    assert len(inside) > 3
    assert len(set(inside.tolist())) == len(inside)


def test_a_budget_keeps_exactly_so_many_heads_of_the_largest_log_alpha(lopsided: HardConcrete) -> None:
    for keep in range(18 + 1):
        gates = HardConcreteGates(MODEL, "all", lopsided, budgets_of(Target.of_choice("gates", keep), "all", MODEL))
        with torch.no_grad():
            for log_alpha in gates.log_alpha.values():
                log_alpha.copy_(torch.randn(log_alpha.shape, generator=torch.Generator().manual_seed(keep)).round())
        stays = torch.cat(list(gates.open_heads().values()))
        values = torch.cat([log_alpha.detach() for log_alpha in gates.log_alpha.values()])
        assert int(stays.sum()) == keep
        assert keep in (0, 18) or values[stays].min() >= values[~stays].max()
        assert sum(float(gate.sum()) for kind in gates.binary().values() for gate in kind) == keep


@pytest.mark.parametrize(("keep", "scope"), [("99", "all"), ("0-99-1", "all"), ("1-1", "all"), ("1-1-1", "enc_self")])
def test_an_impossible_budget_is_refused_in_one_sentence(keep: str, scope: str) -> None:
    with pytest.raises(UserError, match=f"keep-{keep}"):
        budgets_of(Target.of_choice("gates", keep), scope, MODEL)


@pytest.mark.parametrize("keep", slow_but([5], [1, 5, 11]))
def test_a_driven_lambda_ends_near_its_budget_on_gates_that_are_worth_different_amounts(keep: int) -> None:
    shape = replace(MODEL, original_heads=4, live_heads=full_heads(layers=1, heads=4))
    budgets = budgets_of(Target.of_choice("gates", keep), "all", shape)
    gates = HardConcreteGates(shape, "all", HardConcrete(), budgets)
    driven, generator = DrivenPenalty(gates), torch.Generator().manual_seed(2)
    worth = {name: torch.rand(4, generator=generator).exp() * 0.01 * 2**row for row, name in enumerate(gates.log_alpha)}
    optimizer, updates = torch.optim.Adam(gates.parameters(), lr=0.1), 300
    for update in range(1, updates + 1):
        optimizer.zero_grad()
        sampled = gates.sampled(generator)
        gain = sum((sampled[name.split(":")[0]][0] * worth[name]).sum() for name in gates.log_alpha)
        (driven(gates) - gain).backward()
        optimizer.step()
        driven.adjust(gates, update / updates)
    assert float(gates.expected_open().detach()) == pytest.approx(keep, abs=1)
