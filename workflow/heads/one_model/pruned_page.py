"""The page of a model that was pruned: its heads, gates closing, and what every size of it translates."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from heads.analysis.maps_of_text import maps_of_sentences
from heads.base.files import read_lines, write_json, write_text
from heads.base.names import SIDES, UNPRUNED
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.model.folder import load_folder
from heads.one_model.measuring import GREEDY, MAPS, Measuring, Text
from heads.one_model.page import content_of
from heads.one_model.shrinking import run_of_target, smaller
from heads.one_model.workplace import Workplace
from heads.text.bytepieces import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.devices import pick
from heads.translation.model_folder import VOCABULARIES
from heads.translation.scoring import scored
from heads.translation.stream import Tell

SENTENCES = 200
"""Of those that were held out, at most."""
PARTS = ("heads", "attention", "closing", "concrete")


def pruned_page(place: Workplace, name: str, scope: str, sizes: Sequence[int], device: str, tell: Tell) -> str:
    """Measure the heads of the model, score every size that was tried, and give the page as text.

    name: what the page calls the model.
    """
    folder, on = place.folder / "page" / "results" / name, pick(device, 1)
    shutil.rmtree(folder, ignore_errors=True)
    baseline = folder / "baseline" / "seed-1"
    text = Text(read_lines(place.text("test", SIDES[0]))[:SENTENCES])
    Measuring(place.baseline, text, baseline, on, tell).measure()
    write_text(baseline / "train.jsonl", json.dumps({"update": 0, "updates": 0, "dev_loss": None}) + "\n")
    runs = [baseline]
    for target in (CONTROL, *(Target.of_choice("gates", kept) for kept in sizes)):
        tell(f"what it translates: {target}")
        smaller(place, scope, target)
        for kind in ("gates", "pruned"):
            trained = run_of_target(place, kind, scope, target)
            runs.append(folder / trained.relative_to(place.results))
            shutil.copytree(trained, runs[-1], ignore=shutil.ignore_patterns("*.safetensors"))
        _answers(place.results / runs[-1].relative_to(folder), runs[-1], folder / "bpe", on)
    return page(content_of(runs, PARTS))


def _answers(model_folder: Path, run: Path, bpe: Path, device: torch.device) -> None:
    """Write what a pruned model scores by what the unpruned one writes, and its translations and attention."""
    model = load_folder(model_folder).to(device)
    source, target = (bpe / name for name in VOCABULARIES)
    tokens, wanted = Tokens(bpe / "source.safetensors"), read_lines(bpe / "target.txt")
    score = scored(model, tokens, wanted, vocabulary_of(target), GREEDY, device)[2]
    write_json(run / "bleu.json", {**score, "against": UNPRUNED})
    found = maps_of_sentences(model, source, target, bpe / "source.txt", MAPS, GREEDY)
    write_text(run / "maps.json", json.dumps(found, ensure_ascii=False) + "\n")
