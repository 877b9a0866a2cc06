"""Which heads stay once gates are trained, by solving the distribution; dev scores use only these."""

import math
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from few_heads import KNOWN, hand_made, sentences
from heads.analysis.ablation import gates_without
from heads.base.targets import Target
from heads.config.trainings import HardConcrete, TrainingSettings
from heads.model.encoder import Encoder
from heads.model.head_removal import prune
from heads.model.shape import Head, ModelShape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.pruning.gates import HardConcreteGates, budgets_of, gate_rows, is_open
from heads.text.batches import pairs_of, read_tokens
from heads.text.vocabulary import Vocabulary
from heads.training.checkpointing import UnfinishedFolder
from heads.training.evaluation import evaluation
from heads.training.loop import Training, train

Shape = Callable[..., ModelShape]
LIVE = {"enc_self": ((0, 1, 2), (0, 2)), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((0, 1), (0, 1, 2))}
LOG_ALPHAS = {
    "enc_self": [[5.0, 4.0, 3.0], [6.0, 7.0]],
    "dec_self": [[-5.0], [-1.0, -3.0, -2.0]],
    "dec_enc": [[0.0, 1.0], [2.0, -9.0, -8.0]],
}


def solved(log_alpha: float, shape: HardConcrete) -> tuple[float, float]:
    """P(gate = 0) and P(gate = 1): where the stretched sigmoid meets 0 and 1, and how likely noise is to lie beyond.

    The noise log u - log(1 - u) of uniform u has the logistic function for its distribution.
    """
    places = [(end - shape.low) / (shape.high - shape.low) for end in (0, 1)]
    noise = [shape.temperature * math.log(s / (1 - s)) - log_alpha for s in places]
    below = [1 / (1 + math.exp(-x)) for x in noise]
    return below[0], 1 - below[1]


@pytest.mark.parametrize(
    ("name", "log_alpha", "stays"),
    [
        ("hard_concrete", -0.5, False),
        ("hard_concrete", 0.1, True),
        # An interval with ends of unequal weight: zero and one are equally likely at 0.17, not at 0.
        ("lopsided", 0.1, False),
        ("lopsided", 0.24, True),
    ],
)
def test_a_gate_stays_where_one_is_likelier_than_zero_though_neither_has_half_the_chance(
    request: pytest.FixtureRequest, name: str, log_alpha: float, *, stays: bool
) -> None:
    shape: HardConcrete = request.getfixturevalue(name)
    zero, one = solved(log_alpha, shape)
    assert zero < 0.5 and one < 0.5, "more than half would be another rule: both P(gate > 0) and P(gate < 1) are above"
    assert (one > zero) is stays
    assert bool(is_open(torch.tensor(log_alpha, dtype=torch.float64), shape)) is stays


def with_log_alpha(gates: HardConcreteGates, values: dict[str, list[list[float]]]) -> HardConcreteGates:
    """The same gates with all their log_alpha set, by kind and layer."""
    with torch.no_grad():
        for name, log_alpha in gates.log_alpha.items():
            kind, layer = name.split(":")
            log_alpha.copy_(torch.tensor(values[kind][int(layer)]))
    return gates


def test_the_table_of_gates_tells_each_head_by_its_first_number_what_it_learnt_and_whether_it_stays(
    tiny_shape: Shape, hard_concrete: HardConcrete
) -> None:
    shape = tiny_shape(live_heads={**LIVE, "enc_self": ((0, 2), (1,))})
    learnt = [-0.5, 0.1, 3.0]
    gates = with_log_alpha(HardConcreteGates(shape, "enc_self", hard_concrete), {"enc_self": [learnt[:2], learnt[2:]]})
    table = gate_rows(gates, shape)
    assert [(row["attention"], row["layer"], row["head"]) for row in table] == [
        ("enc_self", 0, 0), ("enc_self", 0, 2), ("enc_self", 1, 1)
    ]  # fmt: skip
    assert [row["log_alpha"] for row in table] == pytest.approx(learnt)
    assert [row["p_open"] for row in table] == pytest.approx([1 - solved(a, hard_concrete)[0] for a in learnt])
    assert [row["open"] for row in table] == [0, 1, 1]
    assert [row["strictly_between"] for row in table] == [1, 1, 0]  # at test time the authors' gate is one from 2.4 on


