"""Fine-tune a trained model with gates on one scope of heads: hard-concrete ones, or those of an exact number."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heads.base.files import UserError, read_json, read_yaml, sha256_of, write_tsv
from heads.base.names import SCOPES
from heads.cli import _training
from heads.config.settings import section
from heads.config.trainings import GatesSettings, LengthSettings, TrainingSettings
from heads.model.checkpoint import load_model
from heads.model.transformer import ModelShape, Transformer
from heads.pruning.gates import HeadGates, TrainableGates, budgets_of
from heads.pruning.penalty import DrivenPenalty, Penalty
from heads.pruning.subset_gates import SubsetGates
from heads.training.loop import Plan, Pruning, Training

COLUMNS = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")
LAM = r"(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?"
"""One way to write a number, the one that the workflow takes in paths."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads gates`."""
    add_gate_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="weights of the trained model to start from")
    parser.add_argument("--start-shape", type=Path, required=True, help="its model.json")


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every training with gates."""
    _training.add_training_arguments(parser)
    parser.add_argument("--scope", choices=sorted(SCOPES), required=True, help="which heads get gates")
    parser.add_argument(
        "--target",
        required=True,
        help="lam-0.05: penalty in nats per target token per head; keep-12 or keep-4-6-8: heads to be left of the "
        "scope or of each kind of attention; dsp-12: by differentiable subset pruning",
    )
    parser.add_argument("--heads", type=Path, required=True, help="table of the gates to write")
    parser.add_argument("--gates-log", type=Path, required=True, help="how the gates closed, JSON lines to write")


def run(arguments: argparse.Namespace) -> None:
    """Train on with gates; the schedule of the learning rate goes on where the start model's ended."""
    device, processes = _training.begin(arguments)
    content = read_yaml(arguments.settings)
    settings = section(GatesSettings, content["gates"])
    training = section(TrainingSettings, content["training"])
    model = load_model(arguments.start_model, arguments.start_shape)
    before = read_json(arguments.start_shape)["total_updates"]
    length = LengthSettings(settings.updates, 0, settings.average_last, settings.average_every)
    plan = Plan(training, length, arguments.seed, before, device, processes=processes)
    decoder = (model.target_embedding, model.decoder, model.decoder_norm, model.projection)
    frozen = decoder if arguments.scope == "enc_self" else ()
    train_with_gates(arguments, content, model, plan, settings, frozen, start=sha256_of(arguments.start_model))


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
    gates, penalty = gates_and_penalty(arguments.target, arguments.scope, model.shape, settings)
    rate = settings.subset.learning_rate if isinstance(gates, SubsetGates) else settings.gate_learning_rate
    pruning = Pruning(gates, penalty, rate, settings.record_every, frozen)
    pairs = _training.read_pairs(arguments.data, "train", plan.training.max_pieces)
    start = f"gates {arguments.scope} {arguments.target} {start}"
    unfinished = _training.run_training(Training(model, pairs, plan, pruning), arguments, content, start)
    write_tsv(arguments.heads, rows(gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.history, "gates.jsonl": arguments.gates_log})


def gates_and_penalty(
    target: str, scope: str, shape: ModelShape, settings: GatesSettings
) -> tuple[TrainableGates, Penalty]:
    """Gates on the heads of a scope and what they cost, for a target such as `lam-0.05`, `keep-4-6-8` or `dsp-12`.

    Raises UserError when the target is none.
    """
    match = re.fullmatch(rf"lam-(?P<lam>{LAM})|keep-(?P<keep>[0-9]+(-[0-9]+)*)|dsp-(?P<subset>[0-9]+)", target)
    if match is None:
        raise UserError(
            f"{target!r} is no target: write lam-0.05 with a number of at least 0, keep-12, keep-4-6-8 or dsp-12."
        )
    if match["subset"]:
        subset = SubsetGates(shape, scope, int(match["subset"]), settings.subset, settings.updates)
        return subset, Penalty(torch.zeros(1))
    if match["lam"]:
        penalty = Penalty(torch.tensor([float(match["lam"])], dtype=torch.float64))
        return HeadGates(shape, scope, settings.hard_concrete), penalty
    gates = HeadGates(shape, scope, settings.hard_concrete, budgets_of(match["keep"], scope, shape))
    return gates, DrivenPenalty(gates)


def rows(gates: TrainableGates, shape: ModelShape) -> list[dict[str, Any]]:
    """One row for every gated head, with its original index; log_alpha is the logit also for an exact number."""
    columns = [
        {kind: [layer.tolist() for layer in layers] for kind, layers in values.items()}
        for values in (gates.logits(), gates.chances(), gates.binary(), gates.between())
    ]
    return [
        dict(zip(COLUMNS, (kind, layer, head, logit, chance, int(stays), int(between)), strict=True))
        for kind in columns[0]
        for layer, live in enumerate(shape.live_heads[kind])
        for head, logit, chance, stays, between in zip(live, *(each[kind][layer] for each in columns), strict=True)
    ]
