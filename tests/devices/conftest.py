"""A machine with one GPU, which is the stand-in."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import standin
import torch

from heads.analysis import speed
from heads.analysis.lrp import steps
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.config.analyses import CausalSettings
from heads.one_model import costs, measuring, prune_report, request
from heads.training import cross_entropy, devices
from heads.training.loop import Training

TABLES = (cross_entropy.CHUNK, devices.SUBWORDS_MULTIPLE, steps.CHUNK_ELEMENTS)
"""What hangs on the type of a device; the stand-in is treated as a GPU."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[torch.device]:
    """The stand-in, which `--device cuda` names; no update of a training may wait for it."""
    standin.register()
    monkeypatch.setattr(torch, "Generator", standin.Generator)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda place: SimpleNamespace(uuid="stand-in"))
    monkeypatch.setattr(devices, "GPU", standin.NAME)
    monkeypatch.setattr(devices, "LOCK_HOMES", (tmp_path,))
    monkeypatch.setattr(devices, "taken", taken)
    for table in TABLES:
        monkeypatch.setitem(table, standin.NAME, table["cuda"])
    step = Training.step

    def without_waiting(*given: Any) -> Any:
        with standin.never_waiting():
            return step(*given)

    monkeypatch.setattr(Training, "step", without_waiting)
    # Another process would know nothing of the stand-in.
    monkeypatch.setattr(speed, "peak_memory_mb", lambda *given: speed._peak_memory_mb(*given, 1))
    # Otherwise gradients would be computed by a thread of the device.
    with torch.autograd.set_multithreading_enabled(False):
        yield torch.device(standin.NAME, 0)


def taken(names: Sequence[str], folder: Path, waiting: str) -> int:
    """As `heads.training.devices.taken`, without waiting."""
    place = devices.claim(names, folder)
    assert place is not None, f"{waiting}, which is this one: it would wait for ever"
    return place


@pytest.fixture
def small_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of what `inspect` and `prune` do a fixed number of times."""
    monkeypatch.setattr(measuring, "CausalSettings", lambda updates: CausalSettings(updates=2))
    monkeypatch.setattr(measuring, "RANDOM_DRAWS", 1)
    monkeypatch.setattr(request, "SHARES", (0.5,))
    once = costs.SPEED.model_copy(update={"batch_sizes": (2,), "repeats": 2})
    for module in (costs, prune_report):
        monkeypatch.setattr(module, "SPEED", once)
    for number in ("FEW", "MANY"):
        monkeypatch.setattr(costs, number, 2)
    # What so few sentences take says nothing.
    monkeypatch.setattr(costs.Costs, "times", dict.fromkeys((*ATTENTIONS, *FEEDFORWARDS), 0.01))
