"""Fine-tune a pruned model for some minutes, towards the probabilities that the whole model gives."""

from pathlib import Path

import torch

from heads.base.provenance import made_by
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.interop.bundle import Bundle
from heads.model.encoder import Encoder
from heads.model.folder import HEADS
from heads.model.head_removal import write_heads
from heads.training.devices import label_of
from heads.training.distributed import Processes
from heads.training.job import Job, run_job
from heads.training.training_text import TrainingText

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


def fine_tune(
    smaller: Bundle, teacher: Encoder, text: TrainingText, out: Path, minutes: float, device: torch.device, threads: int
) -> None:
    """Fine-tune a pruned model into a folder, unless that is done; if it was stopped, it goes on.

    smaller: its weights change. teacher: the model that it was pruned from, with the same subwords.
    """
    history = out / "train.jsonl"
    if history.is_file():
        return
    out.mkdir(exist_ok=True)
    write_heads(out / HEADS, smaller.shape)
    job = Job(
        content={"training": TRAINING.model_dump(), "minutes": minutes},
        text=text,
        model=out,
        history=history,
        seed=1,
        save_every_seconds=SAVED_AFTER,
        device=device,
        processes=Processes(),
        provenance=made_by(seed=1, device=label_of(device), threads=threads, processes=1),
    )
    model, start = smaller.model, smaller.place.name
    run_job(job, model, TRAINING, LENGTH, start=start, updates_before=0, seconds=60 * minutes, teacher=teacher)
