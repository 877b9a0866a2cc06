"""A stopped training is resumed only by the very same command; any other command starts from the beginning."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heads.__main__ import main
from heads.base.files import write_lines, write_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import provenance
from heads.config.trainings import TrainingSettings
from heads.model.checkpoint import load_tensors
from heads.text.batches import Pairs
from heads.training import job
from heads.training.distributed import Processes
from heads.training.loop import Row, Training
from heads.training.training_text import read_training_text
from slow_ones import slow_but
from tiny_commands import command, started, words_of, write_data

SECTIONS = {"baseline": {"updates": 4}, "gates": {"updates": 4}, "scratch": {"updates": 4}, "selected": {"updates": 4}}
HEADS = [(kind, layer, head) for kind in ATTENTIONS for layer in range(2) for head in range(3)]


class Place:
    """A data folder with two choices of heads and trained models, in which commands are stopped and run again."""

    def __init__(self, data: Path, training: TrainingSettings, digit_pairs: Callable[..., Pairs]) -> None:
        self.data, self.training, self.digit_pairs = data, training, digit_pairs
        self.write_data()
        for number in (1, 2):
            rows = [(*head, int(place % 3 != number)) for place, head in enumerate(HEADS)]
            columns = ("attention", "layer", "head", "open")
            write_tsv(data / f"heads-{number}.tsv", [dict(zip(columns, row, strict=True)) for row in rows], columns)

    def started(self, seed: int) -> list[str]:
        """The words that name a trained model to start from, which is trained when first asked for."""
        folder = self.data / f"start-{seed}"
        if not folder.exists():
            command("baseline", self.data, self.training, "--seed", str(seed), name=folder.name)
        return started(folder)

    def write_data(self, **changes: Any) -> None:
        """Write the bpe stage's files, or changed ones."""
        write_data(self.data, self.digit_pairs, **changes)

    def words(self, stage: str, name: str, *, start: int = 1, heads: int = 1, **sections: Any) -> list[str]:
        """The words of a command with outputs in the folder `name`."""
        chosen = ["--heads", str(self.data / f"heads-{heads}.tsv")]
        if stage == "gates":
            more = [*self.started(start), "--scope", "all", "--target", "lam-1"]
        elif stage == "selected":
            more = [*self.started(start), *chosen]
        else:
            more = ["--unpruned", self.started(start)[-1], *chosen] if stage == "scratch" else []
        return words_of(stage, self.data, self.training, *more, name=name, **{**SECTIONS, **sections})


@pytest.fixture
def place(
    tmp_path: Path, training_settings: Callable[..., TrainingSettings], digit_pairs: Callable[..., Pairs]
) -> Place:
    return Place(tmp_path, training_settings(), digit_pairs)


def stopped(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command that is stopped by a signal after its second update."""
    step = Training.step

    def interrupted(self: Training, *update: Any) -> Row:
        row = step(self, *update)
        if self.update == 2:
            signal.raise_signal(signal.SIGTERM)
        return row

    with monkeypatch.context() as patch:
        patch.setattr(Training, "step", interrupted)
        assert main(words) == 1


def resumed(words: list[str], capfd: pytest.CaptureFixture[str]) -> bool:
    """Run a command to its end and return whether it resumed where the stopped one was."""
    capfd.readouterr()
    assert main(words) == 0
    return "resumed at update 2" in capfd.readouterr().err


def weights(place: Place, name: str) -> dict[str, torch.Tensor]:
    return load_tensors(place.data / name / "model.safetensors")[0]


@pytest.mark.parametrize("stage", slow_but(["gates"], SECTIONS))
def test_the_same_command_goes_on_from_its_state_to_the_same_bits(
    place: Place, stage: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped(place.words(stage, "run"), monkeypatch)
    assert resumed(place.words(stage, "run"), capfd)
    assert not resumed(place.words(stage, "whole"), capfd)
    found = weights(place, "run")
    for name, value in weights(place, "whole").items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


OTHER_WORDS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "seed": ("baseline", ["--seed", "2"], {}),
    "seed of gates": ("gates", ["--seed", "2"], {}),
    "dropout": ("baseline", [], {"model": {"dropout": 0.2}}),
    "length": ("baseline", [], {"baseline": {"updates": 5}}),
    "gates' rate": ("gates", [], {"gates": {"updates": 4, "gate_learning_rate": 0.3}}),
    "start of gates": ("gates", [], {"start": 2}),
    "target": ("gates", ["--target", "lam-2"], {}),
    "way of gates": ("gates", ["--target", "keep-3"], {}),
    "scope": ("gates", ["--scope", "enc_self"], {}),
    "start of chosen heads": ("selected", [], {"start": 2}),
    "chosen heads": ("selected", [], {"heads": 2}),
    "heads of a model from scratch": ("scratch", [], {"heads": 2}),
}


@pytest.mark.parametrize("what", slow_but(["dropout", "target", "chosen heads"], OTHER_WORDS))
def test_a_command_that_differs_starts_from_its_own_beginning(
    place: Place, what: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stage, words, changes = OTHER_WORDS[what]
    stopped(place.words(stage, "run"), monkeypatch)
    assert not resumed([*place.words(stage, "run", **changes), *words], capfd)


@pytest.mark.parametrize(
    "what", slow_but(["training pairs", "torch"], ["training pairs", "dev pairs", "dev references", "torch"])
)
def test_a_training_on_other_data_or_by_another_torch_starts_from_its_beginning(
    place: Place, what: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped(place.words("baseline", "run"), monkeypatch)
    if what == "torch":
        monkeypatch.setattr(job, "provenance", lambda: {**provenance(), "torch": "1.0.0"})
    elif what == "dev references":
        write_lines(place.data / "dev.txt", ["a dog"] * 7)
    else:
        place.write_data(seeds=(41, 7) if what == "training pairs" else (40, 8))
    assert not resumed(place.words("baseline", "run"), capfd)


def test_a_state_is_gone_on_with_on_the_same_kind_of_device_whichever_that_is(place: Place) -> None:
    """Noise continues where it stopped, and a GPU draws its own."""
    text = read_training_text(place.data, place.data / "dev.txt")
    given = job.Job({}, text, place.data, place.data / "train.jsonl", 1, 1e9, torch.device("cpu"), Processes(), {})
    kinds = ("cpu", "cuda", "cuda:1")
    told = [replace(given, device=torch.device(kind), model=place.data / kind) for kind in kinds]
    on_cpu, on_gpu, on_other_gpu = (job._taken_up(each, "baseline").identity for each in told)
    assert on_cpu != on_gpu == on_other_gpu
