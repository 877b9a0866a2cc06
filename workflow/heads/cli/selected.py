"""Remove the heads that a choice closes from a trained model, and fine-tune it."""

from pathlib import Path
from typing import Annotated

from heads.base.checksums import sha256_of
from heads.cli._flags import Grams, StartModel, Training
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_answering
from heads.model.head_removal import prune, read_open_heads
from heads.model.shape import facts_of
from heads.pruning.closed_form import kept_by, load_output_maps, without
from heads.training.devices import label_of
from heads.training.job import run_job


def run(
    given: Training, start_model: StartModel, heads: Annotated[Path, "table of the heads to keep"], grams: Grams = None
) -> str:
    """Prune and fine-tune; the learning rate schedule continues where the start model's ended."""
    job = job_of(given)
    model = load_answering(start_model)
    open_heads = read_open_heads(heads, model.shape)
    smaller = without(model, load_output_maps(grams, model), kept_by(open_heads)) if grams else prune(model, open_heads)
    sources = " ".join(sha256_of(path) for path in (start_model / WEIGHTS, grams) if path)
    before = facts_of(start_model)["total_updates"]
    training = section(TrainingSettings, given.settings["training"])
    length = section(LengthSettings, given.settings["selected"])
    start = f"selected {sorted(smaller.shape.live_heads.items())} {sources}"
    run_job(job, smaller, training, length, start=start, updates_before=before)
    return label_of(job.device)
