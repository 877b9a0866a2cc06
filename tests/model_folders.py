"""A tiny experiment on disk that can translate: vocabularies, an unpruned model, one with gates, and the pruned one."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heads.base.files import write_json, write_text, write_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import provenance
from heads.config.trainings import BpeSettings
from heads.interop.bundle import open_translator, saved_bundle
from heads.model.folder import save_folder
from heads.model.head_removal import prune
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.batches import pad
from heads.text.encoding import encode_file
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens, Vocabulary, train_bpe
from heads.translation.beam_search import beam_search
from heads.translation.stream import translated
from shape_facts import SIZES

SOURCE = ("the cat sees a small dog .", "a white house stands here , near the old river !", "dogs bark loudly .")
TARGET = ("кот видит маленькую собаку .", "белый дом стоит тут , у старой реки !", "собаки громко лают .")
OPEN = {
    "enc_self": [[True, False, True], [False, False, False]],
    "dec_self": [[True, True, True], [False, True, False]],
    "dec_enc": [[False, True, True], [True, True, True]],
}
"""Heads left: 2 and 0 of 3, 3 and 1, 2 and 3."""

SCORE = {"bleu": 12.345, "signature": "nrefs:1|tok:13a", "split": "test", "sentences": 7, "beam": 2}
SUBWORDS = {"source": 70, "target": 60}


@dataclass(frozen=True)
class Experiment:
    """Folders of the written experiment."""

    bpe: Path
    baseline: Path
    gates: Path
    pruned: Path

    def vocabularies(self) -> list[Vocabulary]:
        """Of source and target."""
        return [Vocabulary(self.bpe / f"{side}.model") for side in ("source", "target")]

    def tokens(self) -> Tokens:
        """The encoded source sentences."""
        return Tokens(self.bpe / "test.source.safetensors")


def write_experiment(folder: Path, source: Sequence[str] = SOURCE, target: Sequence[str] = TARGET) -> Experiment:
    """Write an experiment named like `folder`, with these sentences on its two sides."""
    runs = ("baseline/seed-1", "gates/all/lam-0.2/seed-1", "pruned/all/lam-0.2/seed-1")
    made = Experiment(folder / "bpe", *(folder / run for run in runs))
    settings = BpeSettings(source_subwords=70, target_subwords=60, character_coverage=1.0, train_sentences=1000, seed=3)
    for side, sentences in (("source", source), ("target", target)):
        text = folder / f"{side}.txt"
        write_text(text, "\n".join([*sentences] * 40) + "\n")
        train_bpe(text, made.bpe / f"{side}.model", settings, SUBWORDS[side])
    write_text(folder / "few.txt", "\n".join([*source[:3]] * 3) + "\n")
    vocabulary = Vocabulary(made.bpe / "source.model")
    encode_file(folder / "few.txt", vocabulary, made.bpe / "test.source.safetensors")
    model = opinionated(seed=1)
    rows = [
        {"attention": kind, "layer": layer, "head": head, "open": int(is_open)}
        for kind in ATTENTIONS
        for layer, heads in enumerate(OPEN[kind])
        for head, is_open in enumerate(heads)
    ]
    for run, weights in ((made.baseline, model), (made.gates, model), (made.pruned, prune(model, OPEN))):
        save_folder(weights, run, {"updates": 5}, provenance())
        if run != made.baseline:
            write_tsv(run / "heads.tsv", rows, ("attention", "layer", "head", "open"))
        if run != made.gates:
            write_json(run / "bleu.json", {**SCORE, "length_penalty": 0.7})
    return made


def opinionated(*, seed: int, eos: float = 0.0, **changes: Any) -> Transformer:
    """A model with large random weights that ends its sentences more or less readily.

    changes: to its shape.
    """
    torch.manual_seed(seed)
    subwords = {f"{side}_subwords": number for side, number in SUBWORDS.items()}
    shape = ModelShape(**{**SIZES, **subwords, "live_heads": full_heads(layers=2, heads=3), **changes})
    model = Transformer(shape).eval()
    for value in model.parameters():
        value.data += 0.5 * torch.randn(value.shape)
    model.projection.bias.data[EOS] += eos
    return model


def post_norm(**changes: Any) -> Transformer:
    """An opinionated model with its norms in the other place, each of them different from the identity."""
    model = Transformer(replace(opinionated(seed=2).shape, pre_norm=False, **changes)).eval()
    torch.manual_seed(3)
    for value in model.parameters():
        value.data += 0.5 * torch.randn(value.shape)
    return model


def found_by(model: Transformer, sentences: list[list[int]], *, beam: int = 4, **search: Any) -> list[list[int]]:
    """A model's translations of sentences of subword ids, one by one, by a length penalty of 0.6 unless told."""
    ids = [np.array([*sentence, EOS]) for sentence in sentences]
    return [beam_search(model, *pad([each]), beam=beam, **{"length_penalty": 0.6, **search})[0] for each in ids]


def output_of(words: Sequence[object], folder: Path, lines: Sequence[str] = ()) -> list[str]:
    """What Python prints in a folder for these words, given lines on standard input."""
    given, command = "".join(f"{line}\n" for line in lines), [sys.executable, *map(str, words)]
    done = subprocess.run(
        command, input=given, cwd=folder, stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=300
    )
    return done.stdout.splitlines()


def greedy(folder: Path, lines: list[str]) -> list[str]:
    """Greedy translations by the model in a folder."""
    torch.set_num_threads(1)
    one = open_translator(
        saved_bundle(folder), torch.device("cpu"), beam=1, length_penalty=0.0, batch_tokens=40, max_subwords=90
    )
    return [line for block in translated(lines, one, block_lines=50, report=print) for line in block]
