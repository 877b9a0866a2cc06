"""What stages of a tiny experiment read, for each task that models are trained for: to translate, classify or embed.

Models have random weights, text is a few words, and tables of measures are made up.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import read_yaml, write_lines, write_tsv
from heads.base.names import ACCURACY, ATTENTIONS, BLEU, CLASSIFICATION, EMBEDDING, HEAD, KINDS_OF, SPLITS, TRANSLATION
from heads.base.provenance import provenance
from heads.config.experiment import Experiment
from heads.config.settings import classifying, merged, section
from heads.config.trainings import BpeSettings
from heads.model.checkpoint import save_tensors
from heads.model.folder import model_of, save_folder
from heads.model.head_removal import prune, write_heads
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.pruning.selection import CHOSEN_COLUMNS
from heads.text.labels import write_labels
from heads.text.special_ids import EOS
from heads.text.vocabulary import train_bpe

LABELS = {CLASSIFICATION: ("no", "yes"), EMBEDDING: ("embedding",)}
"""The labels of examples; those of a model that embeds are what an import writes."""
SUBWORDS, HEADS, LAYERS = 40, 3, 2
SIZES = {"train": 12, "dev": 5, "test": 7}
METRIC = {TRANSLATION: BLEU, CLASSIFICATION: ACCURACY, EMBEDDING: "cosine"}
WORDS = ("the cat sees a dog", "a dog sees", "old dogs see the old cat", "cats see dogs and a cat")
SOON = 3.0
"""What is added to the logit of a sentence's end, so that translations are short."""
OPEN = (True, False, True)
"""The heads of every layer that are left by pruning."""
CHANGES: dict[str, Any] = {
    "training": {"batch_tokens": 200, "micro_batch_tokens": 200, "evaluate_every": 1, "dev_bleu_sentences": 1},
    "model": {"layers": LAYERS, "heads": HEADS, "width": 6, "feedforward": 5},
    "baseline": {"updates": 1, "average_last": 1},
    "gates": {"updates": 2, "average_last": 1, "record_every": 1},
    "scratch": {"updates": 1, "average_last": 1},
    "selected": {"updates": 1, "average_last": 1},
    "translate": {"beam": 1, "sentences": 3},
    "lrp": {"rules": ["z-plus"], "sentences": 2},
    "roles": {"bootstrap": 100},
    "alignment_heads": {"bootstrap": 100},
    "maps": {"sentences": 1, "min_words": 1},
    "speed": {"batch_sizes": [1], "sentences": 2, "repeats": 2, "beam": 1},
    "causal": {"updates": 1, "sentences": 2},
    "surgeon": {"subwords": 20, "sentences": 2},
    "ablation": {"sentences": 2, "dev_sentences": 2, "resamples": 100, "beam": 1},
    "masking_curve": {"sentences": 2, "step": 0.5, "random_orders": 1, "resamples": 100, "beam": 1},
    "checkpoints": {"sentences": 2, "step": 0.5, "resamples": 100, "beam": 1},
    "selection": {"resamples": 100},
}


@dataclass(frozen=True)
class World:
    """The files of one experiment, below a folder."""

    folder: Path
    task: str

    @property
    def runs(self) -> Path:
        """The folder of the experiment."""
        return self.folder / "results/tiny"

    @property
    def model(self) -> Path:
        """The unpruned model."""
        return self.runs / "baseline/seed-1"

    @property
    def gates(self) -> Path:
        """The same model with a table of gates."""
        return self.runs / "gates/all/lam-1/seed-1"

    @property
    def pruned(self) -> Path:
        """The same without the heads that are closed."""
        return self.runs / "pruned/all/lam-1/seed-1"

    def text(self, split: str, side: str) -> Path:
        """Plain text."""
        return self.folder / f"{split}.{side}.txt"

    def tokens(self, split: str, side: str) -> Path:
        """The same in subwords."""
        return self.runs / f"bpe/{split}.{side}.safetensors"

    def bpe(self, side: str) -> Path:
        """The vocabulary of a side, or the labels."""
        return self.runs / f"bpe/{side}.model"

    @cached_property
    def shape(self) -> ModelShape:
        """The shape of the unpruned model."""
        kinds = KINDS_OF.get(self.task, KINDS_OF[CLASSIFICATION])
        return ModelShape(
            width=6,
            head_width=2,
            feedforward=5,
            dropout=0.0,
            pre_norm=True,
            source_subwords=SUBWORDS,
            target_subwords=len(LABELS.get(self.task, range(SUBWORDS))),
            original_heads=HEADS,
            live_heads=full_heads(layers=LAYERS, heads=HEADS, kinds=kinds),
            labels=len(LABELS[CLASSIFICATION]) * (self.task == CLASSIFICATION),
            token_types=2 * (self.task != TRANSLATION),
        )

    @cached_property
    def experiment(self) -> Experiment:
        """The resolved settings."""
        defaults = read_yaml(ROOT / "config.yaml")["defaults"]
        whole = merged(defaults, CHANGES)
        return section(Experiment, whole) if self.task == TRANSLATION else classifying("tiny", whole, {})


