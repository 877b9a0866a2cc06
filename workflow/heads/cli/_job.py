"""The training job that a command's flags describe."""

import argparse
from pathlib import Path

from heads.base.provenance import made_by
from heads.training.devices import label_of
from heads.training.job import Job, begin
from heads.training.training_text import read_training_text


def job_of(arguments: argparse.Namespace, **outputs: Path) -> Job:
    """The training job that the flags of `add_training_arguments` describe, with device and processes ready.

    outputs: paths of what only some trainings write, by their names in `Job`.
    """
    device, processes = begin(arguments.device, arguments.threads, arguments.processes)
    return Job(
        content=arguments.settings,
        text=read_training_text(arguments.data, arguments.references),
        model=arguments.model,
        history=arguments.history,
        seed=arguments.seed,
        save_every_seconds=arguments.save_every_seconds,
        device=device,
        processes=processes,
        provenance=made_by(
            seed=arguments.seed, device=label_of(device), threads=arguments.threads, processes=arguments.processes
        ),
        **outputs,
    )
