"""Read the flags of `heads prune`, and report its result: lines, and a page of the heads, gates and every size."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from heads.analysis.masking import vectors
from heads.analysis.metrics import ACCURACY, BLEU, COSINE, cosine_values
from heads.base.files import UserError, read_lines
from heads.base.names import AUTO, DEFAULT_TOKENISER, SIDES, UNPRUNED
from heads.base.runs import run_of
from heads.base.targets import CONTROL, Target
from heads.explore.page import page
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.one_model.measuring import Measuring
from heads.one_model.page import PARTS as PARTS_OF_HEADS
from heads.one_model.page import content_of
from heads.one_model.shrinking import GATES, Loss, Wish, heads_of, needs_control, run_of_target, smaller
from heads.one_model.text import Text
from heads.one_model.workplace import Workplace
from heads.tables.reading import RunContent, RunFiles
from heads.translation.stream import Report

AGAINST = {
    BLEU.name: "BLEU against the original model's translations",
    ACCURACY.name: "accuracy against the original model's labels",
    COSINE.name: "cosine in percent with the original model's vectors",
}
"""How the loss is measured, in words."""
PARTS = {"all": "all", "encoder": "enc_self"}
"""Names that --keep accepts, and the scope of heads that gets gates."""
SENTENCES = 200
"""The most held-out sentences to use for the page."""
ON_PAGE = ("heads", "attention", "closing", "concrete")
"""The parts of the page."""


def wish_of(
    keep: str | None, loss: float | None, updates: int, by: str = GATES, feedforward: int | None = None
) -> Wish:
    """The wish that the flags express.

    Raises UserError for an invalid --keep, for numbers not above 0, and for flags that do not go together.
    """
    if keep is None and loss is None and feedforward is None:
        raise UserError("The size is missing: give --keep, --loss or, with --by surgeon, --feedforward.")
    if feedforward is not None and (by == GATES or loss is not None):
        raise UserError("--feedforward needs --by surgeon, and goes with --keep, but not with --loss.")
    if loss is not None and not 0 < loss < math.inf:
        raise UserError(f"--loss {loss} is not above 0: give the BLEU that may be lost, such as 0.5.")
    if updates < 1:
        raise UserError(f"--updates {updates} is not above 0: give a number such as 400.")
    if keep is None:
        return Wish("all", None, loss, updates, by, feedforward)
    part, _, number = keep.rpartition("=")
    if (part or "all") not in PARTS or not number.isdecimal():
        raise UserError(f"--keep {keep} is not a number of heads such as 24 or encoder=12.")
    return Wish(PARTS[part or "all"], int(number), None, updates, by, feedforward)


def report_lines(
    place: Workplace, wish: Wish, lost: Loss, speed: Mapping[int, tuple[float, float, float]]
) -> Iterator[str]:
    """The lines of the report: the loss, and the speed-up at each batch size."""
    heads = heads_of(place.baseline, wish.scope)
    sentences = len(read_lines(place.text("test", SIDES[0])))
    whole = (
        f"{lost.control:.1f} with all heads after the same training"
        if needs_control(place, wish)
        else "100 with all heads"
    )
    against = AGAINST[lost.metric]
    if lost.tokeniser not in (AUTO, DEFAULT_TOKENISER):
        against = against.replace("BLEU", f"BLEU ({lost.tokeniser})")
    left = f"{lost.kept} of {heads} heads"
    if wish.units is not None:
        left += f" and {wish.units:,} hidden units in an average layer"
    yield (
        f"{left} are left. On {sentences} held-out sentences, by {against}, it has "
        f"{lost.pruned:.1f}, and {whole}: {lost.change:+.2f} (95 % interval {lost.low:+.2f} to {lost.high:+.2f})."
    )
    for size, (ratio, low, high) in speed.items():
        won = "no faster" if low <= 1 <= high else "slower" if high < 1 else "faster"
        at_once = "1 sentence" if size == 1 else f"{size} sentences"
        yield (
            f"{at_once} at once: {ratio:.2f} times the original speed ({low:.2f} to {high:.2f} in three rounds), {won}."
        )


def page_beside(folder: Path) -> Path:
    """The path of the page that is written with a folder."""
    return folder.with_name(f"{folder.name}.html")


def pruned_page(
    place: Workplace, name: str, wish: Wish, sizes: Sequence[int], device: torch.device, report: Report
) -> str:
    """The page of the model called `name`: its heads are measured, and every size that was tried is scored."""
    text = Text(read_lines(place.text("test", SIDES[0]))[:SENTENCES], tokeniser=place.tokeniser)
    measuring = Measuring(place.baseline, text, device, report)
    measured = {**measuring.measure(), "train.jsonl": [{"update": 0, "updates": 0, "dev_loss": None}]}
    runs: list[RunFiles] = []
    control = [CONTROL] * needs_control(place, wish)
    for target in (*control, *(Target.of_choice("gates", kept) for kept in sizes)):
        report(f"answers of the model: {target}")
        pruned, gates = smaller(place, wish.scope, target), run_of_target(place, "gates", wish.scope, target)
        made: dict[Path, dict[str, Any]] = {gates: {}} if wish.by == GATES else {}
        made[pruned] = _answers(measuring, load_model(pruned))
        runs += [(name, run_of(run)[1], RunContent(content, run)) for run, content in made.items()]
    return page(content_of(name, measured, runs, ON_PAGE if wish.by == GATES else PARTS_OF_HEADS))


def _answers(measured: Measuring, pruned: Encoder) -> dict[str, Any]:
    """A pruned model's score against the unpruned model's answers, and its attention maps, by name of the file."""
    model, tokens, device, cosine = pruned.to(measured.device), measured.tokens, measured.device, 100.0
    if model.shape.embeds:
        cosine, _ = cosine_values(vectors(model, tokens, device), vectors(measured.model, tokens, device))
    answers, references = answered_by(model, tokens, measured.target, device), measured.references
    metric, score = score_of_answers(model.shape, answers, references, cosine, measured.tokeniser)
    maps = maps_of_any(model, measured.source, measured.target, measured.text.sentences, references)
    return {f"{metric}.json": {**score, "against": UNPRUNED}, "maps.json": maps}
