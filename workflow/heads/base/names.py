"""Names shared by the workflow and the package: kinds of attention, numbers in paths, runs.

Imported by the Snakefile, so nothing heavy may be imported here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

ATTENTIONS = ("enc_self", "dec_self", "dec_enc")
"""The three kinds of multi-head attention, in the order of every table and figure."""

ATTENTION_LABELS = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "decoder-encoder attention",
}

SCOPES: dict[str, tuple[str, ...]] = {"enc_self": ("enc_self",), "all": ATTENTIONS}
"""Which kinds of attention carry gates in each pruning scope."""

SPLITS = ("train", "dev", "test")
OTHER = "other"
"""The name of a test set of another domain, which a corpus in files may have beside its splits."""

ROLES = "roles"
"""The name of source lines that a corpus in files may keep away from training, to be parsed for the roles of heads."""

SIDES = ("source", "target")
KINDS = ("baseline", "gates", "pruned", "scratch", "selected", "penalty_gates", "penalty_scratch")
"""The kinds of trained models, in the order in which they are made. In `penalty_gates` gates and their price are there
from a fresh initialisation on; `penalty_scratch` is what is left of such a model."""
WITH_GATES = ("gates", "penalty_gates")
"""Kinds that have all their heads, open or closed."""

RUN_PATTERN = re.compile(
    rf"(?P<kind>{'|'.join(KINDS)})"
    r"(?:/(?P<scope>[^/]+)/(?P<target>[a-z_]+[0-9]*-[0-9][^/]*))?/seed-(?P<seed>\d+)"
)


def number_text(value: float | str) -> str:
    """Write a number for a path, so that 0.05, 5e-2 and ".05" are one name: plain decimals, no trailing zeros."""
    text = format(Decimal(str(value)).normalize(), "f")
    return "0" if Decimal(text) == 0 else text


@dataclass(frozen=True, slots=True)
class Run:
    """One trained model inside an experiment; `scope` and `target` are None for the baseline.

    The target is what an open head costs, `lam-0.05`, or how many heads are left, `keep-12` or `keep-4-6-8`. How they
    were chosen stands before the number: `keep` by gates whose lambda is driven, else the method, as in `random3-12`.
    """

    kind: str
    scope: str | None
    target: str | None
    seed: int

    @classmethod
    def parse(cls, text: str) -> Run:
        """Read a run from its folder name, such as `pruned/all/lam-0.05/seed-1`.

        Raises ValueError for anything else.
        """
        match = RUN_PATTERN.fullmatch(text)
        if match is None or (match["kind"] == "baseline") != (match["scope"] is None):
            raise ValueError(f"{text!r} is not the folder of a run")
        return cls(match["kind"], match["scope"], match["target"], int(match["seed"]))

    @property
    def folder(self) -> str:
        """The run's folder below its experiment."""
        middle = f"/{self.scope}/{self.target}" if self.scope else ""
        return f"{self.kind}{middle}/seed-{self.seed}"

    @property
    def method(self) -> str:
        """How the heads to keep were chosen; "" for the baseline and for gates with a lambda or a budget."""
        method = self._parts[0]
        return "" if method in ("lam", "keep") else method

    @property
    def lam(self) -> str:
        """Lambda as text; "" for the baseline and where a number of heads was asked for."""
        method, number = self._parts
        return number if method == "lam" else ""

    @property
    def keep(self) -> str:
        """The number of heads asked for as text, such as `12`; "" where there is none."""
        method, number = self._parts
        return "" if method == "lam" else number

    @property
    def _parts(self) -> tuple[str, str]:
        method, _, number = (self.target or "").partition("-")
        return method, number
