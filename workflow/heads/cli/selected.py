"""Remove the heads that a choice closes from a trained model, and fine-tune it."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.seals import sha256_of
from heads.cli._flags import add_training_arguments
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.head_removal import prune, read_open_heads
from heads.model.shape import facts_of
from heads.training.devices import label_of
from heads.training.job import run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_training_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the trained model to start from")
    parser.add_argument("--heads", type=Path, required=True, help="table of the heads to keep")


def run(arguments: argparse.Namespace) -> str:
    """Prune and fine-tune; the learning rate schedule continues where the start model's ended."""
    job = job_of(arguments)
    content = job.content
    model = load_model(arguments.start_model)
    smaller = prune(model, read_open_heads(arguments.heads, model.shape))
    before = facts_of(arguments.start_model)["total_updates"]
    training = section(TrainingSettings, content["training"])
    length = section(LengthSettings, content["selected"])
    start = f"selected {sorted(smaller.shape.live_heads.items())} {sha256_of(arguments.start_model / WEIGHTS)}"
    unfinished = run_job(job, smaller, training, length, start=start, updates_before=before)
    unfinished.finish({"train.jsonl": arguments.history})
    return label_of(job.device)
