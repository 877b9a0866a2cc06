"""The `defaults` are the papers' values, and trainings and gates made from them follow the papers' formulas.

The numbers are those of Voita et al. 2019 and of their released code, and of Michel et al. 2019, written here by hand.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
import torch

from checkouts import configuration
from heads.config.settings import resolve, section
from heads.config.trainings import GatesSettings, LengthSettings, ScratchSettings, TrainingSettings
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.pruning.gates import probability_open
from heads.text.batches import Pairs
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan, learning_rate

CONFIG = configuration()
PAPER = {
    "bpe.source_subwords": 32000,
    "bpe.target_subwords": 32000,
    "model.layers": 6,
    "model.heads": 8,
    "model.width": 512,
    "model.feedforward": 2048,
    "model.dropout": 0.1,
    "model.attention_dropout": 0.1,
    "model.pre_norm": True,  # the released code; the paper says "base as in Vaswani et al."
    "training.batch_tokens": 16000,
    "training.max_subwords": 200,
    "training.label_smoothing": 0.1,
    "training.adam_beta1": 0.9,
    "training.adam_beta2": 0.98,  # the released scripts have 0.998
    "training.adam_epsilon": 1e-9,
    "training.learning_rate": 0.0316228,  # 4 / sqrt(16000)
    "training.warmup_updates": 16000,
    "training.evaluate_every": 2048,
    "gates.hard_concrete.temperature": 0.33,
    "gates.hard_concrete.low": -0.1,
    "gates.hard_concrete.high": 1.1,
    "gates.subset.learning_rate": 0.2,  # these three from Li et al. 2021
    "gates.subset.temperature_first": 0.1,
    "gates.subset.temperature_last": 1e-8,
    "translate.beam": 4,
    "translate.length_penalty": 0.6,
    "translate.sentences": 0,  # all
    "roles.sentences": 50000,
    "roles.positional_share": 0.9,
    "roles.syntactic_margin": 0.1,
    "roles.margin_is_relative": False,
    "roles.relations": ["nsubj", "obj", "amod", "advmod"],
    "roles.rare_outside_top": 500,
    "speed.batch_sizes": [1, 4, 16, 64],  # from here on, Michel et al.
    "masking_curve.step": 0.1,
    "checkpoints.step": 0.1,
}


def value(section_of: dict[str, Any], path: str) -> Any:
    """The value at a path such as `model.layers`."""
    return reduce(lambda inner, key: inner[key], path.split("."), section_of)


@pytest.mark.parametrize("path", PAPER)
def test_the_default_is_the_papers_value(path: str) -> None:
    assert value(CONFIG["defaults"], path) == PAPER[path]


@pytest.mark.parametrize("stage", ["speed", "ablation", "masking_curve", "checkpoints"])
def test_whatever_translates_searches_as_the_score_does(stage: str) -> None:
    translate = CONFIG["defaults"]["translate"]
    assert {key: CONFIG["defaults"][stage][key] for key in ("beam", "length_penalty")} == {
        key: translate[key] for key in ("beam", "length_penalty")
    }


@pytest.mark.parametrize("name", ["wmt-en-ru", "wmt-en-de", "wmt-en-fr", "opensubtitles-en-ru"])
def test_the_papers_experiments_change_none_of_them(name: str) -> None:
    experiment = resolve(CONFIG)[name].model_dump(mode="json")
    assert {path: value(experiment, path) for path in PAPER} == PAPER
    # Budgets are sixths of the 3 x 6 x 8 heads, not the shares that other experiments have.
    sixths = [144 * part // 6 for part in range(1, 6)]
    assert (
        value(experiment, "sweep.budgets.all") == value(experiment, "sweep.selection.fine_tuned.budgets") == sixths[:3]
    )
    assert value(experiment, "sweep.selection.budgets") == sixths


@pytest.mark.parametrize("name", ["demo", "multi30k", "news-en-ru", "news-en-de"])
def test_small_experiments_keep_the_papers_loss_optimiser_gates_and_search(name: str) -> None:
    """Settings that do not depend on the size of the model or of the text."""
    experiment = resolve(CONFIG)[name].model_dump(mode="json")
    sized = (
        "learning_rate",
        "warmup_updates",
        "batch_tokens",
        "evaluate_every",
        "bpe",
        "model",
        "subset",
        "roles",
        # News has more and longer test sentences than two cores can translate a hundred times in minutes.
        *(["sentences"] if name.startswith("news") else []),
    )
    kept = [path for path in PAPER if not set(path.split(".")) & set(sized) and path != "checkpoints.step"]
    assert len(kept) >= 12
    assert {path: value(experiment, path) for path in kept} == {path: PAPER[path] for path in kept}


def test_the_experiment_of_head_budgets_is_as_the_public_code_of_its_paper_has_it() -> None:
    """72 heads, post-norm; learning rate up to 0.0005 in 4,000 updates, then down as inverse square root; beam 5."""
    experiment = resolve(CONFIG)["iwslt14-de-en"]
    model, settings = experiment.model, experiment.training
    assert 3 * model.layers * model.heads == 72 and not model.pre_norm
    assert (model.width, model.feedforward, model.dropout) == (512, 1024, 0.3)
    assert learning_rate(4000, settings) == pytest.approx(5e-4, rel=1e-3)
    assert learning_rate(16000, settings) == pytest.approx(2.5e-4, rel=1e-3)
    assert learning_rate(1000, settings) == pytest.approx(1.25e-4, rel=1e-3)
    assert (settings.batch_tokens, settings.label_smoothing, settings.adam_beta2) == (4096, 0.1, 0.98)
    stages = (
        *(experiment.translate, experiment.speed, experiment.ablation),
        *(experiment.masking_curve, experiment.checkpoints),
    )
    searches = {(stage.beam, stage.length_penalty) for stage in stages}
    assert searches == {(5, 1.0)}
    subset = experiment.gates.subset
    assert (subset.learning_rate, subset.temperature_first, subset.temperature_last) == (0.2, 0.1, 1e-8)
    budgets = experiment.sweep.budgets["all"]
    assert 4 in budgets and budgets == experiment.sweep.selection.fine_tuned.budgets
    # Their penalty is added to a loss summed over a batch.
    assert experiment.sweep.lambdas["all"][-1].lam == pytest.approx(200 / 4096, rel=0.03)


def test_a_training_of_the_defaults_has_the_papers_optimiser_and_schedule(
    tiny_shape: Callable[..., ModelShape], length: Callable[..., LengthSettings], digit_pairs: Callable[..., Pairs]
) -> None:
    settings = resolve(CONFIG)["wmt-en-de"].training
    plan = TrainingPlan(settings, length(), seed=1, updates_before=0, device=torch.device("cpu"))
    training = Training(Transformer(tiny_shape()), digit_pairs(count=9), plan)
    (adam,) = training.optimizers.each
    (group,) = adam.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"], group["amsgrad"]) == ((0.9, 0.98), 1e-9, 0, False)
    # 4 min(t^-0.5, t 16000^-1.5): 1 / 505,964 at first, its peak at 16,000, half of that at 64,000.
    assert learning_rate(1, settings) == pytest.approx(4 / (16000 * 126.4911064))
    assert learning_rate(16000, settings) == pytest.approx(4 / 126.4911064)
    assert learning_rate(64000, settings) == pytest.approx(2 / 126.4911064)
    assert max(range(15000, 17001, 500), key=lambda update: learning_rate(update, settings)) == 16000
    thrice = ScratchSettings(learning_rate_factor=3.0).trained_by(settings)
    assert learning_rate(64000, thrice) == pytest.approx(3 * learning_rate(64000, settings))
    by_default = section(TrainingSettings, CONFIG["defaults"]["training"])
    assert learning_rate(64000, by_default) == pytest.approx(learning_rate(64000, settings), rel=1e-5)


def test_gates_of_the_defaults_are_open_with_the_papers_chance() -> None:
    shape = section(GatesSettings, CONFIG["defaults"]["gates"]).hard_concrete
    for log_alpha in (-2.0, 0.0, 3.0):
        expected = 1 / (1 + math.exp(-(log_alpha + 0.7913)))  # 0.33 log 11 = 0.7913
        assert float(probability_open(torch.tensor(log_alpha), shape)) == pytest.approx(expected, abs=1e-4)
