"""Train the unpruned Transformer, or a classifier."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from heads.base.names import SIDES
from heads.cli._flags import add_training_arguments
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import ModelSettings, TrainingSettings, UnprunedSettings
from heads.model.build import model_of
from heads.model.shape import unpruned_shape
from heads.text.encoding import opened
from heads.text.labels import Labels
from heads.training.devices import label_of
from heads.training.job import run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_training_arguments(parser)
    parser.add_argument(
        "--checkpoints", type=Path, required=True, help="folder to write, with checkpoints of the training"
    )


def run(arguments: argparse.Namespace) -> str:
    """Build the model that the settings describe, and train it."""
    job = job_of(arguments)
    content = job.content
    source, target = (opened(arguments.data / f"{side}.model") for side in SIDES)
    labels = len(target) if isinstance(target, Labels) else 0
    shape = unpruned_shape(section(ModelSettings, content["model"]), len(source), len(target), labels)
    torch.manual_seed(arguments.seed)
    training, length = section(TrainingSettings, content["training"]), section(UnprunedSettings, content["baseline"])
    unfinished = run_job(
        job, model_of(shape), training, length, start="baseline", updates_before=0, keep_at=length.keep_at
    )
    unfinished.write_checkpoints(arguments.checkpoints)
    unfinished.finish({"train.jsonl": arguments.history})
    return label_of(job.device)
