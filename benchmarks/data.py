"""The cost of every stage from text to the first update: a row for each size and stage, each in its own process.

Run: PYTHONPATH=workflow python benchmarks/data.py 50000 500000. Sizes are numbers of pairs of the embedded grammar.
Seconds per million pairs are CPU seconds summed over all processes of a stage, so a busy machine changes them little.
The peak is that of the largest process, including the pages of mapped files that it touched. The stage `start` runs
from the command to the end of the first update; it is not divided by the size, since it should not depend on it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

SUBWORDS = {"source": 1500, "target": 2500}
CLEANING = {"max_words": 100, "max_length_ratio": 4.0}
STAGES = ("corpus", "clean", "bpe", "encode", "start")
BATCH_TOKENS = 4096
COLUMNS = f"{'pairs':>9} {'stage':8} {'wall s':>8} {'CPU s':>8} {'CPU s/M pairs':>14} {'peak MB':>8}"


@dataclass(frozen=True)
class Cost:
    """The cost of a process: wall-clock seconds, CPU seconds and peak memory."""

    wall: float
    cpu: float
    peak_mb: float


def measured(*words: str) -> Cost:
    """Run Python with these arguments and return the cost; raise SystemExit if it fails."""
    started = time.monotonic()
    process = os.posix_spawn(sys.executable, [sys.executable, *words], os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(words)}")
    return Cost(time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def commands(stage: str, folder: Path, pairs: int, threads: int) -> Iterator[list[str]]:
    """The command-line arguments of each process of a stage."""
    texts = {side: str(folder / f"train.{side}.txt") for side in SUBWORDS}
    settings = folder / f"{stage}.yaml"
    if stage in ("corpus", "clean"):
        languages = {"source": "en", "target": "ru", "cleaning": CLEANING}
        parts = {split: [{side: f"{split}.{side}.txt" for side in SUBWORDS}] for split in ("train", "dev", "test")}
        sizes = {"train": pairs, "dev": 500, "test": 500}
        grammar = {"kind": "grammar", "seed": 1, "pairs": sizes}
        entry = grammar if stage == "corpus" else {"kind": "files", "folder": str(folder), **parts}
        settings.write_text(yaml.safe_dump(languages | entry), encoding="utf-8")
        out = folder if stage == "corpus" else folder / "again"
        words = ["--settings", str(settings), "--downloads", str(folder), "--out-folder", str(out)]
        yield ["-m", "heads", "corpus", *words, "--threads", str(threads)]
    elif stage == "start":
        yield [__file__, "--first-update", str(folder)]
    else:
        rest = {"character_coverage": 1.0, "train_sentences": 5_000_000, "seed": 1}
        bpe = {f"{side}_subwords": subwords for side, subwords in SUBWORDS.items()}
        settings.write_text(yaml.safe_dump({"bpe": bpe | rest}), encoding="utf-8")
        for side, text in texts.items():
            model, tokens = str(folder / f"{side}.model"), str(folder / f"train.{side}.safetensors")
            if stage == "bpe":
                yield [
                    "-m",
                    "heads",
                    "bpe",
                    "--settings",
                    str(settings),
                    "--side",
                    side,
                    "--text",
                    text,
                    "--model",
                    model,
                ]
            else:
                words = ["--text", text, "--bpe", model, "--tokens", tokens, "--threads", str(threads)]
                yield ["-m", "heads", "encode", *words]


def first_update(folder: Path) -> None:
    """Do what every training does up to its first update, with a model so small that it costs nothing."""
    import torch

    from heads.base.seals import sha256_of
    from heads.config.trainings import LengthSettings, TrainingSettings
    from heads.model.shape import ModelShape, full_heads
    from heads.model.transformer import Transformer
    from heads.text.batches import read_pairs
    from heads.training.loop import Training
    from heads.training.schedule import TrainingPlan

    torch.set_num_threads(1)
    for side in SUBWORDS:
        sha256_of(folder / f"train.{side}.safetensors")
    heads = full_heads(layers=1, heads=1)
    shape = ModelShape(8, 8, 8, 0.0, True, SUBWORDS["source"], SUBWORDS["target"], 1, heads)  # noqa: FBT003
    settings = TrainingSettings(
        batch_tokens=BATCH_TOKENS,
        micro_batch_tokens=BATCH_TOKENS,
        max_subwords=200,
        label_smoothing=0.1,
        adam_beta1=0.9,
        adam_beta2=0.98,
        adam_epsilon=1e-9,
        learning_rate=0.0316228,
        warmup_updates=10,
        decay_share=0.0,
        precision="fp32",
        evaluate_every=10,
        dev_bleu_sentences=0,
    )
    length = LengthSettings(updates=1, patience=0, average_last=1, average_every=1)
    plan = TrainingPlan(settings, length, seed=1, updates_before=0, device=torch.device("cpu"))
    training = Training(Transformer(shape), read_pairs(folder, "train", settings.max_subwords), plan)
    training.step(next(training.updates(0)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=int, nargs="*", help="sizes of the training text")
    parser.add_argument("--stages", choices=STAGES, nargs="+", default=STAGES)
    parser.add_argument("--threads", type=int, default=1, help="processes for corpus, clean and encode")
    parser.add_argument("--folder", type=Path, help="where texts and tokens are kept; default: a temporary folder")
    parser.add_argument("--first-update", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_update:
        first_update(arguments.first_update)
        return
    print(COLUMNS, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for pairs in arguments.pairs:
            folder = (arguments.folder or Path(temporary)) / str(pairs)
            folder.mkdir(parents=True, exist_ok=True)
            for stage in arguments.stages:
                costs = [measured(*words) for words in commands(stage, folder, pairs, arguments.threads)]
                wall, cpu = sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs)
                rate = "" if stage == "start" else f"{cpu / pairs * 1e6:.1f}"
                peak = max(cost.peak_mb for cost in costs)
                print(f"{pairs:>9} {stage:8} {wall:8.1f} {cpu:8.1f} {rate:>14} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()
