"""Report the result of `heads prune`: lines, and a page of the heads, gates and every size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.analysis.masking import vectors
from heads.analysis.metrics import ACCURACY, COSINE, cosine_values
from heads.analysis.speed import MEGABYTE
from heads.base.names import AUTO, CHRF, DEFAULT_TOKENISER, METRIC_NAMES, UNPRUNED
from heads.base.runs import Run
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.shape import ModelShape
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.one_model.costs import SPEED
from heads.one_model.measuring import Measuring
from heads.one_model.page import PARTS as PARTS_OF_HEADS
from heads.one_model.page import content_of
from heads.one_model.request import GATES
from heads.one_model.shrinking import Shrinking, Shrunk
from heads.one_model.smaller_vocabulary import vocabulary_line
from heads.one_model.text import Text
from heads.tables.reading import RunContent, RunFiles

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


def report_lines(pruning: Shrinking, shrunk: Shrunk, weights: int) -> Iterator[str]:
    """The lines of the report on the smaller model: its loss, its size, and its speed.

    weights: bytes of its weights in the format.
    """
    lost, model, whole = shrunk.lost, shrunk.model, pruning.whole
    sentences = len(pruning.texts["test"].sentences)
    same = "with all heads after the same training" if pruning.needs_control else "for the whole model"
    against = AGAINST[lost.metric]
    if lost.tokeniser not in (AUTO, DEFAULT_TOKENISER) and lost.metric != CHRF:
        against = against.replace(" against", f" ({lost.tokeniser}) against")
    left = f"{lost.kept} of {pruning.heads} heads"
    if units := [number for of_stack in model.shape.live_units.values() for number in of_stack]:
        left += f" and {sum(units) / len(units):,.0f} hidden units in an average layer"
    yield (
        f"{left} are left. On {sentences} held-out sentences, by {against}, it has {lost.pruned:.1f}, and "
        f"{lost.control:.1f} {same}: {lost.change:+.2f} (95 % interval {lost.low:+.2f} to {lost.high:+.2f})."
    )
    costs = pruning.costs
    written = pruning.request.format
    if zeros := heads_of_zeros(whole.shape, model.shape, costs.one_number):
        flag = " (--uniform takes equally many from all layers)" if costs.one_number else ""
        yield f"{zeros} of the heads that are gone are zeros in the format {written}, which take room and time{flag}."
    if zeros := units_of_zeros(model.shape, costs.one_width):
        yield (
            f"Its feed-forward layers differ in width, and those of the format {written} do not: "
            f"{zeros:,} of their units are zeros there, which take room and time."
        )
    if whole is not costs.original:
        yield vocabulary_line(whole, pruning.texts)
    whole_size = costs.original_bytes / MEGABYTE
    yield f"Its weights take {weights / MEGABYTE:.1f} MB, those of the whole model {whole_size:.1f}."
    for size in costs.batch_sizes:
        ratio, low, high = costs.speeds({"smaller": model.model}, size)["smaller"]
        won = "no faster" if low <= 1 <= high else "slower" if high < 1 else "faster"
        at_once = "1 sentence" if size == 1 else f"{size} sentences"
        yield (
            f"{at_once} at once, in {costs.timed_in}: {ratio:.2f} times the original speed ({low:.2f} to {high:.2f} in "
            f"{SPEED.repeats} rounds), {won}."
        )


def heads_of_zeros(whole: ModelShape, left: ModelShape, together: Iterable[Iterable[str]] | None) -> int:
    """How many heads that are gone a format has as zeros: all, or so many that layers, in groups, have equally many."""
    if together is None:
        return len(whole.heads()) - len(left.heads())
    return filled_up([len(layer) for kind in kinds for layer in left.live_heads[kind]] for kinds in together)


def units_of_zeros(shape: ModelShape, together: Iterable[Iterable[str]]) -> int:
    """How many hidden units a format adds so that feed-forward layers, in groups of stacks, have equally many."""
    return filled_up([units for stack in stacks for units in shape.units(stack)] for stacks in together)


def filled_up(groups: Iterable[Sequence[int]]) -> int:
    """How many are added so that the layers of each group have as many as its widest."""
    return sum(max(group, default=0) * len(group) - sum(group) for group in groups)


def page_beside(folder: Path) -> Path:
    """The path of the page that is written with a folder."""
    return folder.with_name(f"{folder.name}.html")


def pruned_page(pruning: Shrinking, tried: Mapping[int, Path], name: str) -> str:
    """The page of the model called `name`: its heads are measured, and every size that was tried is scored.

    tried: the folder of the model with each number of heads.
    """
    texts, request, folder = pruning.texts, pruning.request, pruning.folder
    text = Text(texts["test"].sentences[:SENTENCES], tokeniser=texts.tokeniser, metric=texts.metric)
    measuring = Measuring(pruning.whole, text, pruning.device, pruning.report)
    measured = {**measuring.measure(), "train.jsonl": [{"update": 0, "updates": 0, "dev_loss": None}]}
    runs: list[RunFiles] = []
    control = [(CONTROL, CONTROL, folder.pruned(CONTROL))] * pruning.needs_control
    sizes = [(request.target(kept), Target.of_choice("gates", kept), path) for kept, path in tried.items()]
    closing = request.by == GATES and request.gated == request.scope  # the page draws no gates on hidden units
    for target, shown, pruned in (*control, *sizes):
        pruning.report(f"answers of the model: {target}")
        if closing:
            runs.append((name, Run("gates", request.scope, shown, 1), RunContent({}, folder.with_gates(target))))
        answers = pruned_content(measuring, load_model(pruned))
        runs.append((name, Run("pruned", request.scope, shown, 1), RunContent(answers, pruned)))
    return page(content_of(name, measured, runs, ON_PAGE if closing else PARTS_OF_HEADS))


def pruned_content(measured: Measuring, pruned: Encoder) -> dict[str, Any]:
    """A pruned model's score against the unpruned model's answers, and its attention maps, by name of the file."""
    model, tokens, device, cosine = pruned.to(measured.device), measured.tokens, measured.device, 100.0
    if model.shape.embeds:
        cosine, _ = cosine_values(vectors(model, tokens, device), measured.vectors)
    answers, references = answered_by(model, tokens, measured.target, device), measured.references
    how = (cosine, measured.tokeniser, measured.text.metric)
    metric, score = score_of_answers(model.shape, answers, references, *how)
    maps = maps_of_any(model, measured.source, measured.target, measured.text.sentences, references)
    return {f"{metric}.json": {**score, "against": UNPRUNED}, "maps.json": maps}
