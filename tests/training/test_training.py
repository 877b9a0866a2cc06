"""The training loop: its gradients computed in other ways, its loss and schedule by their formulas, tiny real runs."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.base.files import read_lines
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.pruning.subset_gates import SubsetGates
from heads.text.batches import Batch, Pairs, cut, pairs_of, read_tokens
from heads.text.packed import Packed
from heads.text.vocabulary import Vocabulary
from heads.training.checkpointing import UnfinishedFolder
from heads.training.devices import SUBWORDS_MULTIPLE
from heads.training.evaluation import evaluation
from heads.training.job import pruning_of
from heads.training.loop import Evaluate, Training, train
from tiny_commands import write_data

New = Callable[..., Training]
MEMBERS = np.arange(9)


def scripted(losses: list[float]) -> Evaluate:
    """An evaluation that returns these dev losses one after another."""
    left = iter(losses)
    return lambda *_: {"dev_loss": next(left)}


def finished(training: Training, folder: Path, losses: list[float] | None = None) -> dict[str, float]:
    """Train to the end in a separate folder."""
    return train(training, scripted(losses or [1.0] * 100), UnfinishedFolder(folder, "one", save_every_seconds=1e9))


def parameters(training: Training) -> dict[str, Tensor]:
    """All weights and gates by name."""
    gates = training.pruning.gates if training.pruning else torch.nn.Module()
    return {**dict(training.model.named_parameters()), **{f"gates {n}": gate for n, gate in gates.named_parameters()}}


def gradients(training: Training) -> dict[str, Tensor]:
    """The gradients of the last update, in float64."""
    return {name: value.grad.double() for name, value in parameters(training).items() if value.grad is not None}


@pytest.mark.parametrize("scope", [None, "enc_self", "all"])
def test_micro_batches_give_the_gradient_of_the_whole_batch(new_training: New, scope: str | None) -> None:
    whole = new_training(scope=scope, lam=0.2, micro_batch_tokens=1000)
    parts = new_training(scope=scope, lam=0.2, micro_batch_tokens=13)
    assert len(cut(MEMBERS, parts.pairs.source.lengths, 13)) > 2
    losses = [float(training.step(MEMBERS)["loss"]) for training in (whole, parts)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    expected, found = gradients(whole), gradients(parts)
    assert expected.keys() == found.keys()
    assert any(name.startswith("gates") for name in found) == (scope is not None)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-6)


def test_the_loss_is_label_smoothed_cross_entropy_by_its_definition(new_training: New) -> None:
    training = new_training(label_smoothing=0.25)
    batch, training.model = training.pairs.batch(MEMBERS), training.model.eval()
    total = 0.0
    with torch.no_grad():
        logits = training.model.projection(training.model(batch.source, batch.source_mask, batch.target_input))
        for log_probs, gold in zip(
            logits.log_softmax(-1)[batch.target_mask], batch.target_output[batch.target_mask], strict=True
        ):
            wanted = [0.25 / 11 + 0.75 * (subword == int(gold)) for subword in range(11)]
            total -= sum(share * float(value) for share, value in zip(wanted, log_probs, strict=True))
        assert float(training.loss_sum(training.pairs.unpadded(MEMBERS, 1), None)) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("scope", [None, "all"])
def test_what_fills_a_batch_up_changes_neither_loss_nor_gradient(
    new_training: New, scope: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for multiple in (1, 8, 64):
        monkeypatch.setitem(SUBWORDS_MULTIPLE, "cpu", multiple)
        training = new_training(scope=scope, lam=0.2, micro_batch_tokens=13)
        training.model.double()
        for batch in training.prepare(MEMBERS)[1]:
            assert isinstance(batch, Packed) and batch.real == len(batch.target_output) - filled(batch, multiple)
            assert len(batch.source) % multiple == len(batch.target_input) % multiple == 0
        loss = training.step(MEMBERS)["loss"]
        found.append({"loss": torch.as_tensor(loss), **gradients(training)})
    for name, value in found[0].items():
        for other in found[1:]:
            torch.testing.assert_close(other[name], value, rtol=1e-9, atol=1e-12, msg=name)


def filled(batch: Packed, multiple: int) -> int:
    """The length of the last sentence if it only fills a batch up."""
    return int(batch.target_spans.starts.diff()[-1]) if multiple > 1 else 0


def test_once_gates_have_settled_they_are_those_of_the_finished_model_and_cost_nothing(
    new_training: New, tmp_path: Path
) -> None:
    training = new_training(scope="all", lam=0.9, plan={"updates": 5}, learning_updates=3)
    assert training.pruning
    penalties, seen, loss_sum = [], [], training.loss_sum
    adjust = training.pruning.penalty.adjust
    training.pruning.penalty.adjust = lambda gates, done: (penalties.append(done), adjust(gates, done))  # type: ignore

    def watching(batch: Batch | Packed, gates: Gates | None) -> Tensor:
        assert gates is not None
        seen.append(torch.cat([gate.detach() for layers in gates.values() for gate in layers]))
        return loss_sum(batch, gates)

    training.loss_sum = watching  # type: ignore[method-assign]
    states = []
    for _ in range(5):
        training.step(MEMBERS)
        gates = torch.cat([value.detach().clone() for value in training.pruning.gates.parameters()])
        states.append((gates, training.model.projection.weight.detach().clone()))
    finished = torch.cat([gate for layers in training.pruning.gates.binary().values() for gate in layers])
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[3], finished) and torch.equal(seen[4], finished)
    assert penalties == pytest.approx([1 / 3, 2 / 3, 1])
    for before, after in pairwise(states):
        assert not torch.equal(before[1], after[1]), "the rest of the model goes on learning"
    assert not torch.equal(states[1][0], states[2][0])
    assert torch.equal(states[2][0], states[4][0])


def test_gates_learn_for_as_long_as_the_settings_say(tiny_shape: Callable[..., ModelShape]) -> None:
    model = Transformer(tiny_shape())
    for share, expected in ((0.0, 60), (0.25, 45), (0.99, 1)):
        settings = GatesSettings(updates=60, fixed_gates_share=share)
        assert pruning_of(model, "all", Target.parse("lam-0.1"), settings, ()).updates == expected
        subset = pruning_of(model, "all", Target.parse("dsp-3", by_gates=True), settings, ()).gates
        assert isinstance(subset, SubsetGates)
        assert subset.cooldown == pytest.approx(0.6 * expected)


@pytest.mark.parametrize(("updates_before", "expected"), [(0, [1, 1, 1, 1, 1]), (7, [0.25, 0.5, 0.75, 1, 1])])
def test_the_rate_rises_once_more_where_a_training_goes_on_and_only_there(
    new_training: New, updates_before: int, expected: list[float]
) -> None:
    plain, rewarmed = (new_training(updates_before=updates_before, rewarm_updates=number) for number in (0, 4))
    rates = [[training.step(MEMBERS)["learning_rate"] for _ in expected] for training in (plain, rewarmed)]
    assert [after / before for before, after in zip(*rates, strict=True)] == pytest.approx(expected)


def test_a_loss_that_is_no_number_names_the_update_and_changes_no_weight(new_training: New) -> None:
    training = new_training()
    for _ in range(2):
        training.step(MEMBERS)
    with torch.no_grad():
        training.model.projection.bias[5] = torch.nan
    before = {name: value.clone() for name, value in training.model.state_dict().items()}
    with pytest.raises(FloatingPointError, match="nan at update 3"):
        training.step(MEMBERS)
    for name, value in training.model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("patience", "losses", "updates"),
    [
        (2, [5.0, 4.0, 4.0, 4.5], 8),
        (2, [5.0, 5.5, 4.0, 4.1, 3.9, 4.0, 4.0], 14),
        (1, [5.0, 4.0, 3.0, 2.0, 1.0, 2.0], 12),
        (0, [5.0] * 8, 15),
        (3, [1.0, 4.0, 3.0, 2.0], 8),
    ],
)
def test_training_stops_after_so_many_evaluations_without_a_better_dev_loss(
    new_training: New, tmp_path: Path, patience: int, losses: list[float], updates: int
) -> None:
    training = new_training(evaluate_every=2, plan={"updates": 15, "patience": patience})
    facts = finished(training, tmp_path / "unfinished", losses)
    assert facts == {"updates": updates, "total_updates": updates, "dev_loss": losses[-1]}


@pytest.fixture
def data(digit_pairs: Callable[..., Pairs], tmp_path: Path) -> Path:
    return write_data(tmp_path, digit_pairs)


def test_the_dev_loss_is_nats_a_target_token_however_the_batches_are_cut(
    data: Path, new_training: New, training_settings: Callable[..., TrainingSettings]
) -> None:
    training, vocabulary = new_training(), Vocabulary(data / "target.model")
    dev = pairs_of(*read_tokens(data, "dev"), 20, labelled=False)
    references, model = read_lines(data / "dev.txt"), training.model.eval()
    total, tokens = 0.0, 0
    for number in range(7):
        batch = dev.batch(np.array([number]))
        with torch.no_grad():
            logits = model.projection(model(batch.source, batch.source_mask, batch.target_input))[0]
        total -= sum(float(row.log_softmax(0)[gold]) for row, gold in zip(logits, batch.target_output[0], strict=True))
        tokens += len(logits)
    for cut_at in (5, 1000):
        settings = training_settings(micro_batch_tokens=cut_at)
        scores = evaluation(dev, references, vocabulary, settings, torch.device("cpu"), model, None)
        assert scores == {"dev_loss": pytest.approx(total / tokens, rel=1e-5)}
