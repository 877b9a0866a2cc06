"""The commands of an experiment whose baseline is an imported model, each with its own settings, as rules run them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import read_json, read_yaml, write_lines, write_text
from heads.config.experiment import Experiment
from heads.config.settings import classifying, merged, section, stage_settings

SPLITS = {"train": 6, "dev": 1}
"""How often a split has the sentences."""


def run(place: Path, stage: str, *words: str, experiment: Experiment | None = None, **baseline: Any) -> None:
    """Run a command with the settings of an experiment: one of tiny trainings if none is given.

    Its model is that in the folder `theirs`; `baseline` adds settings to that section.
    """
    settings = place / f"{stage}.yaml"
    write_text(settings, yaml.safe_dump(stage_settings(experiment or tiny(place, baseline), stage)))
    assert main([stage, "--settings", str(settings), *words]) == 0


def tiny(place: Path, baseline: Mapping[str, Any]) -> Experiment:
    """The settings of an experiment on the model in the folder `theirs`, whose trainings take a few updates."""
    training: dict[str, Any] = {"batch_tokens": 400, "micro_batch_tokens": 60, "precision": "fp32", "warmup_updates": 4}
    training |= {"learning_rate": 0.025, "evaluate_every": 50, "dev_bleu_sentences": 0}
    gates = {"updates": 6, "average_last": 2, "average_every": 2, "gate_learning_rate": 1.0, "record_every": 3}
    changes = {"training": training, "gates": gates, "baseline": {"pretrained": str(place / "theirs"), **baseline}}
    experiment = merged(read_yaml(ROOT / "config.yaml")["defaults"], changes)
    classifies = read_json(place / "theirs/config.json")["model_type"] == "bert"
    return classifying("mine", experiment, changes) if classifies else section(Experiment, experiment)


def encode(place: Path, texts: Mapping[str, Sequence[str]], **settings: Any) -> None:
    """Import the model's subwords, and encode the sentences of both sides with them."""
    run(place, "imported_bpe", "--out-folder", str(place / "bpe"), **settings)
    for split, times in SPLITS.items():
        for side, sentences in texts.items():
            text, bpe = place / f"{split}.{side}.txt", place / f"bpe/{side}.model"
            write_lines(text, [*sentences] * times)
            tokens = place / f"bpe/{split}.{side}.safetensors"
            assert main(["encode", "--text", str(text), "--bpe", str(bpe), "--tokens", str(tokens)]) == 0


def train(place: Path, stage: str, name: str, *words: str, **settings: Any) -> Path:
    """Run a training command with the flags that every training is given; return the model's folder."""
    made = place / name
    own = ["--model", str(made), "--history", str(made / "train.jsonl"), "--seed", "1", "--data", str(place / "bpe")]
    own += ["--checkpoints", str(made / "checkpoints")] if stage == "imported" else []
    run(place, stage, *own, "--references", str(place / "dev.target.txt"), "--device", "cpu", *words, **settings)
    return made


def train_gates(place: Path, scope: str, target: str) -> Path:
    """The folder of a training with gates that starts from the imported model; trained only once."""
    made = place / f"gates-{scope}"
    gates = ["--scope", scope, "--target", target, "--start-model", str(place / "baseline")]
    gates += ["--heads", str(made / "heads.tsv"), "--gates-log", str(made / "gates.jsonl")]
    return made if made.exists() else train(place, "gates", made.name, *gates)


def cut_out(place: Path, target: str) -> Path:
    """The imported model pruned by gates on all heads; pruned only once."""
    made, small = train_gates(place, "all", target), place / "pruned"
    words = ["--start-model", str(made), "--gates", str(made / "heads.tsv")]
    if not small.exists():
        assert main(["pruned", *words, "--model", str(small), "--heads", str(small / "heads.tsv")]) == 0
    return small
