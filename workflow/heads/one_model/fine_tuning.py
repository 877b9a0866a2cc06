"""Fine-tune a pruned model for some minutes, towards the probabilities that the whole model gives."""

from pathlib import Path

import torch

from heads.base.names import SIDES
from heads.base.provenance import made_by
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model, save_folder
from heads.model.shape import facts_of
from heads.one_model.workplace import Workplace
from heads.training.devices import label_of
from heads.training.distributed import Processes
from heads.training.job import Job, run_job
from heads.training.training_text import read_training_text

TRAINING = TrainingSettings(
    batch_tokens=1536,
    micro_batch_tokens=1536,
    learning_rate=0.0001,
    warmup_updates=20,
    decay_share=1.0,
    evaluate_every=1000,
    dev_bleu_sentences=0,
)
LENGTH = LengthSettings(updates=1_000_000, patience=0, average_last=1, average_every=1)
"""More updates than fit into any number of minutes."""
SAVED_AFTER = 60.0
"""Seconds between two saved states."""


def fine_tune(place: Workplace, folder: Path, minutes: float, device: torch.device, threads: int) -> None:
    """Fine-tune the pruned model of a folder in place, unless it is done; if it was stopped, it goes on.

    The text of the train and dev splits must have been answered.
    """
    start, history = place.folder / "before_training", folder / "train.jsonl"
    if history.is_file():
        return
    if not (start / WEIGHTS).is_file():
        start.mkdir(exist_ok=True)
        save_folder(load_model(folder), start, facts_of(folder), made_by())
    job = Job(
        content={"training": TRAINING.model_dump(), "minutes": minutes},
        text=read_training_text(place.bpe, place.text("dev", SIDES[1])),
        model=folder,
        history=history,
        seed=1,
        save_every_seconds=SAVED_AFTER,
        device=device,
        processes=Processes(),
        provenance=made_by(seed=1, device=label_of(device), threads=threads, processes=1),
    )
    model, teacher = load_model(start), load_model(place.baseline)
    run_job(
        job, model, TRAINING, LENGTH, start=folder.parent.name, updates_before=0, seconds=60 * minutes, teacher=teacher
    )
