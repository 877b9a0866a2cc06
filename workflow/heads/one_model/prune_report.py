"""Read the flags of `heads prune`, and report its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heads.analysis.metrics import ACCURACY, BLEU, COSINE
from heads.base.files import UserError, read_lines
from heads.base.names import SIDES
from heads.one_model.shrinking import Loss, Wish, heads_of, needs_control
from heads.one_model.workplace import Workplace

AGAINST = {
    BLEU.name: "BLEU against the original model's translations",
    ACCURACY.name: "accuracy against the original model's labels",
    COSINE.name: "cosine in percent with the original model's vectors",
}
"""How the loss is measured, in words."""
PARTS = {"all": "all", "encoder": "enc_self"}
"""Names that --keep accepts, and the scope of heads that gets gates."""


def wish_of(keep: str | None, loss: float | None, updates: int) -> Wish:
    """The wish that the flags express. Raises UserError for an invalid --keep, and for numbers not above 0."""
    if loss is not None and loss <= 0:
        raise UserError(f"--loss {loss} is not above 0: give the BLEU that may be lost, such as 0.5.")
    if updates < 1:
        raise UserError(f"--updates {updates} is not above 0: give a number such as 400.")
    if keep is None:
        return Wish("all", None, loss, updates)
    part, _, number = keep.rpartition("=")
    if (part or "all") not in PARTS or not number.isdecimal():
        raise UserError(f"--keep {keep} is not a number of heads such as 24 or encoder=12.")
    return Wish(PARTS[part or "all"], int(number), None, updates)


def report_lines(
    place: Workplace, scope: str, lost: Loss, speed: Mapping[int, tuple[float, float, float]]
) -> Iterator[str]:
    """The lines of the report: the loss, and the speed-up at each batch size."""
    heads = heads_of(place.baseline, scope)
    sentences = len(read_lines(place.text("test", SIDES[0])))
    change = f"{lost.change:+.2f} (95 % interval {lost.low:+.2f} to {lost.high:+.2f})."
    said = (
        f"{lost.kept} of {heads} heads are left. On {sentences} held-out sentences, by {AGAINST[lost.metric]}, it has "
    )
    if needs_control(place):
        said += f"{lost.pruned:.1f}, and {lost.control:.1f} with all heads after the same training: {change}"
    else:
        said += f"{lost.pruned:.1f}, and 100 with all heads: {change}"
    yield said
    for size, (ratio, low, high) in speed.items():
        won = "no faster" if low <= 1 <= high else "slower" if high < 1 else "faster"
        at_once = "1 sentence" if size == 1 else f"{size} sentences"
        yield (
            f"{at_once} at once: {ratio:.2f} times the original speed ({low:.2f} to {high:.2f} in three rounds), {won}."
        )
