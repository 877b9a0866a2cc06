"""Train a model from scratch with gates and their penalty (Voita et al. 2019, footnote 8)."""

import argparse

import torch

from heads.base.targets import Target
from heads.cli._flags import add_gate_arguments, add_path_argument, settings_of
from heads.cli._job import job_of
from heads.config.trainings import GatesSettings, ScratchSettings, TrainingSettings
from heads.model.folder import model_of
from heads.model.shape import check_answers, shape_of
from heads.training.devices import label_of
from heads.training.job import pruning_of, run_job
from heads.training.pace import as_long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_gate_arguments(parser)
    add_path_argument(parser, "--unpruned", "folder of the baseline, for its shape")


def run(arguments: argparse.Namespace) -> str:
    """Train a new model with gates for as long as models from scratch; no part is frozen."""
    job = job_of(arguments, gates=arguments.heads, gates_log=arguments.gates_log)
    from_scratch = settings_of(arguments, ScratchSettings, "scratch").model_copy(update={"patience": 0})
    length = as_long(from_scratch, arguments.unpruned)
    settings = settings_of(arguments, GatesSettings, "gates").model_copy(update={"updates": length.updates})
    training = length.trained_by(settings_of(arguments, TrainingSettings, "training"))
    shape = shape_of(arguments.unpruned)
    check_answers(shape, arguments.unpruned)
    torch.manual_seed(arguments.seed)
    model = model_of(shape)
    target = Target.parse(arguments.target, by_gates=True)
    pruning = pruning_of(model, arguments.scope, target, settings, ())
    start = f"gates {arguments.scope} {arguments.target} fresh"
    run_job(job, model, training, length, start=start, updates_before=0, pruning=pruning)
    return label_of(job.device)
