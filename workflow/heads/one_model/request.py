"""What `heads prune` is asked for."""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from heads.base.files import UserError
from heads.base.names import FEEDFORWARDS, SCOPES
from heads.base.targets import Target
from heads.model.shape import ModelShape
from heads.pruning.closed_form import SHARES as SHARES_OF_UNITS
from heads.pruning.closed_form import fewest_units

SHARES = (0.75, 0.5, 0.375, 0.25, 0.125)
"""Shares of all heads to try in turn, largest first, if the flags say how much may be lost."""
GATES, SURGEON = WAYS = ("gates", "surgeon")
"""Ways to choose heads: by gates, beside a control that trains for as long, or in closed form before any training."""
PARTS = {"all": "all", "encoder": "enc_self"}
"""Names that --keep accepts, and the scope of heads that go."""
MINUTES, UPDATES = 10.0, 400
"""How long a model is fine-tuned if that is not said: one cut down by the surgeon, and one with gates."""
STEP = 64
"""Hidden units go in steps of this number, for which engines have fast products; in narrow models one by one."""


@dataclass(frozen=True)
class PruningRequest:
    """The size asked for: `keep` heads of a scope, or the fewest that lose at most `loss` against the control."""

    scope: str
    keep: int | None
    loss: float | None
    updates: int
    by: str = GATES
    """GATES, or SURGEON, in closed form."""
    units: int | None = None
    """Hidden units to keep in an average feed-forward network; None: all."""
    units_left: int = 0
    """Hidden units to keep in all feed-forward networks together, if any go; `fitted` counts them."""
    units_percent: float | None = None
    """The same in percent of what it has now; `fitted` turns it into a number."""
    minutes: float = 0.0
    """How long the model is fine-tuned that the surgeon cut down."""
    faster: float | None = None
    """How many times as fast as the whole model it is to be."""
    megabytes: float | None = None
    """The most that its weights may take."""
    format: str = "folder"
    """The format that counts."""
    quantization: str = "float32"
    vocabulary: bool = False
    """Whether only those subwords stay that the text uses."""
    uniform: bool = False
    """Whether all layers lose equally many heads that have one number of them in the format."""

    @property
    def asked(self) -> dict[str, object]:
        """All that a pruning must have been asked for to be gone on with; gates may choose another number of heads."""
        if self.by == GATES:
            return {"updates": self.updates, "vocabulary": self.vocabulary}
        return asdict(self)

    @property
    def options(self) -> dict[str, str]:
        """How its format is written."""
        return {"quantization": self.quantization} if self.format == "ctranslate2" else {}

    def kinds(self, *, heads_save: bool) -> tuple[str, ...]:
        """The kinds of attention, and the feed-forward stacks, that lose heads or units.

        heads_save: whether heads that go save anything in the format.
        """
        any_size = self.faster is not None or self.megabytes is not None
        heads = self.keeps_a_number or (any_size and heads_save)
        units = self.units is not None or self.units_percent is not None or any_size
        return (*(SCOPES[self.scope] if heads else ()), *(FEEDFORWARDS if units else ()))

    @property
    def gated(self) -> str:
        """The scope that has gates: that of the heads, unless hidden units have gates too."""
        if self.by == SURGEON or self.units is None:
            return self.scope
        return "everything" if self.keeps_a_number else "feedforward"

    def target(self, heads: int) -> Target:
        """The target with so many heads, and the units asked for if they have gates."""
        numbers = {"feedforward": str(self.units_left), "everything": f"{heads}-{self.units_left}"}
        return Target.of_choice("gates", numbers.get(self.gated, heads))

    @property
    def keeps_a_number(self) -> bool:
        """Whether the number of heads to keep is given or tried, and not left to other limits."""
        return self.keep is not None or self.loss is not None

    def too_much(self, megabytes: float, speed: float) -> str:
        """The sentence that no model is that small and fast; given is how small and fast one can be."""
        fast = f" and about {speed:.1f} times as fast" if self.faster is not None else ""
        return (
            f"No model has all that was asked for: in the format {self.format} it can take {megabytes:.1f} MB{fast} "
            "at best, with no limit on heads and units: ask for less."
        )

    def sizes(self, heads: int) -> list[int]:
        """The numbers of heads to try, largest first. Raises UserError unless a head stays and another one goes."""
        if not self.keeps_a_number:
            return [heads]
        if heads < 2:
            raise UserError("The model has fewer than two heads in that scope: give one with a head that can go.")
        if self.keep is None:
            return [*dict.fromkeys(min(heads - 1, max(1, round(share * heads))) for share in SHARES)]
        if not 0 < self.keep < heads:
            raise UserError(
                f"--keep {self.keep} is not possible, as of the {heads} heads in that scope at least one has to stay "
                f"and one has to go: give 1 to {heads - 1}."
            )
        return [self.keep]


