"""A driven lambda: each kind of attention by its own heads, both parts of the control by sums, and a resumed run."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from heads.base.names import ATTENTIONS
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, HardConcrete, SubsetSettings
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.shape import ModelShape
from heads.pruning.gates import HardConcreteGates, TrainableGates, budgets_of
from heads.pruning.penalty import DrivenPenalty, Penalty, gates_and_penalty
from heads.training.loop import Training
from heads.training.schedule import Pruning
from slow_ones import slow_but

Shape = Callable[..., ModelShape]
NewGates = Callable[[str], HardConcreteGates]
HEADS = {"enc_self": 5, "dec_self": 4, "dec_enc": 6}
LIVE = {"enc_self": ((0, 1, 2), (0, 2)), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((0, 1, 2), (0, 1, 2))}
START = DrivenPenalty.START


def log_alpha_of(chance: float, shape: HardConcrete) -> float:
    """The log alpha at which P(gate > 0) has this value."""
    return math.log(chance / (1 - chance)) + shape.temperature * math.log(-shape.low / shape.high)


def expecting(gates: HardConcreteGates, **numbers: float) -> HardConcreteGates:
    """The same gates, set so that the given number of heads of each kind is expected to be open."""
    with torch.no_grad():
        for name, log_alpha in gates.log_alpha.items():
            kind = name.split(":")[0]
            if kind in numbers:
                log_alpha.fill_(log_alpha_of(numbers[kind] / HEADS[kind], gates.shape))
    return gates


@pytest.fixture
def new_gates(tiny_shape: Shape, lopsided: HardConcrete) -> NewGates:
    """Builds gates in float64 on 5, 4 and 6 heads of the kinds of attention, with a budget."""

    def build(keep: str) -> HardConcreteGates:
        shape = tiny_shape(live_heads=LIVE)
        return HardConcreteGates(
            shape, "all", lopsided, budgets_of(Target.of_choice("gates", keep), "all", shape)
        ).double()

    return build


def test_the_open_heads_of_each_kind_cost_the_lambda_of_that_kind(new_gates: NewGates) -> None:
    lam, numbers = {"enc_self": 0.1, "dec_self": 0.2, "dec_enc": 0.7}, {"enc_self": 2.0, "dec_self": 3.5, "dec_enc": 1}
    gates = expecting(new_gates("2-3-1"), **numbers)
    driven = DrivenPenalty(gates)
    driven.lam.copy_(torch.tensor(list(lam.values())))
    penalty = driven(gates)
    assert float(penalty.detach()) == pytest.approx(0.1 * 2 + 0.2 * 3.5 + 0.7 * 1)
    penalty.backward()
    for name, log_alpha in gates.log_alpha.items():
        kind = name.split(":")[0]
        chance = numbers[kind] / HEADS[kind]
        assert log_alpha.grad is not None
        assert log_alpha.grad.tolist() == pytest.approx([lam[kind] * chance * (1 - chance)] * len(log_alpha))


def test_a_plain_lambda_costs_as_much_for_an_open_head_of_any_kind(new_gates: NewGates) -> None:
    gates = expecting(new_gates("1"), enc_self=2, dec_self=3.5, dec_enc=1)
    assert float(Penalty(torch.tensor([0.3]))(gates).detach()) == pytest.approx(0.3 * 6.5)


def test_heads_of_another_kind_change_nothing_about_a_lambda(new_gates: NewGates) -> None:
    found = []
    for of_encoder in (2.02, 1.95):
        gates = new_gates("2-3-1")
        driven = DrivenPenalty(gates)
        for update, (decoder, cross) in enumerate([(3.02, 1.02), (3.01, 0.97), (3.03, 1.05)]):
            driven.adjust(expecting(gates, enc_self=of_encoder, dec_self=decoder, dec_enc=cross), 0.61 + update / 100)
        found.append(driven.lam.tolist())
    assert found[0][0] != found[1][0]
    assert found[0][1:] == found[1][1:]
    assert len({*found[0], START}) == 4, "every lambda has moved, each by itself"


def test_lambda_is_the_last_excess_and_the_sum_of_all_before_it_by_the_length_of_their_stretch(
    new_gates: NewGates,
) -> None:
    gates = new_gates("6")
    driven, shares, surplus = DrivenPenalty(gates), (0.1, 0.25, 0.5, 0.62, 0.9), (0.09, -0.05, 0.12, 0.03, -0.02)
    logarithm, before = math.log(START), 0.0
    for done, more in zip(shares, surplus, strict=True):
        wanted = 15 - (15 - 6) * done / DrivenPenalty.DESCENT if done < DrivenPenalty.DESCENT else 6
        share = (wanted + more) / 15
        driven.adjust(expecting(gates, **{kind: share * number for kind, number in HEADS.items()}), done)
        logarithm, before = logarithm + DrivenPenalty.INTEGRAL * more / 15 * (done - before), done
        expected = math.exp(logarithm + DrivenPenalty.PROPORTIONAL * more / 15)
        assert DrivenPenalty.LOWEST < expected < DrivenPenalty.HIGHEST
        assert float(driven.lam[0]) == pytest.approx(expected, rel=1e-6)


def test_a_lambda_stays_within_its_bounds_and_comes_back_from_them(new_gates: NewGates) -> None:
    gates = new_gates("0-4-0")
    driven = DrivenPenalty(gates)
    for update in range(700, 901):
        driven.adjust(expecting(gates, enc_self=4.99, dec_self=0.01, dec_enc=0.001), update / 1000)
    assert driven.lam.tolist()[:2] == [DrivenPenalty.HIGHEST, DrivenPenalty.LOWEST]
    for update in range(901, 1001):
        driven.adjust(expecting(gates, enc_self=0.01, dec_self=3.99, dec_enc=0.001), update / 1000)
    assert driven.lam[0] < DrivenPenalty.HIGHEST / 100, "there are as few as wanted at once"
    assert driven.lam.isfinite().all()


UPDATES = 2000
"""Enough updates that a few of them bring no lambda to its bounds, where all would be equal."""


def gates_of(target: str, shape: ModelShape, lopsided: HardConcrete) -> tuple[TrainableGates, Penalty]:
    subset = SubsetSettings(temperature_first=2.0, temperature_last=0.02, cooldown_share=0.8)
    settings = GatesSettings(hard_concrete=lopsided, subset=subset)
    gates, penalty = gates_and_penalty(Target.parse(target), "all", shape, settings, UPDATES)
    if isinstance(gates, HardConcreteGates):
        with torch.no_grad():
            for log_alpha in gates.log_alpha.values():
                log_alpha.fill_(log_alpha_of(0.97, lopsided))
    return gates, penalty


@pytest.mark.parametrize("target", slow_but(["keep-2-6-1"], ["keep-2-6-1", "keep-5", "dsp-5"]))
def test_a_resumed_training_goes_on_with_the_penalty_and_the_gates_that_it_had(
    new_training: Callable[..., Training], lopsided: HardConcrete, tmp_path: Path, target: str
) -> None:
    def build() -> Training:
        plain = new_training(plan={"updates": UPDATES}, dropout=0.2)
        pruning = Pruning(*gates_of(target, plain.model.shape, lopsided), 0.1, 3, UPDATES, ())
        return Training(plain.model, plain.pairs, plain.plan, pruning)

    whole, resumed, members = build(), build(), np.arange(9)
    assert whole.pruning and resumed.pruning
    for _ in range(4):
        whole.step(members)
    save_tensors(tmp_path / "state", *whole.state())
    for _ in range(3):
        whole.step(members)
    resumed.restore(*load_tensors(tmp_path / "state"))
    for _ in range(3):
        resumed.step(members)
    for part in ("penalty", "gates"):
        expected, found = (getattr(training.pruning, part).state_dict() for training in (whole, resumed))
        assert expected.keys() == found.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=f"{part} {name}")
    if isinstance(whole.pruning.penalty, DrivenPenalty):
        assert float(whole.pruning.penalty.done) == pytest.approx(7 / UPDATES)
        assert all(DrivenPenalty.LOWEST < lam < DrivenPenalty.HIGHEST for lam in whole.pruning.penalty.lam.tolist())
        assert not torch.isclose(whole.pruning.penalty.lam, torch.tensor(START).double()).any()
        assert len(whole.pruning.penalty.lam) == (len(ATTENTIONS) if target == "keep-2-6-1" else 1)
