"""Fine-tune a trained model with gates on one scope of heads: hard-concrete ones, or those of an exact number."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heads.base.files import read_yaml, write_tsv
from heads.base.names import SCOPES
from heads.base.seals import sha256_of
from heads.base.targets import SUBSET, Target
from heads.cli import _training
from heads.config.settings import section
from heads.config.trainings import GatesSettings, LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_folder
from heads.model.shape import ModelShape, facts_of
from heads.model.transformer import Transformer
from heads.pruning.gates import HeadGates, TrainableGates, budgets_of
from heads.pruning.penalty import DrivenPenalty, Penalty
from heads.pruning.subset_gates import SubsetGates
from heads.training.loop import Plan, Pruning, Training

COLUMNS = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads gates`."""
    add_gate_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the trained model to start from")


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every training with gates."""
    _training.add_training_arguments(parser)
    parser.add_argument("--scope", choices=sorted(SCOPES), required=True, help="which heads get gates")
    parser.add_argument(
        "--target",
        required=True,
        help="penalty in nats per target token per head, lam-0.05; heads to be left of the scope or of each kind of "
        "attention, keep-12 or keep-4-6-8; or by differentiable subset pruning, dsp-12",
    )
    parser.add_argument("--heads", type=Path, required=True, help="table of the gates to write")
    parser.add_argument("--gates-log", type=Path, required=True, help="how the gates closed, JSON lines to write")


def run(arguments: argparse.Namespace) -> None:
    """Train on with gates; the schedule of the learning rate goes on where the start model's ended."""
    device, processes = _training.begin(arguments)
    content = read_yaml(arguments.settings)
    settings = section(GatesSettings, content["gates"])
    training = section(TrainingSettings, content["training"])
    model = load_folder(arguments.start_model)
    before = facts_of(arguments.start_model)["total_updates"]
    length = LengthSettings(settings.updates, 0, settings.average_last, settings.average_every)
    plan = Plan(training, length, arguments.seed, before, device, processes=processes)
    decoder = (model.target_embedding, model.decoder, model.decoder_norm, model.projection)
    frozen = decoder if arguments.scope == "enc_self" else ()
    start = sha256_of(arguments.start_model / WEIGHTS)
    train_with_gates(arguments, content, model, plan, settings, frozen, start=start)


def train_with_gates(
    arguments: argparse.Namespace,
    content: Mapping[str, Any],
    model: Transformer,
    plan: Plan,
    settings: GatesSettings,
    frozen: tuple[nn.Module, ...],
    *,
    start: str,
) -> None:
    """Put gates on the model's heads, train it with them, write everything; `start` tells what it began from."""
    target = Target.parse(arguments.target, by_gates=True)
    gates, penalty = gates_and_penalty(target, arguments.scope, model.shape, settings)
    rate = settings.subset.learning_rate if isinstance(gates, SubsetGates) else settings.gate_learning_rate
    pruning = Pruning(gates, penalty, rate, settings.record_every, frozen)
    pairs = _training.read_pairs(arguments.data, "train", plan.training.max_pieces)
    start = f"gates {arguments.scope} {arguments.target} {start}"
    unfinished = _training.run_training(Training(model, pairs, plan, pruning), arguments, content, start)
    write_tsv(arguments.heads, rows(gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.history, "gates.jsonl": arguments.gates_log})


def gates_and_penalty(
    target: Target, scope: str, shape: ModelShape, settings: GatesSettings
) -> tuple[TrainableGates, Penalty]:
    """Gates on the heads of a scope and what they cost, for a target of gates.

    Raises UserError when the scope has not so many heads.
    """
    if target.method == SUBSET:
        (budget,) = target.budgets
        return SubsetGates(shape, scope, budget, settings.subset, settings.updates), Penalty(torch.zeros(1))
    if target.lam is not None:
        penalty = Penalty(torch.tensor([target.lam], dtype=torch.float64))
        return HeadGates(shape, scope, settings.hard_concrete), penalty
    gates = HeadGates(shape, scope, settings.hard_concrete, budgets_of(target, scope, shape))
    return gates, DrivenPenalty(gates)


def rows(gates: TrainableGates, shape: ModelShape) -> list[dict[str, Any]]:
    """One row for every gated head, with its original index; log_alpha is the logit also for an exact number."""
    values = (gates.logits(), gates.chances(), gates.binary(), gates.between())
    columns = [[one for layers in each.values() for layer in layers for one in layer.tolist()] for each in values]
    return [
        dict(zip(COLUMNS, (*head, logit, chance, int(stays), int(between)), strict=True))
        for head, logit, chance, stays, between in zip(shape.heads(values[0].keys()), *columns, strict=True)
    ]
