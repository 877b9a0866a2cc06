"""Runs requested by path: numbers of heads are checked against the model before anything is trained."""

import re
from pathlib import Path

import pytest

from checkouts import ROOT, checkout, snakemake
from heads.base.files import UserError
from heads.base.targets import Target
from heads.config.checks import check_target
from heads.config.experiment import ClassifyingExperiment, Experiment
from heads.config.trainings import BaselineSettings, ModelSettings

OF_ALL = "enc_self and dec_self and dec_enc"
TOO_MANY = [
    ("all", "keep-37", f"A path has keep-37, which asks for 37 of the 36 heads of {OF_ALL}: lower it."),
    ("all", "dsp-37", f"A path has dsp-37, which asks for 37 of the 36 heads of {OF_ALL}: lower it."),
    ("all", "random2-40", f"A path has random2-40, which asks for 40 of the 36 heads of {OF_ALL}: lower it."),
    ("enc_self", "keep-13", "A path has keep-13, which asks for 13 of the 12 heads of enc_self: lower it."),
    ("all", "keep-12-13-1", "A path has keep-12-13-1, which asks for 13 of the 12 heads of dec_self: lower it."),
    (
        "all",
        "keep-1-2",
        "A path has keep-1-2, which does not fit the scope all: give one number or 3, for enc_self, dec_self, dec_enc.",
    ),
    ("enc_self", "keep-1-2", "A path has keep-1-2, which does not fit the scope enc_self: give one number."),
    (
        "feedforward",
        "keep-61",
        "A path has keep-61, which asks for 61 of the 60 hidden units of enc_ffn and dec_ffn: lower it.",
    ),
    (
        "feedforward",
        "keep-30-31",
        "A path has keep-30-31, which asks for 31 of the 30 hidden units of dec_ffn: lower it.",
    ),
    ("everything", "keep-37-60", f"A path has keep-37-60, which asks for 37 of the 36 heads of {OF_ALL}: lower it."),
    (
        "everything",
        "keep-36",
        "A path has keep-36, which does not fit the scope everything: give two numbers, of heads and of hidden units.",
    ),
]


def experiment(kind: type[Experiment] = Experiment, pretrained: str = "") -> Experiment:
    """A resolved experiment of 3 layers of 4 heads and 10 units."""
    sizes, baseline = ModelSettings(layers=3, heads=4, feedforward=10), BaselineSettings(pretrained=pretrained)
    return kind(model=sizes, baseline=baseline)


@pytest.mark.parametrize(("scope", "target", "sentence"), TOO_MANY)
def test_a_path_that_asks_for_more_heads_than_there_are_is_refused(scope: str, target: str, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        check_target(experiment(), scope, Target.parse(target))


@pytest.mark.parametrize(
    ("scope", "target"),
    [
        ("all", "keep-36"),
        ("all", "keep-12-12-12"),
        ("enc_self", "keep-12"),
        ("all", "lam-37"),
        ("all", "random37-36"),
        ("feedforward", "keep-30-30"),
        ("everything", "keep-36-60"),
    ],
)
def test_as_many_heads_as_there_are_and_any_penalty_may_be_asked_for(scope: str, target: str) -> None:
    check_target(experiment(), scope, Target.parse(target))


def test_a_classifier_has_heads_in_its_encoder_alone() -> None:
    with pytest.raises(UserError, match="asks for 13 of the 12 heads of enc_self"):
        check_target(experiment(ClassifyingExperiment), "all", Target.parse("keep-13"))


def test_of_an_imported_model_its_stage_says_it() -> None:
    check_target(experiment(pretrained="opus"), "all", Target.parse("keep-145"))


@pytest.mark.slow
def test_snakemake_tells_it_while_it_plans(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    for run in ("gates/all/keep-13", "gates_from_scratch/enc_self/keep-5", "selected/all/lrp-13"):
        words = (f"results/tiny/{run}/seed-1/heads.tsv", "--dry-run", "--cores", "1")
        done = snakemake(folder, *words, "--configfile", str(ROOT / "tests/workflow/tiny.yaml"))
        number = run.rpartition("-")[2]
        assert done.returncode == 1 and f"asks for {number} of the {int(number) - 1} heads" in done.stdout, done.stdout
