"""Time pruned models against the unpruned one, in turns in one process, on the CPU and on a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heads.analysis.speed import time_on
from heads.base.columns import SPEED_COLUMNS
from heads.base.files import UserError, write_tsv
from heads.base.runs import name_of
from heads.cli._flags import Baseline, ComparedRuns, Settings, Table, TorchThreads
from heads.config.analyses import SpeedSettings
from heads.config.settings import section
from heads.training.devices import label_of, pick_each


def run(
    settings: Settings,
    baseline: Baseline,
    runs: ComparedRuns,
    source: Annotated[Path, "token file to translate"],
    out: Table,
    device: Annotated[
        Sequence[str],
        {"nargs": "+"},
        "auto (the CPU, and a free GPU if there is one), or devices such as cpu cuda:1",
    ] = ("auto",),
    threads: TorchThreads = 1,
) -> str:
    """Load all models, time them in turn on each device, and write the table."""
    devices = pick_each(device, threads)
    how = section(SpeedSettings, settings["speed"])
    folders = {name_of(folder): folder for folder in (baseline, *runs)}
    if len(folders) <= len(runs):
        raise UserError("--baseline and --runs name a run twice: name each once.")
    write_tsv(out, time_on(devices, folders, source, how), SPEED_COLUMNS)
    return label_of(*devices)
