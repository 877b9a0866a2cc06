"""Tiny experiments on disk, one for each kind of model, with what their commands need that no command writes."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from heads.base.files import read_lines, write_lines, write_tsv
from heads.interop.bert.importing import EMBEDDING
from heads.interop.family import ImportOptions
from heads.interop.firefox.family import FAMILY as FIREFOX
from heads.interop.original import OriginalFiles
from heads.model.checkpoint import save_tensors
from heads.model.encoder import Encoder
from heads.model.encoder_only import Classifier, ExampleEncoder, SentenceEncoder
from heads.model.head_removal import head_rows, prune
from heads.model.shape import LEARNED, ModelShape, full_heads
from heads.pruning.selection import CHOSEN_COLUMNS
from heads.syntax.conllu import place, write_conllu
from heads.text.encoding import encode_file, vocabulary_or_labels
from heads.text.labels import write_labels
from known_experiment import COUNTS, LEFT, Known, known_model, save, write_known
from many_lines import LINES
from marian_files import write_student
from model_folders import SOURCE
from tiny_examples import write_examples

WORDS, LABELS, VECTORS, STUDENT = "words", "labels", "vectors", "student"
"""What a model answers with; a student is a translator from a Marian file, with a shortlist."""
SIDES = ("source", "target")
SIZES: dict[str, Any] = {
    "width": 12, "head_width": 4, "feedforward": 7, "dropout": 0.0, "pre_norm": False, "source_subwords": 40,
    "original_heads": 3, "live_heads": full_heads(layers=2, heads=3, kinds=("enc_self",)), "positions": LEARNED,
    "max_positions": 40, "token_types": 2, "embedding_norm": True, "activation": "gelu", "attention_biases": True,
}  # fmt: skip
"""Of an encoder alone, like a BERT."""


@dataclass(frozen=True)
class Place(Known):
    """An experiment, and by the names of cases what commands have written on the CPU."""

    kind: str = WORDS
    made: dict[str, Path] = field(default_factory=dict)

    def text(self, split: str, side: str) -> Path:
        """Plain text."""
        return super().text(split, side) if self.kind == WORDS else self.folder / f"{split}.{side}.txt"


def write_place(folder: Path, kind: str) -> Place:
    """Write the experiment of a kind of model."""
    {WORDS: _write_words, LABELS: _write_labels, VECTORS: _write_vectors, STUDENT: _write_student}[kind](folder)
    made = Place(folder, kind)
    known = [line for split in COUNTS for line in read_lines(made.text(split, "source"))]
    write_lines(folder / "text.txt", known if kind == WORDS else LINES)
    return made


def _write_words(folder: Path) -> None:
    """Write the experiment with known answers."""
    write_known(folder)
    _write_beside(folder, known_model(), LEFT)
    write_lines(folder / "links", ["0-0 1-1 2-2"] * 10)
    write_lines(folder / "three", ["i j", "k", "l"])


def _write_labels(folder: Path) -> None:
    """Write examples of which one word says the label, and a random model."""
    write_examples(folder, sizes={"train": 24, "dev": 6, "test": 8})
    _write_random(folder, Classifier(ModelShape(**SIZES, target_subwords=3, labels=3)))


def _write_vectors(folder: Path) -> None:
    """Write the same examples, with a random model that embeds them."""
    write_examples(folder, sizes={"train": 24, "dev": 6, "test": 8})
    labels = folder / "bpe/target.model"
    write_labels(EMBEDDING, labels)
    for split in ("train", "dev", "test"):
        text = folder / f"{split}.target.txt"
        write_lines(text, [*EMBEDDING] * len(text.read_text(encoding="utf-8").splitlines()))
        encode_file(text, vocabulary_or_labels(labels), folder / f"bpe/{split}.target.safetensors")
    _write_random(folder, SentenceEncoder(ModelShape(**SIZES, target_subwords=1)))


def _write_random(folder: Path, model: ExampleEncoder) -> None:
    torch.manual_seed(3)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.4 * torch.randn(value.shape))
    save(model.eval(), folder / "baseline/seed-1")  # type: ignore[arg-type]
    _write_beside(folder, model, {"enc_self": LEFT["enc_self"]})


def _write_beside(folder: Path, model: Encoder, left: Mapping[str, list[list[bool]]]) -> None:
    """Write a checkpoint, the model with only some of its heads, tables of these, and trees."""
    save_tensors(folder / "checkpoints/checkpoint-00000002.safetensors", model.state_dict(), {})
    smaller = prune(copy.deepcopy(model), left)
    save(smaller, folder / "pruned/all/lam-9/seed-1")  # type: ignore[arg-type]
    rows = head_rows(smaller.shape)
    write_tsv(folder / "heads.tsv", rows, ("attention", "layer", "head", "open"))
    for name, method in (("selection", "lrp"), ("by_surgeon", "surgeon")):
        write_tsv(folder / f"{name}.tsv", [{"method": method, "budget": 7, **row} for row in rows], CHOSEN_COLUMNS)
    trees = [[(word, word, "X", i, "dep" if i else "root", True) for i, word in enumerate("abcde"[:size])] for size in
             (5, 4, 3)]  # fmt: skip
    write_conllu(folder / "trees.conllu", map(place, trees))


def _write_student(folder: Path) -> None:
    """Write a Marian file and its own shortlist, and a text in its subwords."""
    theirs = FIREFOX.read(OriginalFiles(write_student(folder / "theirs", SOURCE)), ImportOptions())
    theirs.vocabularies().write(folder / "bpe")
    save(theirs.model(), folder / "baseline/seed-1")  # type: ignore[arg-type]
    for split in ("train", "dev", "test"):
        for side in SIDES:
            write_lines(folder / f"{split}.{side}.txt", SOURCE)
            vocabulary = vocabulary_or_labels(folder / f"bpe/{side}.model")
            encode_file(folder / f"{split}.{side}.txt", vocabulary, folder / f"bpe/{split}.{side}.safetensors")
