"""The page of a pruned model: its heads, its gates closing, and the output of every size."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from heads.analysis.embedding import vectors
from heads.analysis.metrics import cosines
from heads.base.files import read_lines, write_json, write_text
from heads.base.names import SIDES, UNPRUNED
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.model.folder import load_model
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.one_model.measuring import Measuring, Text
from heads.one_model.page import content_of
from heads.one_model.shrinking import needs_control, run_of_target, smaller
from heads.one_model.workplace import Workplace
from heads.text.vocabulary import Tokens
from heads.training.devices import pick
from heads.translation.model_folder import VOCABULARIES
from heads.translation.stream import Report

SENTENCES = 200
"""The most held-out sentences to use."""
PARTS = ("heads", "attention", "closing", "concrete")


def pruned_page(place: Workplace, name: str, scope: str, sizes: Sequence[int], device: str, report: Report) -> str:
    """Measure the heads of the model, score every size that was tried, and return the page as text.

    name: the model's name on the page.
    """
    folder, on = place.folder / "page" / "results" / name, pick(device, 1)
    shutil.rmtree(folder, ignore_errors=True)
    baseline = folder / "baseline" / "seed-1"
    text = Text(read_lines(place.text("test", SIDES[0]))[:SENTENCES])
    Measuring(place.baseline, text, baseline, on, report).measure()
    write_text(baseline / "train.jsonl", json.dumps({"update": 0, "updates": 0, "dev_loss": None}) + "\n")
    runs = [baseline]
    control = [CONTROL] * needs_control(place)
    for target in (*control, *(Target.of_choice("gates", kept) for kept in sizes)):
        report(f"answers of the model: {target}")
        smaller(place, scope, target)
        for kind in ("gates", "pruned"):
            trained = run_of_target(place, kind, scope, target)
            runs.append(folder / trained.relative_to(place.results))
            shutil.copytree(trained, runs[-1], ignore=shutil.ignore_patterns("*.safetensors"))
        _answers(place, place.results / runs[-1].relative_to(folder), runs[-1], folder / "bpe", on)
    return page(content_of(runs, PARTS))


def _answers(place: Workplace, model_folder: Path, run: Path, bpe: Path, device: torch.device) -> None:
    """Write a pruned model's score against the unpruned model's answers, and its attention maps."""
    model, tokens, cosine = load_model(model_folder).to(device), Tokens(bpe / "source.safetensors"), 100.0
    if model.shape.embeds:
        whole = load_model(place.baseline).to(device)
        cosine = float(cosines(vectors(model, tokens, device), vectors(whole, tokens, device)).mean())
    answers = answered_by(model, tokens, bpe / VOCABULARIES[1], device)
    name, score = score_of_answers(model.shape, answers, read_lines(bpe / "target.txt"), cosine)
    write_json(run / f"{name}.json", {**score, "against": UNPRUNED})
    write_text(run / "maps.json", json.dumps(maps_of_any(model, bpe), ensure_ascii=False) + "\n")
