"""Train the unpruned Transformer, or a classifier."""

import argparse

import torch

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.base.outputs import FOLDER
from heads.cli._flags import add_output_argument, add_training_arguments, settings_of
from heads.cli._job import job_of
from heads.config.trainings import ModelSettings, TrainingSettings, UnprunedSettings
from heads.model.folder import model_of
from heads.model.shape import unpruned_shape
from heads.text.encoding import vocabulary_or_labels
from heads.text.labels import Labels
from heads.training.devices import label_of
from heads.training.job import run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_training_arguments(parser)
    add_output_argument(parser, "--checkpoints", what="folder to write, with checkpoints of the training", kind=FOLDER)


def run(arguments: argparse.Namespace) -> str:
    """Build the model that the settings describe, and train it."""
    job = job_of(arguments, checkpoints=arguments.checkpoints)
    source, target = (vocabulary_or_labels(arguments.data / f"{side}.model") for side in SIDES)
    labels = len(target) if isinstance(target, Labels) else 0
    if labels == 1:
        raise UserError(
            f"{arguments.data} has a single label, so that there is nothing to classify: give other examples."
        )
    shape = unpruned_shape(settings_of(arguments, ModelSettings, "model"), len(source), len(target), labels)
    torch.manual_seed(arguments.seed)
    training = settings_of(arguments, TrainingSettings, "training")
    length = settings_of(arguments, UnprunedSettings, "baseline")
    run_job(
        job, model_of(shape), training, length, start="baseline", updates_before=0, keep_at=length.keep_at,
        seconds=60 * length.minutes,
    )  # fmt: skip
    return label_of(job.device)
