"""Targets: the word in a path that says how a run's heads are chosen. All code that reads it uses this module.

`lam-0.05` is the cost of an open head while gates are trained; `keep-12` the number of heads that gates are driven to
keep, `keep-4-6-8` that of each kind of attention, and `keep-12-512` that of heads and of hidden units, if both have
gates; `dsp-12` the number that gates of an exact number keep; `lrp-12` and `random2-12` the number that a method
keeps, the latter in the second draw. Imported by the Snakefile, so light.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering

from heads.base.files import UserError
from heads.base.methods import DRAWN, METHOD_FILES, RANDOM, STRATIFIED
from heads.base.names import ATTENTIONS, GATED_SCOPES

PENALTY, DRIVEN, SUBSET = "lam", "keep", "dsp"
"""The words for gates: a fixed penalty, one that is driven to a number of heads, differentiable subset pruning."""

BY_GATES = {"gates": DRIVEN, SUBSET: SUBSET}
"""The first word of targets by gates, by the name of the method in settings."""

COUNT = r"(?:0|[1-9][0-9]*)"
NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?"
"""One way to write each number, as `number_text` does: 0.05 and not .05, 0.050 or 5e-2."""

GATED = rf"(?:{PENALTY}-{NUMBER}|{DRIVEN}-{COUNT}(?:-{COUNT}){{0,2}}|{SUBSET}-{COUNT})"
CHOSEN = rf"(?:{'|'.join(name + COUNT * (name in DRAWN) for name in METHOD_FILES)})-{COUNT}"
ANY = rf"(?:{GATED}|{CHOSEN})"
"""Regular expressions without groups, for wildcards: targets by gates, by a measure, and both."""

NAMES = {None: "target", True: "target of gates", False: "choice of heads"}
WAYS = {
    True: f"{PENALTY}-0.05 with a number of at least 0, {DRIVEN}-12, {DRIVEN}-4-6-8 or {SUBSET}-12",
    False: f"lrp-12 with a number and one of {', '.join(METHOD_FILES)}, the last two as {RANDOM}1 and {STRATIFIED}1",
}


def number_text(value: Decimal | float | str) -> str:
    """A number as written in paths, so that 0.05, 5e-2 and ".05" are one name: plain decimals, no trailing zeros."""
    text = format(Decimal(str(value)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if Decimal(text) == 0 else text


@total_ordering
@dataclass(frozen=True, slots=True)
class Target:
    """How a run's heads are chosen; `str` gives the word in its path.

    method: PENALTY, DRIVEN, SUBSET or one of METHOD_FILES. numbers: the penalty, or how many heads are left, one number
    or one for each kind of attention. draw: which random draw. Raises UserError, as `parse` does, if it is no target.
    """

    method: str
    numbers: tuple[Decimal | int, ...]
    draw: int | None = None

    def __post_init__(self) -> None:
        """Refuse a target that cannot be written."""
        _check(str(self))

    @classmethod
    def parse(cls, text: str, *, by_gates: bool | None = None) -> Target:
        """Read a target from its text. by_gates: accept only targets by gates, or only those by a measure.

        Raises UserError with one sentence that names the ways to write it.
        """
        _check(text, by_gates=by_gates)
        word, _, rest = text.partition("-")
        if word == PENALTY:
            return cls(word, (Decimal(rest),))
        method = next((name for name in DRAWN if word.startswith(name)), word)
        draw = word.removeprefix(method)
        numbers = tuple(int(number) for number in rest.split("-"))
        return cls(method, numbers, int(draw) if draw else None)

    @classmethod
    def of_penalty(cls, penalty: Decimal | float | str) -> Target:
        """Gates with a penalty in nats per target token per head, however the number is written."""
        return cls(PENALTY, (Decimal(number_text(penalty)),))

    @classmethod
    def of_choice(cls, method: str, budget: int | str) -> Target:
        """A number of heads by a method as in settings and tables: gates, dsp, lrp, or `random2` for a draw."""
        return cls.parse(f"{BY_GATES.get(method, method)}-{budget}")

    @classmethod
    def of_columns(cls, method: str, lam: str, keep: str) -> Target | None:
        """The target with these `columns`; None for those of a run without a target."""
        if lam:
            return cls.of_penalty(lam)
        return cls.of_choice(method or "gates", keep) if keep else None

    @property
    def columns(self) -> tuple[str, str, str]:
        """Its columns in tables: the method unless it is hard-concrete gates, lambda, and the numbers of heads."""
        method, _, number = str(self).partition("-")
        if self.method == PENALTY:
            return "", number, ""
        return "" if self.hard_concrete else method, "", number

    @property
    def lam(self) -> float | None:
        """The penalty of an open head; None if a number of heads was asked for."""
        return float(self.numbers[0]) if self.method == PENALTY else None

    @property
    def budgets(self) -> tuple[int, ...]:
        """Numbers of heads asked for, in all or of each kind of attention; empty for a penalty."""
        return () if self.method == PENALTY else tuple(int(number) for number in self.numbers)

    @property
    def by_gates(self) -> bool:
        """Whether heads are chosen while the model trains, not by earlier measurements."""
        return self.method in (PENALTY, DRIVEN, SUBSET)

    @property
    def hard_concrete(self) -> bool:
        """Whether the gates are hard-concrete ones, with a penalty that is fixed or driven."""
        return self.method in (PENALTY, DRIVEN)

    @property
    def is_control(self) -> bool:
        """Whether no head is closed, which shows what fine-tuning alone does."""
        return self == CONTROL

    @property
    def has_penalty(self) -> bool:
        """Whether an open head costs a fixed penalty above zero."""
        return self.method == PENALTY and not self.is_control

    @property
    def order(self) -> tuple[int, int, int, tuple[Decimal | int, ...]]:
        """Its sort key in tables: the control, lambdas rising, then numbers of heads falling, method by method.

        Methods are driven gates, subset pruning, those of METHOD_FILES in its order, and draws by their number.
        """
        if self.method == PENALTY:
            return 0, 0, 0, self.numbers
        place = (DRIVEN, SUBSET, *METHOD_FILES).index(self.method)
        return 1, place, self.draw or 0, tuple(-number for number in self.numbers)

    def __lt__(self, other: Target) -> bool:
        """Compare by `order`."""
        return self.order < other.order

    def __str__(self) -> str:
        """The word in paths."""
        draw = "" if self.draw is None else self.draw
        return f"{self.method}{draw}-{'-'.join(map(number_text, self.numbers))}"


def groups_of(target: Target, scope: str, kinds: Collection[str], subject: str) -> list[list[str]]:
    """The kinds of attention, and feed-forward stacks, that each number of a target is for, of those of a model.

    One number is for the whole scope; where heads and hidden units have gates, they have a number each. subject: what a
    message is about. Raises UserError if the target has another number of numbers.
    """
    there = [kind for kind in GATED_SCOPES[scope] if kind in kinds]
    heads, units = ([kind for kind in there if (kind in ATTENTIONS) is is_head] for is_head in (True, False))
    both = bool(heads and units)
    groups, given = [heads, units] if both else [[kind] for kind in there], len(target.budgets)
    if given == 1 and not both:
        return [there]
    if given not in (0, len(groups)):
        several = f" or {len(groups)}, for {', '.join(there)}" if len(groups) > 1 else ""
        ways = "two numbers, of heads and of hidden units" if both else f"one number{several}"
        raise UserError(f"{subject}, which does not fit the scope {scope}: give {ways}.")
    return groups if given else []


def _check(text: str, *, by_gates: bool | None = None) -> None:
    if not re.fullmatch({None: ANY, True: GATED, False: CHOSEN}[by_gates], text):
        ways = [WAYS[by_gates]] if by_gates is not None else WAYS.values()
        raise UserError(f"{text!r} is not a {NAMES[by_gates]}: write {', or '.join(ways)}.")


CONTROL = Target.of_penalty(0)
"""The target that closes no head."""
