"""Read the flags of `heads prune`, and report its result: lines, and a page of the heads, gates and every size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heads.analysis.masking import vectors
from heads.analysis.metrics import ACCURACY, COSINE, cosine_values
from heads.analysis.speed import MEGABYTE
from heads.base.files import read_lines
from heads.base.names import AUTO, CHRF, DEFAULT_TOKENISER, METRIC_NAMES, SIDES, UNPRUNED
from heads.base.runs import Run, run_of
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.interop.bundle import saved_bundle
from heads.interop.families import of_one_width
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.shape import ModelShape
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.one_model.costs import SPEED, Costs
from heads.one_model.measuring import Measuring
from heads.one_model.page import PARTS as PARTS_OF_HEADS
from heads.one_model.page import content_of
from heads.one_model.request import GATES, PruningRequest
from heads.one_model.shrinking import Loss, heads_of, needs_control, run_of_target, smaller
from heads.one_model.smaller_vocabulary import vocabulary_line
from heads.one_model.text import Text
from heads.one_model.workplace import Workplace
from heads.tables.reading import RunContent, RunFiles
from heads.translation.stream import Report

AGAINST = {
    **{metric: f"{name} against the original model's outputs" for metric, name in METRIC_NAMES.items()},
    ACCURACY.name: "accuracy against the original model's labels",
    COSINE.name: "cosine in percent with the original model's vectors",
}
"""How the loss is measured, in words."""
SENTENCES = 200
"""The most held-out sentences to use for the page."""
ON_PAGE = ("heads", "attention", "closing", "concrete")
"""The parts of the page."""


def report_lines(
    place: Workplace, request: PruningRequest, folder: Path, lost: Loss, weights: int, device: torch.device
) -> Iterator[str]:
    """The lines of the report on the smaller model of a run's folder: its loss, its size, and its speed.

    weights: bytes of its weights in the format.
    """
    heads = heads_of(place.baseline, request.scope)
    sentences = len(read_lines(place.text("test", SIDES[0])))
    same = "with all heads after the same training" if needs_control(place, request) else "for the whole model"
    whole = f"{lost.control:.1f} {same}"
    against = AGAINST[lost.metric]
    if lost.tokeniser not in (AUTO, DEFAULT_TOKENISER) and lost.metric != CHRF:
        against = against.replace(" against", f" ({lost.tokeniser}) against")
    left, model = f"{lost.kept} of {heads} heads", load_model(folder).to(device)
    if units := [number for of_stack in model.shape.live_units.values() for number in of_stack]:
        left += f" and {sum(units) / len(units):,.0f} hidden units in an average layer"
    yield (
        f"{left} are left. On {sentences} held-out sentences, by {against}, it has "
        f"{lost.pruned:.1f}, and {whole}: {lost.change:+.2f} (95 % interval {lost.low:+.2f} to {lost.high:+.2f})."
    )
    if zeros := units_of_zeros(model.shape, of_one_width(request.format, place.came_with)):
        yield (
            f"Its feed-forward layers differ in width, and those of the format {request.format} do not: {zeros:,} "
            "of their units are zeros there, which take room and time."
        )
    costs = Costs(place, load_model(place.baseline).to(device), request, device)
    if place.whole is not None:
        yield vocabulary_line(place)
    whole_size = costs.original_bytes / MEGABYTE
    yield f"Its weights take {weights / MEGABYTE:.1f} MB, those of the whole model {whole_size:.1f}."
    for size in SPEED.batch_sizes:
        ratio, low, high = costs.speeds({"smaller": model}, size)["smaller"]
        won = "no faster" if low <= 1 <= high else "slower" if high < 1 else "faster"
        at_once = "1 sentence" if size == 1 else f"{size} sentences"
        yield (
            f"{at_once} at once: {ratio:.2f} times the original speed ({low:.2f} to {high:.2f} in {SPEED.repeats} "
            f"rounds), {won}."
        )


def units_of_zeros(shape: ModelShape, together: Iterable[Iterable[str]]) -> int:
    """How many hidden units a format adds so that feed-forward layers, in groups of stacks, have equally many."""
    groups = [[units for stack in stacks for units in shape.units(stack)] for stacks in together]
    return sum(max(group, default=0) * len(group) - sum(group) for group in groups)


def page_beside(folder: Path) -> Path:
    """The path of the page that is written with a folder."""
    return folder.with_name(f"{folder.name}.html")


def pruned_page(
    place: Workplace, name: str, request: PruningRequest, sizes: Sequence[int], device: torch.device, report: Report
) -> str:
    """The page of the model called `name`: its heads are measured, and every size that was tried is scored."""
    text = Text(read_lines(place.text("test", SIDES[0]))[:SENTENCES], tokeniser=place.tokeniser, metric=place.metric)
    measuring = Measuring(saved_bundle(place.baseline), text, device, report)
    measured = {**measuring.measure(), "train.jsonl": [{"update": 0, "updates": 0, "dev_loss": None}]}
    runs: list[RunFiles] = []
    control: list[tuple[Target, int | None]] = [(CONTROL, None)] * needs_control(place, request)
    closing = request.by == GATES and request.gated == request.scope  # the page draws no gates on hidden units
    for target, number in (*control, *((request.target(kept), kept) for kept in sizes)):
        report(f"answers of the model: {target}")
        pruned, gates = smaller(place, request.gated, target), run_of_target(place, "gates", request.gated, target)
        made: dict[Path, dict[str, Any]] = {gates: {}} if closing else {}
        made[pruned] = _answers(measuring, load_model(pruned))
        runs += [(name, shown(run, request.scope, number), RunContent(content, run)) for run, content in made.items()]
    return page(content_of(name, measured, runs, ON_PAGE if closing else PARTS_OF_HEADS))


def shown(folder: Path, scope: str, heads: int | None) -> Run:
    """The run of a folder as one of a scope of heads, with so many of them; None: the control."""
    target = CONTROL if heads is None else Target.of_choice("gates", heads)
    return replace(run_of(folder)[1], scope=scope, target=target)


def _answers(measured: Measuring, pruned: Encoder) -> dict[str, Any]:
    """A pruned model's score against the unpruned model's answers, and its attention maps, by name of the file."""
    model, tokens, device, cosine = pruned.to(measured.device), measured.tokens, measured.device, 100.0
    if model.shape.embeds:
        cosine, _ = cosine_values(vectors(model, tokens, device), vectors(measured.model, tokens, device))
    answers, references = answered_by(model, tokens, measured.target, device), measured.references
    how = (cosine, measured.tokeniser, measured.text.metric)
    metric, score = score_of_answers(model.shape, answers, references, *how)
    maps = maps_of_any(model, measured.source, measured.target, measured.text.sentences, references)
    return {f"{metric}.json": {**score, "against": UNPRUNED}, "maps.json": maps}
