"""Train a model with the heads that pruning left, from a fresh initialisation."""

from pathlib import Path
from typing import Annotated

import torch

from heads.cli._flags import ForItsShape, Training
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import ScratchSettings, TrainingSettings
from heads.model.folder import model_of
from heads.model.head_removal import pruned_shape, read_open_heads
from heads.model.shape import check_answers, shape_of
from heads.training.devices import label_of
from heads.training.job import run_job
from heads.training.pace import as_long


def run(
    given: Training, unpruned: ForItsShape, heads: Annotated[Path, "table of the heads that the pruned model kept"]
) -> str:
    """Train a new model with the same heads as the pruned one."""
    job = job_of(given)
    whole = shape_of(unpruned)
    check_answers(whole, unpruned)
    shape = pruned_shape(whole, read_open_heads(heads, whole))
    torch.manual_seed(given.seed)
    settings = as_long(section(ScratchSettings, given.settings["scratch"]), unpruned)
    training = settings.trained_by(section(TrainingSettings, given.settings["training"]))
    start = f"scratch {sorted(shape.live_heads.items())}"
    run_job(job, model_of(shape), training, settings, start=start, updates_before=0)
    return label_of(job.device)
