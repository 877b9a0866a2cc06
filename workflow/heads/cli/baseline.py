"""Train the unpruned Transformer."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from heads.base.files import read_yaml
from heads.cli import _training
from heads.config.settings import section
from heads.config.trainings import BaselineSettings, ModelSettings, TrainingSettings
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.vocabulary import Vocabulary
from heads.training.loop import Plan, Training


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads baseline`."""
    _training.add_training_arguments(parser)
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder to write, with weights kept on the way")


def run(arguments: argparse.Namespace) -> None:
    """Build the model of the settings and train it."""
    (device, processes), content = _training.begin(arguments), read_yaml(arguments.settings)
    model, training = section(ModelSettings, content["model"]), section(TrainingSettings, content["training"])
    sizes = [len(Vocabulary(arguments.data / f"{side}.model")) for side in ("source", "target")]
    shape = ModelShape(
        width=model.width,
        head_width=model.width // model.heads,
        feedforward=model.feedforward,
        dropout=model.dropout,
        pre_norm=model.pre_norm,
        source_pieces=sizes[0],
        target_pieces=sizes[1],
        original_heads=model.heads,
        live_heads=full_heads(layers=model.layers, heads=model.heads),
    )
    torch.manual_seed(arguments.seed)
    pairs = _training.read_pairs(arguments.data, "train", training.max_pieces)
    length = section(BaselineSettings, content["baseline"])
    plan = Plan(training, length, arguments.seed, 0, device, length.keep_at, processes=processes)
    unfinished = _training.run_training(Training(Transformer(shape), pairs, plan), arguments, content, "baseline")
    unfinished.write_checkpoints(arguments.checkpoints)
    unfinished.finish({"train.jsonl": arguments.history})
