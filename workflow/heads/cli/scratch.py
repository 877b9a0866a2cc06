"""Train a model with the heads that pruning left, from a fresh initialisation."""

import argparse

import torch

from heads.cli._flags import add_path_argument, add_training_arguments, settings_of
from heads.cli._job import job_of
from heads.config.trainings import ScratchSettings, TrainingSettings
from heads.model.folder import model_of
from heads.model.head_removal import pruned_shape, read_open_heads
from heads.model.shape import check_answers, shape_of
from heads.training.devices import label_of
from heads.training.job import run_job
from heads.training.pace import as_long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_training_arguments(parser)
    add_path_argument(parser, "--unpruned", "folder of the baseline, for its shape")
    add_path_argument(parser, "--heads", "table of the heads that the pruned model kept")


def run(arguments: argparse.Namespace) -> str:
    """Train a new model with the same heads as the pruned one."""
    job = job_of(arguments)
    unpruned = shape_of(arguments.unpruned)
    check_answers(unpruned, arguments.unpruned)
    shape = pruned_shape(unpruned, read_open_heads(arguments.heads, unpruned))
    torch.manual_seed(arguments.seed)
    settings = as_long(settings_of(arguments, ScratchSettings, "scratch"), arguments.unpruned)
    training = settings.trained_by(settings_of(arguments, TrainingSettings, "training"))
    start = f"scratch {sorted(shape.live_heads.items())}"
    run_job(job, model_of(shape), training, settings, start=start, updates_before=0)
    return label_of(job.device)
