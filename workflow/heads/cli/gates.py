"""Fine-tune a trained model with gates on one scope of heads, hard-concrete or for subset pruning."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import write_tsv
from heads.base.seals import sha256_of
from heads.base.targets import Target
from heads.cli._flags import add_gate_arguments
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.shape import facts_of
from heads.pruning.gates import COLUMNS, gate_rows
from heads.training.devices import label_of
from heads.training.job import frozen_beside, pruning_of, run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_gate_arguments(parser)
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the trained model to start from")


def run(arguments: argparse.Namespace) -> str:
    """Fine-tune with gates; the learning rate schedule continues where the start model's ended."""
    job = job_of(arguments)
    content = job.content
    settings = section(GatesSettings, content["gates"])
    training = section(TrainingSettings, content["training"])
    length = settings.length
    model = load_model(arguments.start_model)
    before = facts_of(arguments.start_model)["total_updates"]
    start = f"gates {arguments.scope} {arguments.target} {sha256_of(arguments.start_model / WEIGHTS)}"
    target, frozen = Target.parse(arguments.target, by_gates=True), frozen_beside(arguments.scope, model)
    pruning = pruning_of(model, arguments.scope, target, settings, frozen)
    unfinished = run_job(job, model, training, length, start=start, updates_before=before, pruning=pruning)
    write_tsv(arguments.heads, gate_rows(pruning.gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.history, "gates.jsonl": arguments.gates_log})
    return label_of(job.device)
