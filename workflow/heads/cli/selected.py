"""Remove the heads that a choice closes from a trained model, and train on."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import read_yaml
from heads.base.seals import sha256_of
from heads.cli import _training
from heads.config.settings import section
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_folder
from heads.model.head_removal import prune, read_open_heads
from heads.model.shape import facts_of
from heads.training.loop import Plan, Training


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads selected`."""
    _training.add_training_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the trained model to start from")
    parser.add_argument("--heads", type=Path, required=True, help="which of its heads are kept")


def run(arguments: argparse.Namespace) -> None:
    """Prune and train on; the schedule of the learning rate goes on where the start model's ended."""
    (device, processes), content = _training.begin(arguments), read_yaml(arguments.settings)
    training = section(TrainingSettings, content["training"])
    model = load_folder(arguments.start_model)
    smaller = prune(model, read_open_heads(arguments.heads, model.shape))
    pairs = _training.read_pairs(arguments.data, "train", training.max_pieces)
    before = facts_of(arguments.start_model)["total_updates"]
    length = section(LengthSettings, content["selected"])
    plan = Plan(training, length, arguments.seed, before, device, processes=processes)
    start = f"selected {sorted(smaller.shape.live_heads.items())} {sha256_of(arguments.start_model / WEIGHTS)}"
    unfinished = _training.run_training(Training(smaller, pairs, plan), arguments, content, start)
    unfinished.finish({"train.jsonl": arguments.history})