@pytest.mark.parametrize(
    ("keep", "stays"),
    [
        ("2-3-1", {"enc_self": [[0, 0, 0], [1, 1]], "dec_self": [[0], [1, 1, 1]], "dec_enc": [[0, 0], [1, 0, 0]]}),
        ("6", {"enc_self": [[1, 1, 1], [1, 1]], "dec_self": [[0], [0, 0, 0]], "dec_enc": [[0, 0], [1, 0, 0]]}),
        ("0-4-5", {"enc_self": [[0, 0, 0], [0, 0]], "dec_self": [[1], [1, 1, 1]], "dec_enc": [[1, 1], [1, 1, 1]]}),
    ],
)
def test_a_budget_of_a_kind_is_spent_on_its_own_best_and_one_of_all_on_the_best_of_all(
    tiny_shape: Shape, hard_concrete: HardConcrete, keep: str, stays: dict[str, list[list[int]]]
) -> None:
    shape = tiny_shape(live_heads=LIVE)
    budgets = budgets_of(Target.of_choice("gates", keep), "all", shape)
    gates = with_log_alpha(HardConcreteGates(shape, "all", hard_concrete, budgets), LOG_ALPHAS)
    assert {kind: [gate.tolist() for gate in layers] for kind, layers in gates.binary().items()} == stays


def test_every_look_at_the_dev_set_is_with_the_gates_of_the_finished_model_and_without_dropout(
    new_training: Callable[..., Training], tmp_path: Path
) -> None:
    training = new_training(scope="all", lam=0.5, dropout=0.4, evaluate_every=2, plan={"updates": 5})
    assert training.pruning
    with torch.no_grad():
        for log_alpha in training.pruning.gates.parameters():
            log_alpha.copy_(torch.tensor([-1.0, 0.2, 1.5]))
    looks = []

    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        assert training.pruning and gates is not None and not model.training
        finished = training.pruning.gates.binary()
        assert gates.keys() == finished.keys()
        for kind, layers in finished.items():
            assert [gate.tolist() for gate in gates[kind]] == [gate.tolist() for gate in layers]
        looks.append({value for layers in gates.values() for gate in layers for value in gate.tolist()})
        return {"dev_loss": 1.0}

    train(training, evaluate, UnfinishedFolder(tmp_path / "unfinished", "one", 1e9))
    assert looks == [{0.0, 1.0}] * 3  # after updates 2, 4 and 5


class Words:
    """A stand-in for a vocabulary: subword 7 is the word w7."""

    def __init__(self, path: Path) -> None:
        del path

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Sentences of these words."""
        return [" ".join(f"w{subword}" for subword in line) for line in ids]


SCORED = 8


@pytest.fixture
def dev_scores(
    training_settings: Callable[..., TrainingSettings], tmp_path: Path
) -> Callable[[Encoder, Gates | None], dict[str, float]]:
    """A training's dev evaluation on sentences that `hand_made` translates; only the first references are right."""
    sources, targets = sentences(20, 8)
    for lines in (sources, targets):
        lines.insert(2, np.full(21, 5, np.int32))  # too long by one subword, so left out with its reference
    for side, lines in (("source", sources), ("target", targets)):
        offsets = np.cumsum([0, *map(len, lines)], dtype=np.int64)
        save_file({"ids": np.concatenate(lines), "offsets": offsets}, tmp_path / f"dev.{side}.safetensors")
    references = Words(tmp_path).decode([target.tolist() for target in targets])
    references = [*references[: SCORED + 1], *["something quite different"] * 12]
    settings = training_settings(micro_batch_tokens=13, dev_bleu_sentences=SCORED)
    pairs = pairs_of(*read_tokens(tmp_path, "dev"), settings.max_subwords, labelled=False)
    vocabulary = cast(Vocabulary, Words(tmp_path))
    return partial(evaluation, pairs, references, vocabulary, settings, torch.device("cpu"))


def without(closed: Collection[Head], model: Transformer) -> dict[str, list[list[bool]]]:
    """Which heads are left when some are closed."""
    return {
        kind: [[(kind, layer, head) not in closed for head in heads] for layer, heads in enumerate(layers)]
        for kind, layers in model.shape.live_heads.items()
    }


def test_dev_loss_and_dev_bleu_of_a_model_with_gates_are_those_of_the_pruned_model(
    tiny_shape: Shape, dev_scores: Callable[[Encoder, Gates | None], dict[str, float]]
) -> None:
    model = hand_made(tiny_shape)
    others = [head for head in model.shape.heads() if head not in KNOWN]
    whole = dev_scores(model, None)
    assert whole["dev_bleu"] == 100.0, "the first references are right, each beside its own sentence"
    assert dev_scores(model, gates_without(model, others))["dev_bleu"] == 100.0
    for closed in (KNOWN[:1], KNOWN[3:], KNOWN):
        gated = dev_scores(model, gates_without(model, closed))
        pruned = dev_scores(prune(model, without(closed, model)), None)
        assert gated["dev_loss"] == pytest.approx(pruned["dev_loss"], rel=1e-4)
        assert gated["dev_bleu"] == pruned["dev_bleu"] < 60
        assert gated["dev_loss"] > 10 * whole["dev_loss"]
