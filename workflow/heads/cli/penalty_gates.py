"""Train a model from scratch with gates and their penalty (Voita et al. 2019, footnote 8)."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from heads.base.files import write_tsv
from heads.base.targets import Target
from heads.cli._flags import add_gate_arguments
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import GatesSettings, ScratchSettings, TrainingSettings
from heads.model.shape import shape_of
from heads.model.transformer import Transformer
from heads.pruning.gates import COLUMNS, gate_rows
from heads.training.devices import label_of
from heads.training.job import pruning_of, run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_gate_arguments(parser)
    parser.add_argument("--unpruned", type=Path, required=True, help="folder of the baseline, for its shape")


def run(arguments: argparse.Namespace) -> str:
    """Train a new model with gates for as long as models from scratch; no part is frozen."""
    job = job_of(arguments)
    content = job.content
    length = section(ScratchSettings, content["scratch"]).model_copy(update={"patience": 0})
    settings = section(GatesSettings, content["gates"]).model_copy(update={"updates": length.updates})
    training = length.trained_by(section(TrainingSettings, content["training"]))
    torch.manual_seed(arguments.seed)
    model = Transformer(shape_of(arguments.unpruned))
    target = Target.parse(arguments.target, by_gates=True)
    pruning = pruning_of(model, arguments.scope, target, settings, ())
    start = f"gates {arguments.scope} {arguments.target} fresh"
    unfinished = run_job(job, model, training, length, start=start, updates_before=0, pruning=pruning)
    write_tsv(arguments.heads, gate_rows(pruning.gates, model.shape), COLUMNS)
    unfinished.finish({"train.jsonl": arguments.history, "gates.jsonl": arguments.gates_log})
    return label_of(job.device)
