"""Fine-tune a trained model with gates on one scope of heads or hidden units, hard-concrete or for subset pruning."""

import argparse

from heads.base.checksums import sha256_of
from heads.base.targets import Target
from heads.cli._flags import add_gate_arguments, add_path_argument, settings_of
from heads.cli._job import job_of
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.shape import facts_of
from heads.training.devices import label_of
from heads.training.job import frozen_beside, pruning_of, run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_gate_arguments(parser)
    add_path_argument(parser, "--start-model", "folder of the trained model to start from")


def run(arguments: argparse.Namespace) -> str:
    """Fine-tune with gates; the learning rate schedule continues where the start model's ended."""
    job = job_of(arguments, gates=arguments.heads, gates_log=arguments.gates_log)
    settings = settings_of(arguments, GatesSettings, "gates")
    training = settings_of(arguments, TrainingSettings, "training")
    model = load_model(arguments.start_model)
    before = facts_of(arguments.start_model)["total_updates"]
    start = f"gates {arguments.scope} {arguments.target} {sha256_of(arguments.start_model / WEIGHTS)}"
    target, frozen = Target.parse(arguments.target, by_gates=True), frozen_beside(arguments.scope, model)
    pruning = pruning_of(model, arguments.scope, target, settings, frozen)
    run_job(job, model, training, settings.length, start=start, updates_before=before, pruning=pruning)
    return label_of(job.device)
