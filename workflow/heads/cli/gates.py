"""Fine-tune a trained model with hard-concrete gates on one scope of heads."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import torch

from heads.checkpoints import load_model
from heads.cli import _training
from heads.devices import pick
from heads.files import UserError, read_json, read_yaml, sha256_of, write_tsv
from heads.gates import DrivenPrice, HeadGates, Price, budgets_of, probability_open, strictly_between
from heads.names import SCOPES
from heads.settings import GatesSettings, HardConcrete, LengthSettings, TrainingSettings, section
from heads.train import Plan, Pruning, Training
from heads.transformer import ModelShape

COLUMNS = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads gates`."""
    _training.add_training_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="weights of the trained model to start from")
    parser.add_argument("--start-shape", type=Path, required=True, help="its model.json")
    parser.add_argument("--scope", choices=sorted(SCOPES), required=True, help="which heads get gates")
    parser.add_argument(
        "--target",
        required=True,
        help="lam-0.05: penalty in nats per target token per head; keep-12 or keep-4-6-8: heads to be left of the "
        "scope or of each kind of attention",
    )
    parser.add_argument("--heads", type=Path, required=True, help="table of the gates to write")
    parser.add_argument("--gates-log", type=Path, required=True, help="how the gates closed, JSON lines to write")


def run(arguments: argparse.Namespace) -> None:
    """Train on with gates; the schedule of the learning rate goes on where the start model's ended."""
    device, content = pick(arguments), read_yaml(arguments.settings)
    settings = section(GatesSettings, content["gates"])
    training = section(TrainingSettings, content["training"])
    model = load_model(arguments.start_model, arguments.start_shape)
    gates, price = priced_gates(arguments.target, arguments.scope, model.shape, settings.hard_concrete)
    frozen = (model.target_embedding, model.decoder, model.decoder_norm, model.projection)
    pruning = Pruning(
        gates,
        price,
        settings.gate_learning_rate,
        settings.record_every,
        frozen if arguments.scope == "enc_self" else (),
    )
    pairs = _training.read_pairs(arguments.data, "train", training.max_pieces)
    length = LengthSettings(settings.updates, 0, settings.average_last, settings.average_every)
    before = read_json(arguments.start_shape)["total_updates"]
    plan = Plan(training, length, arguments.seed, before, device)
    start = f"gates {arguments.scope} {arguments.target} {sha256_of(arguments.start_model)}"
    training_run = Training(model, pairs, plan, pruning)
    unfinished = _training.run_training(training_run, arguments, content, start)
    write_tsv(arguments.heads, rows(gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.log, "gates.jsonl": arguments.gates_log})


def priced_gates(target: str, scope: str, shape: ModelShape, distribution: HardConcrete) -> tuple[HeadGates, Price]:
    """Gates on the heads of a scope and what they cost, for a target such as `lam-0.05`, `keep-12` or `keep-4-6-8`.

    Raises UserError when the target is none.
    """
    match = re.fullmatch(r"lam-(?P<lam>[0-9.]+)|keep-(?P<keep>[0-9]+(-[0-9]+)*)", target)
    if match is None:
        raise UserError(f"{target!r} is no target: write lam-0.05 with a number of at least 0, keep-12 or keep-4-6-8.")
    if match["lam"]:
        return HeadGates(shape, scope, distribution), Price(torch.tensor([float(match["lam"])], dtype=torch.float64))
    gates = HeadGates(shape, scope, distribution, budgets_of(match["keep"], scope, shape))
    return gates, DrivenPrice(gates)


def rows(gates: HeadGates, shape: ModelShape) -> list[dict[str, Any]]:
    """One row for every gated head, with its original index."""
    table = []
    stays = gates.open_heads()
    for name, log_alpha in gates.log_alpha.items():
        kind, layer = name.split(":")
        log_alpha = log_alpha.detach().cpu()
        columns = (
            log_alpha.tolist(),
            probability_open(log_alpha, gates.shape).tolist(),
            stays[name].int().tolist(),
            strictly_between(log_alpha, gates.shape).int().tolist(),
        )
        for head, values in zip(shape.live_heads[kind][int(layer)], zip(*columns, strict=True), strict=True):
            table.append(dict(zip(COLUMNS, (kind, int(layer), head, *values), strict=True)))
    return table
