"""Train with gates and their price from a fresh initialisation on (Voita et al. 2019, footnote 8)."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from heads.base.files import read_yaml
from heads.cli import _training
from heads.cli.gates import add_gate_arguments, train_with_gates
from heads.config.settings import section
from heads.config.trainings import GatesSettings, LengthSettings, TrainingSettings
from heads.model.shape import shape_of
from heads.model.transformer import Transformer
from heads.training.loop import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads penalty_gates`."""
    add_gate_arguments(parser)
    parser.add_argument("--unpruned", type=Path, required=True, help="folder of the baseline, whose shape is read")


def run(arguments: argparse.Namespace) -> None:
    """Train a new model with gates, for as long as models from scratch are trained; all of it learns."""
    device, processes = _training.begin(arguments)
    content = read_yaml(arguments.settings)
    training = section(TrainingSettings, content["training"])
    length = replace(section(LengthSettings, content["scratch"]), patience=0)
    settings = replace(section(GatesSettings, content["gates"]), updates=length.updates)
    torch.manual_seed(arguments.seed)
    model = Transformer(shape_of(arguments.unpruned))
    plan = Plan(training, length, arguments.seed, 0, device, processes=processes)
    train_with_gates(arguments, content, model, plan, settings, (), start="fresh")