def request_of(
    *,
    vocabulary: bool = False,
    keep: str | None = None,
    loss: float | None = None,
    feedforward: str | None = None,
    faster: float | None = None,
    megabytes: float | None = None,
    by: str = SURGEON,
    minutes: float | None = None,
    updates: int | None = None,
    format: str = "folder",
    quantization: str = "float32",
    uniform: bool = False,
) -> PruningRequest:
    """The request that the flags make.

    Raises UserError for an invalid --keep, for numbers not above 0, and for flags that do not go together.
    """
    given = {"--feedforward": feedforward, "--faster": faster, "--megabytes": megabytes}
    sizes = [flag for flag, value in given.items() if value is not None]
    only = keep is None and loss is None and not sizes
    if only and not vocabulary:
        raise UserError(
            "The size is missing: give --vocabulary, --keep, --loss, --feedforward, --faster or --megabytes."
        )
    if only and by == GATES:
        raise UserError("--by gates needs heads or hidden units that go: give --keep, --loss or --feedforward.")
    _check_together(keep, loss, sizes, by, uniform=uniform)
    _check_numbers(loss, faster, megabytes, by, minutes, updates)
    scope, number = _kept(keep)
    units, percent = _units(feedforward)
    return PruningRequest(
        scope,
        number,
        loss,
        UPDATES if updates is None else updates,
        by,
        units,
        units_percent=percent,
        # Without subwords that the text does not use, the model answers it as before.
        minutes=0.0 if by == GATES or (only and minutes is None) else MINUTES if minutes is None else minutes,
        faster=faster,
        megabytes=megabytes,
        format=format,
        quantization=quantization,
        vocabulary=vocabulary,
        uniform=uniform,
    )


def _check_together(keep: str | None, loss: float | None, sizes: Sequence[str], by: str, *, uniform: bool) -> None:
    """Raise UserError if flags do not go together. sizes: those flags of sizes, besides heads, that are given."""
    if uniform and (by == GATES or (keep is None and loss is None and sizes in ([], ["--feedforward"]))):
        raise UserError(
            "--uniform is for heads that the surgeon takes: give --keep, --loss, --faster or --megabytes, without --by "
            "gates."
        )
    if sizes and loss is not None:
        raise UserError(f"{sizes[0]} does not go with --loss: remove one of them.")
    if by == GATES and sizes not in ([], ["--feedforward"]):
        raise UserError(f"{sizes[-1]} does not go with --by gates: remove one of them.")
    if by == GATES and sizes and keep is not None and _kept(keep)[0] != "all":
        raise UserError(f"--keep {keep} does not go with --feedforward and --by gates: give the number of all heads.")


def _check_numbers(
    loss: float | None,
    faster: float | None,
    megabytes: float | None,
    by: str,
    minutes: float | None,
    updates: int | None,
) -> None:
    """Raise UserError for numbers that are too small, and for a length that is not of the way in which heads go."""
    if loss is not None and not 0 < loss < math.inf:
        raise UserError(f"--loss {loss} is not above 0: give the BLEU that may be lost, such as 0.5.")
    if faster is not None and not 1 < faster < math.inf:
        raise UserError(f"--faster {faster:g} is not above 1: give a number such as 1.3.")
    if megabytes is not None and not 0 < megabytes < math.inf:
        raise UserError(f"--megabytes {megabytes:g} is not above 0: give the most that the weights may take.")
    if minutes is not None and (by == GATES or not 0 <= minutes < math.inf):
        raise UserError(f"--minutes {minutes:g} is not possible: give 0 or more, or, with --by gates, --updates.")
    if updates is not None and (by != GATES or updates < 1):
        raise UserError(f"--updates {updates} is not possible: give 1 or more with --by gates, or else --minutes.")


def _kept(keep: str | None) -> tuple[str, int | None]:
    """The scope and number of --keep; all heads and no number if it is not given."""
    if keep is None:
        return "all", None
    part, _, number = keep.rpartition("=")
    if (part or "all") not in PARTS or not number.isdecimal():
        raise UserError(f"--keep {keep} is not a number of heads such as 24 or encoder=12.")
    return PARTS[part or "all"], int(number)


def _units(feedforward: str | None) -> tuple[int | None, float | None]:
    """The number or the percentage of --feedforward."""
    if feedforward is None:
        return None, None
    if not re.fullmatch(r"\d+|\d+(\.\d+)?%", feedforward, re.ASCII):
        raise UserError(f"--feedforward {feedforward} is not a number of hidden units such as 1024 or 67%.")
    if feedforward.endswith("%"):
        return None, float(feedforward[:-1])
    return int(feedforward), None


def fitted(request: PruningRequest, shape: ModelShape) -> PruningRequest:
    """The request, as a model of this shape can meet it: with a number of units in place of a percentage.

    Raises UserError if the model's layers cannot have as few or as many units as asked for.
    """
    layers = [units for stack in FEEDFORWARDS for units in shape.units(stack)]
    if request.units_percent is not None:
        request = replace(request, units=round(request.units_percent / 100 * sum(layers) / len(layers)))
    if request.units is not None:
        request = replace(request, units_left=total_of_units(layers, request.units))
    request.sizes(len(shape.heads(SCOPES[request.scope])))
    return request


def step_of(units: int) -> int:
    """In what steps the hidden units of a feed-forward network go."""
    return STEP if units >= SHARES_OF_UNITS * STEP else 1


def total_of_units(layers: Sequence[int], average: int) -> int:
    """How many hidden units of layers with so many are kept, if a layer is to have an average number, in whole steps.

    Raises UserError if that is no fewer than there are, or fewer than layers are cut down to.
    """
    most, step = sum(layers), step_of(max(layers))
    least = sum(units - (units - fewest_units(units)) // step * step for units in layers)
    total = most - (most - average * len(layers)) // step * step
    if not least <= total < most:
        fewest, many = -(-least // len(layers)), (most - step) // len(layers)
        raise UserError(f"--feedforward {average} is not possible: give {fewest} to {many}.")
    return total
