"""Remove the heads that a choice closes from a trained model, and fine-tune it."""

import argparse

from heads.base.checksums import sha256_of
from heads.cli._flags import add_grams_argument, add_path_argument, add_training_arguments, settings_of
from heads.cli._job import job_of
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_answering
from heads.model.head_removal import prune, read_open_heads
from heads.model.shape import facts_of
from heads.pruning.closed_form import kept_by, load_output_maps, without
from heads.training.devices import label_of
from heads.training.job import run_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_training_arguments(parser)
    add_path_argument(parser, "--start-model", "folder of the trained model to start from")
    add_path_argument(parser, "--heads", "table of the heads to keep")
    add_grams_argument(parser)


def run(arguments: argparse.Namespace) -> str:
    """Prune and fine-tune; the learning rate schedule continues where the start model's ended."""
    job = job_of(arguments)
    model = load_answering(arguments.start_model)
    open_heads = read_open_heads(arguments.heads, model.shape)
    if grams := arguments.grams:
        smaller = without(model, load_output_maps(grams, model), kept_by(open_heads))
    else:
        smaller = prune(model, open_heads)
    sources = " ".join(sha256_of(path) for path in (arguments.start_model / WEIGHTS, grams) if path)
    before = facts_of(arguments.start_model)["total_updates"]
    training = settings_of(arguments, TrainingSettings, "training")
    length = settings_of(arguments, LengthSettings, "selected")
    start = f"selected {sorted(smaller.shape.live_heads.items())} {sources}"
    run_job(job, smaller, training, length, start=start, updates_before=before)
    return label_of(job.device)
