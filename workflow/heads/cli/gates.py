"""Fine-tune a trained model with hard-concrete gates on one scope of heads."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from heads.checkpoints import load_model
from heads.cli import _training
from heads.devices import pick
from heads.files import UserError, read_json, read_yaml, sha256_of, write_tsv
from heads.gates import HeadGates, is_open, probability_open, strictly_between
from heads.names import SCOPES
from heads.settings import GatesSettings, LengthSettings, TrainingSettings, section
from heads.train import Plan, Pruning, Training
from heads.transformer import ModelShape

COLUMNS = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads gates`."""
    _training.add_training_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="weights of the trained model to start from")
    parser.add_argument("--start-shape", type=Path, required=True, help="its model.json")
    parser.add_argument("--scope", choices=sorted(SCOPES), required=True, help="which heads get gates")
    parser.add_argument("--lam", type=float, required=True, help="penalty in nats per target token per head")
    parser.add_argument("--heads", type=Path, required=True, help="table of the gates to write")
    parser.add_argument("--gates-log", type=Path, required=True, help="how the gates closed, JSON lines to write")


def run(arguments: argparse.Namespace) -> None:
    """Train on with gates; the schedule of the learning rate goes on where the start model's ended."""
    if not 0 <= arguments.lam < float("inf"):
        raise UserError(f"lambda is {arguments.lam}, but must be a finite number of at least 0.")
    device, content = pick(arguments), read_yaml(arguments.settings)
    settings = section(GatesSettings, content["gates"])
    training = section(TrainingSettings, content["training"])
    model = load_model(arguments.start_model, arguments.start_shape)
    gates = HeadGates(model.shape, arguments.scope, settings.hard_concrete)
    frozen = (model.target_embedding, model.decoder, model.decoder_norm, model.projection)
    pruning = Pruning(
        gates,
        arguments.lam,
        settings.gate_learning_rate,
        settings.record_every,
        frozen if arguments.scope == "enc_self" else (),
    )
    pairs = _training.read_pairs(arguments.data, "train", training.max_pieces)
    length = LengthSettings(settings.updates, 0, settings.average_last, settings.average_every)
    before = read_json(arguments.start_shape)["total_updates"]
    plan = Plan(training, length, arguments.seed, before, device)
    start = f"gates {arguments.scope} {arguments.lam} {sha256_of(arguments.start_model)}"
    training_run = Training(model, pairs, plan, pruning)
    unfinished = _training.run_training(training_run, arguments, content, start)
    write_tsv(arguments.heads, rows(gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.log, "gates.jsonl": arguments.gates_log})


def rows(gates: HeadGates, shape: ModelShape) -> list[dict[str, Any]]:
    """One row for every gated head, with its original index."""
    table = []
    for name, log_alpha in gates.log_alpha.items():
        kind, layer = name.split(":")
        log_alpha = log_alpha.detach().cpu()
        columns = (
            log_alpha.tolist(),
            probability_open(log_alpha, gates.shape).tolist(),
            is_open(log_alpha, gates.shape).int().tolist(),
            strictly_between(log_alpha, gates.shape).int().tolist(),
        )
        for head, values in zip(shape.live_heads[kind][int(layer)], zip(*columns, strict=True), strict=True):
            table.append(dict(zip(COLUMNS, (kind, int(layer), head, *values), strict=True)))
    return table
