"""Runs: the trained models of an experiment, the folder of each, and which of their files a table or figure reads.

Imported by the Snakefile, so kept light.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from heads.base.files import UserError
from heads.base.names import CHOICE_SCOPE, CLASSIFICATION, GATED_SCOPES, KINDS, OLD_KINDS, SCOPES, TRANSLATION
from heads.base.targets import ANY, COUNT, GATED, Target

RUN_PATTERN = re.compile(
    rf"(?P<kind>{'|'.join((*KINDS, *OLD_KINDS))})(?:/(?P<scope>[^/]+)/(?P<target>{ANY}))?/seed-(?P<seed>\d+)", re.ASCII
)

SCORED_RUN = (
    rf"(?:baseline|pruned/(?:{'|'.join(GATED_SCOPES)})/{GATED}|(?:scratch|pruned_from_scratch)/(?:{'|'.join(SCOPES)})/{GATED}"
    rf"|selected/{CHOICE_SCOPE}/{ANY})/seed-{COUNT}"
)
"""A regular expression for wildcards: folders of runs that are scored. Not of runs with gates, whose models have all
heads, open or closed: their score is that of the pruned model."""


@dataclass(frozen=True, slots=True)
class Run:
    """One trained model inside an experiment; `scope` and `target` are None for the baseline."""

    kind: str
    scope: str | None
    target: Target | None
    seed: int

    @classmethod
    def parse(cls, text: str) -> Run:
        """Read a run from its folder name, such as `pruned/all/lam-0.05/seed-1`. Raises ValueError for any other."""
        match = RUN_PATTERN.fullmatch(text)
        if match is None or (match["kind"] == "baseline") != (match["scope"] is None):
            raise ValueError(f"{text!r} is not the folder of a run")
        target = None if match["target"] is None else Target.parse(match["target"])
        return cls(OLD_KINDS.get(match["kind"], match["kind"]), match["scope"], target, int(match["seed"]))

    @property
    def folder(self) -> str:
        """The run's folder, relative to its experiment."""
        middle = f"/{self.scope}/{self.target}" if self.scope else ""
        return f"{self.kind}{middle}/seed-{self.seed}"

    @property
    def columns(self) -> dict[str, str | int]:
        """Its columns in tables; `scope`, `method`, `lam` and `keep` are "" if it has none."""
        method, lam, keep = self.target.columns if self.target else ("", "", "")
        scope = self.scope or ""
        return {"kind": self.kind, "scope": scope, "method": method, "lam": lam, "keep": keep, "seed": self.seed}


@cache
def run_of(folder: str | PurePath) -> tuple[str, Run]:
    """The experiment and run of a folder such as `results/demo/baseline/seed-1`. Raises ValueError for any other."""
    parts = PurePath(folder).parts
    length = 2 if len(parts) > 2 and parts[-2] == "baseline" else 4
    if len(parts) <= length:
        raise ValueError(f"{folder} does not end in an experiment and a run")
    return parts[-length - 1], Run.parse("/".join(parts[-length:]))


def name_of(folder: Path) -> str:
    """The name of the run in a folder, such as `pruned/all/lam-0.05/seed-1`. Raises UserError if it has none."""
    try:
        return run_of(folder.resolve())[1].folder
    except ValueError as error:
        raise UserError(f"{error}: give folders such as results/demo/baseline/seed-1.") from error


@dataclass(frozen=True, slots=True)
class Need:
    """What a table or figure reads: files by kind of run, from these pruning scopes (the baseline has none).

    `reference` names the files of the papers' numbers, in the folder reference. `optional` files are read where they
    exist, so that a table can also be made for experiments without an alignment or an out-of-domain test set. `driven`:
    whether to read runs whose gates were driven to a number of heads; other runs with a given number of heads are never
    read. `tasks`: what the models of the experiments may be trained for. `syntactic`: whether it is about relations, so
    that experiments without trees are left out.
    """

    scopes: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    reference: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    driven: bool = False
    tasks: tuple[str, ...] = (TRANSLATION, CLASSIFICATION)
    syntactic: bool = False

    def wants(self, run: Run) -> bool:
        """Whether any file of this run is read."""
        target = run.target
        asked = target is None or target.lam is not None or (self.driven and target.hard_concrete)
        return asked and run.kind in self.files and (run.scope is None or run.scope in self.scopes)

    def inputs(self, folders: Sequence[str], without: Collection[str] = ()) -> list[str]:
        """The files to read, below run folders such as `results/demo/pruned/all/lam-0.01/seed-1`.

        without: names of files that these runs do not have.
        """
        wanted = [(folder, run_of(folder)[1]) for folder in folders]
        files = [(folder, name) for folder, run in wanted if self.wants(run) for name in self.files[run.kind]]
        return [f"{folder}/{name}" for folder, name in files if name not in without]
