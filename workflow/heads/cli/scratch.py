"""Train the shape that a pruning left, from a fresh initialisation."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from heads.base.files import read_yaml
from heads.cli import _training
from heads.config.settings import section
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.head_removal import pruned_shape, read_open_heads
from heads.model.shape import shape_of
from heads.model.transformer import Transformer
from heads.training.loop import Plan, Training


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads scratch`."""
    _training.add_training_arguments(parser)
    parser.add_argument("--unpruned", type=Path, required=True, help="folder of the baseline, whose shape is read")
    parser.add_argument("--heads", type=Path, required=True, help="which of its heads the pruned model kept")


def run(arguments: argparse.Namespace) -> None:
    """Train a new model with the heads that the pruned one has."""
    (device, processes), content = _training.begin(arguments), read_yaml(arguments.settings)
    training = section(TrainingSettings, content["training"])
    unpruned = shape_of(arguments.unpruned)
    shape = pruned_shape(unpruned, read_open_heads(arguments.heads, unpruned))
    torch.manual_seed(arguments.seed)
    pairs = _training.read_pairs(arguments.data, "train", training.max_pieces)
    plan = Plan(training, section(LengthSettings, content["scratch"]), arguments.seed, 0, device, processes=processes)
    start = f"scratch {sorted(shape.live_heads.items())}"
    unfinished = _training.run_training(Training(Transformer(shape), pairs, plan), arguments, content, start)
    unfinished.finish({"train.jsonl": arguments.history})