def write_world(folder: Path, task: str) -> World:
    """Write the experiment."""
    world = World(folder, task)
    for split, size in SIZES.items():
        lines = [WORDS[number % len(WORDS)] for number in range(size)]
        answers = [labels[number % len(labels)] for number in range(size)] if (labels := LABELS.get(task)) else lines
        write_lines(
            world.text(split, "source"), lines if task == TRANSLATION else [f"{one}\t{WORDS[0]}" for one in lines]
        )
        write_lines(world.text(split, "target"), answers)
    write_lines(folder / "links.txt", ["0-0 1-1"] * SIZES["dev"])
    subwords = BpeSettings(source_subwords=SUBWORDS, target_subwords=SUBWORDS)
    for side in ("source", "target"):
        if side == "target" and task in LABELS:
            write_labels(LABELS[task], world.bpe(side))
        else:
            train_bpe(world.text("train", side), world.bpe(side), subwords, SUBWORDS, framed=task != TRANSLATION)
        for split in SPLITS:
            words = ["--text", world.text(split, side), "--bpe", world.bpe(side), "--tokens", world.tokens(split, side)]
            assert main(["encode", *map(str, words)]) == 0
    _write_models(world)
    _write_measures(world)
    return world


def _write_models(world: World) -> None:
    torch.manual_seed(4)
    model = model_of(world.shape).eval()
    if isinstance(model, Transformer):
        model.projection.bias.data[EOS] += SOON
    facts = {"updates": 2, "total_updates": 2, "dev_loss": 1.0}
    save_folder(model, world.model, facts, provenance())
    save_tensors(world.model / "checkpoints/checkpoint-00000001.safetensors", model.state_dict(), {})
    smaller = prune(model, {kind: [list(OPEN)] * LAYERS for kind in world.shape.kinds})
    save_folder(model, world.gates, facts, provenance())
    save_folder(smaller, world.pruned, facts, provenance())
    for run in (world.gates, world.pruned):
        write_heads(run / "heads.tsv", smaller.shape)
    if world.task != EMBEDDING:
        for run in (world.model, world.pruned):
            write_lines(
                run / ("translations.txt" if world.task == TRANSLATION else "predictions.txt"), ["yes"] * SIZES["test"]
            )


def _write_measures(world: World) -> None:
    metric, heads = METRIC[world.task], world.shape.all_heads()
    places = [dict(zip(HEAD, head, strict=True)) for head in heads]
    numbered = list(enumerate(places))
    rows = [
        {**place, "form": form, "importance": number / 7, "importance_normalised": number / 9}
        for form in ("example", "token", "batch", "signed")
        for number, place in numbered
    ]
    write_tsv(world.model / "importance.tsv", rows, [*HEAD, "form", "importance", "importance_normalised"])
    columns = [*HEAD, metric, f"{metric}_change", "p_value"]
    masked = [{**place, metric: 9.0, f"{metric}_change": -number / 5, "p_value": 0.5} for number, place in numbered]
    for name in ("ablation.tsv", "ablation.dev.tsv"):
        write_tsv(world.model / name, masked, columns)
    write_tsv(world.model / "confidence.tsv", [{**p, "confidence": n / 30} for n, p in numbered], [*HEAD, "confidence"])
    chosen = [{"method": "confidence", "budget": len(places) - 1, **p, "open": int(n > 0)} for n, p in numbered]
    write_tsv(world.model / "selection.tsv", chosen, CHOSEN_COLUMNS)


def kinds_in(rows: list[dict[str, str]]) -> set[str]:
    """The kinds of attention that a table has rows of."""
    return {row["attention"] for row in rows} & {*ATTENTIONS}
