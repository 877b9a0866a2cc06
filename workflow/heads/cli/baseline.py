"""Train the unpruned Transformer, or a classifier."""

import torch

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.cli._flags import KeptCheckpoints, Training
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import ModelSettings, TrainingSettings, UnprunedSettings
from heads.model.folder import model_of
from heads.model.shape import unpruned_shape
from heads.text.encoding import vocabulary_or_labels
from heads.text.labels import Labels
from heads.training.devices import label_of
from heads.training.job import run_job


def run(given: Training, checkpoints: KeptCheckpoints) -> str:
    """Build the model that the settings describe, and train it."""
    job = job_of(given, checkpoints=checkpoints)
    source, target = (vocabulary_or_labels(given.data / f"{side}.model") for side in SIDES)
    labels = len(target) if isinstance(target, Labels) else 0
    if labels == 1:
        raise UserError(f"{given.data} has a single label, so that there is nothing to classify: give other examples.")
    shape = unpruned_shape(section(ModelSettings, given.settings["model"]), len(source), len(target), labels)
    torch.manual_seed(given.seed)
    training = section(TrainingSettings, given.settings["training"])
    length = section(UnprunedSettings, given.settings["baseline"])
    run_job(
        job, model_of(shape), training, length, start="baseline", updates_before=0,
        checkpoint_updates=length.checkpoint_updates, seconds=60 * length.minutes,
    )  # fmt: skip
    return label_of(job.device)
