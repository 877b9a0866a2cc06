"""The page of a pruned model: its heads, its gates closing, and the output of every size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heads.analysis.masking import vectors
from heads.analysis.metrics import cosine_values
from heads.base.files import read_lines
from heads.base.names import SIDES, UNPRUNED
from heads.base.runs import run_of
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.one_model.measuring import Measuring, Text
from heads.one_model.page import content_of
from heads.one_model.shrinking import needs_control, run_of_target, smaller
from heads.one_model.workplace import Workplace
from heads.tables.reading import RunContent, RunFiles
from heads.training.devices import pick
from heads.translation.stream import Report

SENTENCES = 200
"""The most held-out sentences to use."""
PARTS = ("heads", "attention", "closing", "concrete")


def pruned_page(place: Workplace, name: str, scope: str, sizes: Sequence[int], device: str, report: Report) -> str:
    """Measure the heads of the model, score every size that was tried, and return the page as text.

    name: the model's name on the page.
    """
    text = Text(read_lines(place.text("test", SIDES[0]))[:SENTENCES])
    measuring = Measuring(place.baseline, text, pick(device, 1), report)
    measured = {**measuring.measure(), "train.jsonl": [{"update": 0, "updates": 0, "dev_loss": None}]}
    runs: list[RunFiles] = []
    control = [CONTROL] * needs_control(place)
    for target in (*control, *(Target.of_choice("gates", kept) for kept in sizes)):
        report(f"answers of the model: {target}")
        smaller(place, scope, target)
        gates, pruned = (run_of_target(place, kind, scope, target) for kind in ("gates", "pruned"))
        answers = _answers(measuring, load_model(pruned))
        runs += [
            (name, run_of(gates)[1], RunContent({}, gates)),
            (name, run_of(pruned)[1], RunContent(answers, pruned)),
        ]
    return page(content_of(name, measured, runs, PARTS))


def _answers(measured: Measuring, pruned: Encoder) -> dict[str, Any]:
    """A pruned model's score against the unpruned model's answers, and its attention maps, by name of the file."""
    model, tokens, device, cosine = pruned.to(measured.device), measured.tokens, measured.device, 100.0
    if model.shape.embeds:
        cosine, _ = cosine_values(vectors(model, tokens, device), vectors(measured.model, tokens, device))
    answers, references = answered_by(model, tokens, measured.target, device), measured.references
    metric, score = score_of_answers(model.shape, answers, references, cosine)
    maps = maps_of_any(model, measured.source, measured.target, measured.text.sentences, references)
    return {f"{metric}.json": {**score, "against": UNPRUNED}, "maps.json": maps}
