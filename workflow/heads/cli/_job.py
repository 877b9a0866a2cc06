"""The training job that a command's flags describe."""

from pathlib import Path

from heads.base.provenance import made_by
from heads.cli._flags import Training
from heads.training.devices import label_of
from heads.training.job import Job, begin
from heads.training.training_text import read_training_text


def job_of(given: Training, **outputs: Path) -> Job:
    """The training job that the flags of a training describe, with device and processes ready.

    outputs: paths of what only some trainings write, by their names in `Job`.
    """
    device, processes = begin(given.device, given.threads, given.processes)
    return Job(
        content=given.settings,
        text=read_training_text(given.data, given.references),
        model=given.model,
        history=given.history,
        seed=given.seed,
        save_every_seconds=given.save_every_seconds,
        device=device,
        processes=processes,
        provenance=made_by(seed=given.seed, device=label_of(device), threads=given.threads, processes=given.processes),
        **outputs,
    )
