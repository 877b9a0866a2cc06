"""Training commands as rules call them, on a tiny experiment on disk whose task is to reverse digits."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from safetensors.numpy import save_file

from checkouts import configuration
from heads.__main__ import main
from heads.base.files import write_lines, write_text
from heads.config.experiment import Experiment
from heads.config.settings import merged, section, stage_settings
from heads.config.trainings import BpeSettings, TrainingSettings
from heads.text.batches import Pairs
from heads.text.vocabulary import train_bpe


def write_data(folder: Path, digit_pairs: Callable[..., Pairs], *, seeds: tuple[int, int] = (40, 7)) -> Path:
    """Write the bpe stage's outputs: token files of reversed digits, vocabularies of 30 subwords, and dev references.

    seeds: of the 40 training pairs and of the 7 dev pairs. Returns the folder.
    """
    for split, count, seed in (("train", 40, seeds[0]), ("dev", 7, seeds[1])):
        pairs = digit_pairs(count=count, seed=seed)
        for side, tokens in (("source", pairs.source), ("target", pairs.target)):
            save_file({"ids": tokens.ids, "offsets": tokens.offsets}, folder / f"{split}.{side}.safetensors")
    (folder / "text").write_text("the cat sees a small dog\n" * 9, encoding="utf-8")
    for side in ("source", "target"):
        train_bpe(folder / "text", folder / f"{side}.model", BpeSettings(source_subwords=30, target_subwords=30), 30)
    write_lines(folder / "dev.txt", ["the cat"] * 7)
    return folder


def command(
    stage: str, data: Path, training: TrainingSettings, *more: str, name: str = "", **sections: Mapping[str, Any]
) -> Path:
    """Run a training command as a rule would; return the folder of its outputs, named by the stage or by `name`.

    sections: further changes to the defaults of config.yaml.
    """
    assert main(words_of(stage, data, training, *more, name=name, **sections)) == 0
    return data / (name or stage)


def started(folder: Path) -> list[str]:
    """The words that make a command start from the model of an earlier one."""
    return ["--start-model", str(folder)]


def words_of(
    stage: str, data: Path, training: TrainingSettings, *more: str, name: str = "", **sections: Mapping[str, Any]
) -> list[str]:
    """Write a training command's settings and return its words."""
    changes = {
        "model": {"layers": 2, "heads": 3, "width": 6, "feedforward": 7, "dropout": 0.0, "attention_dropout": 0.0},
        "training": training.model_dump(),
        "baseline": {"updates": 2, "average_last": 1},
        "gates": {"updates": 3, "record_every": 2, "average_last": 3, "average_every": 1},
        "selected": {"updates": 3, "patience": 0, "average_last": 3, "average_every": 1},
        "scratch": {"updates": 2, "average_last": 1},
    }
    folder, experiment = data / (name or stage), merged(merged(configuration()["defaults"], changes), sections)
    write_text(folder / "settings.yaml", yaml.safe_dump(stage_settings(section(Experiment, experiment), stage)))
    shared = ["--settings", "settings.yaml", "--model", ".", "--history", "log.jsonl"]
    own = {
        "baseline": ["--checkpoints", "checkpoints"],
        "gates": ["--heads", "heads.tsv", "--gates-log", "gates.jsonl"],
    }
    paths = [word if word.startswith("--") else str(folder / word) for word in [*shared, *own.get(stage, [])]]
    inputs = ["--data", str(data), "--references", str(data / "dev.txt"), "--seed", "1", "--device", "cpu"]
    return [stage, *paths, *inputs, *more]
