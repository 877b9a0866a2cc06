"""A tiny classification experiment, as the stages before training leave it: one word determines an example's label."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from heads.__main__ import main
from heads.base.files import write_lines, write_text
from heads.base.names import CLASSIFICATION, TASK
from heads.config.experiment import Experiment
from heads.config.settings import classifying, merged

LABELS = ("contradiction", "entailment", "neutral")
TELLS = {"contradiction": "no", "entailment": "a", "neutral": "this"}
NOUNS = ("cat", "dog", "small old cat", "very big dog", "bird")
SUBWORDS = {
    "bpe": {"source_subwords": 40, "target_subwords": 40, "character_coverage": 1.0, "train_sentences": 1000, "seed": 1}
}


def write_texts(folder: Path, *, sizes: Mapping[str, int]) -> None:
    """Texts of splits: premise, tab and hypothesis, whose first word determines the label, and the labels."""
    draw = random.Random(3)
    for split, size in sizes.items():
        labels = [LABELS[number % 3] for number in range(size)]
        nouns = [(draw.choice(NOUNS), draw.choice(NOUNS)) for _ in labels]
        lines = [f"the {one} sees\t{TELLS[label]} {other}" for label, (one, other) in zip(labels, nouns, strict=True)]
        write_lines(folder / f"{split}.source.txt", lines)
        write_lines(folder / f"{split}.target.txt", labels)


def write_examples(folder: Path, *, sizes: Mapping[str, int] | None = None) -> Path:
    """Write the texts and run the bpe stage's own commands on them; return its folder."""
    sizes = sizes or {"train": 60, "dev": 13, "test": 10}
    write_texts(folder, sizes=sizes)
    bpe = folder / "bpe"
    write_text(bpe / "settings.yaml", yaml.safe_dump({**SUBWORDS, TASK: CLASSIFICATION}))
    for side in ("source", "target"):
        text, model = folder / f"train.{side}.txt", bpe / f"{side}.model"
        words = ["--settings", bpe / "settings.yaml", "--side", side, "--text", text, "--model", model]
        assert main(["bpe", *map(str, words)]) == 0
        for split in sizes:
            tokens = bpe / f"{split}.{side}.safetensors"
            words = ["--text", folder / f"{split}.{side}.txt", "--bpe", model, "--tokens", tokens]
            assert main(["encode", *map(str, words)]) == 0
    return bpe


def experiment(defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> Experiment:
    """A resolved classification experiment."""
    return classifying("tiny", merged(defaults, changes), changes)
