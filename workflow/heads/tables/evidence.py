"""The results of one experiment and seed, gathered from its frames so that claims can be tested on them."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heads.base.bootstrap import ROUNDING, interval, resampled_sums
from heads.tables.curves import falls, pair_of, unlike_scratch
from heads.tables.picking import first_of, heads_left, kept_share, pruned_by_gates
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames
from heads.tables.roles import head_functions
from heads.tables.verdicts import UNKNOWN, Finding
from heads.translation.bleu import bleu_of

DRAWS = 1000
"""The number of draws of test sentences, which are the same for every model of an experiment."""

FUNCTIONS = {
    "positional": ("positional", "positional_and_syntactic"),
    "syntactic": ("syntactic", "positional_and_syntactic"),
    "rare": ("rare",),
}
"""The functions of `heads.tables.roles` that count as having a role."""

Model = tuple[str, str, str, str]
"""Kind, scope, lambda and number of heads of a model, as written in tables."""
BASELINE: Model = ("baseline", "", "", "")

Scores = NDArray[np.float64]
"""Scores of one model [1+B]: on all test sentences, then on each draw of them."""
Places = set[tuple[int, int]]
"""Encoder heads as (layer, head)."""


@dataclass(frozen=True)
class Evidence:
    """The results of one experiment and seed.

    heads: measures of the baseline's heads. runs: heads left and `scores` of the baseline and of the models with fewer
    heads; `scores_trained_on` of the same heads cut out of the baseline and fine-tuned, no longer than from scratch,
    and `scores_scratch` of the same heads from scratch (None if there are none); and `pair`, whether the two trainings
    are settled, see `heads.tables.curves`. model: a row for each head of each of these models. functions: a row for
    each live encoder head, none without roles. roles: `roles.tsv` on the first trees. gates: `heads.tsv` of gates.
    frames: everything that was read, unchanged.
    """

    heads: pd.DataFrame
    runs: pd.DataFrame
    model: pd.DataFrame
    functions: pd.DataFrame
    roles: pd.DataFrame
    gates: pd.DataFrame = field(default_factory=pd.DataFrame)
    frames: Frames = field(default_factory=dict)

    @cached_property
    def encoder(self) -> pd.DataFrame:
        """Measures of the baseline's encoder heads."""
        return self.heads[self.heads["attention"] == "enc_self"].reset_index(drop=True)

    @cached_property
    def baseline_functions(self) -> pd.DataFrame:
        """The encoder heads of the unpruned model with their measures and functions; no rows without roles."""
        functions = self.functions[self.functions["kind"] == "baseline"][["layer", "head", "function"]]
        return self.encoder.merge(functions, on=["layer", "head"])

    @cached_property
    def roles_with_cases(self) -> set[str]:
        """The roles with at least one case: a relation may never occur, or no subword be rare."""
        return set(self.roles[(self.roles["kind"] == "baseline") & (self.roles["cases"] > 0)]["role"])

    @cached_property
    def swept(self) -> pd.DataFrame:
        """Models pruned in all kinds of attention that lost some but not all of their heads."""
        runs = self.pruned("all")
        return runs[(runs["total"] > 0) & (runs["total"] < runs["of"])]

    def pruned(self, scope: str) -> pd.DataFrame:
        """Models pruned in a scope, without the control; see `pruned_by_gates`."""
        runs = self.runs
        return pruned_by_gates(runs[(runs["kind"] == "pruned") & (runs["scope"] == scope)])

    def with_role(self, role: str, model: Model = BASELINE) -> tuple[Places, Places]:
        """Encoder heads of a model that have a role, and those that have or may have it.

        A head may have the role if the interval of its excess over the threshold reaches zero. A rare-word head counts
        for no other role, as in the paper's Figure 8.
        """
        own = _of_model(self.functions, model)
        has = _places(own[own["function"].isin(FUNCTIONS[role])])
        rows = _of_model(self.roles, model)
        reach = rows[(rows["role"] == role) & (rows["excess_high"] >= -ROUNDING)]
        rare = set() if role == "rare" else _places(own[own["function"] == "rare"])
        return has, has | (_places(reach) - rare)


def _of_model(frame: pd.DataFrame, model: Model) -> pd.DataFrame:
    kind, scope, lam, keep = model
    same = (frame["kind"] == kind) & (frame["scope"] == scope)
    return frame[same & (frame["lam"] == lam) & (frame["keep"] == keep)]


def _places(rows: pd.DataFrame) -> Places:
    return {(int(layer), int(head)) for layer, head in rows[["layer", "head"]].itertuples(index=False)}


def gather(frames: Frames, measures: pd.DataFrame, experiment: str, seed: int) -> Evidence:
    """The evidence of one experiment and seed; measures: the table of `heads.tables.measures` of all of them."""

    def own(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["experiment"] == experiment) & (frame["seed"] == seed)]

    mine = {name: own(frame) for name, frame in frames.items()}
    with_heads = mine["model.json"]["kind"].isin(("baseline", "pruned", "pruned_from_scratch"))
    model, roles = mine["model.json"][with_heads], first_of(mine["roles.tsv"], "trees")
    functions = head_functions({"model.json": model, "roles.tsv": roles})
    keys = list(RUN_COLUMNS)
    scores = scores_of(mine[SCORED], mine["bleu_statistics.tsv"])
    # Pruned models and those from scratch are compared after the same number of updates.
    unlike = unlike_scratch(mine["model.json"])
    alike = [run not in unlike for run in scores[keys].itertuples(index=False, name=None)]
    scores = scores[np.array(alike, bool)]
    left = heads_left(model)
    runs = left.assign(share=kept_share(left)).merge(scores, on=keys)
    for kind, name in (("selected", "scores_trained_on"), ("scratch", "scores_scratch")):
        other = scores[scores["kind"] == kind].assign(kind="pruned").rename(columns={"scores": name})
        runs = runs.merge(other, on=keys, how="left")
        runs[name] = [row if isinstance(row, np.ndarray) else None for row in runs[name]]
    fell = falls(mine["train.jsonl"], mine["model.json"])
    fall = {run: percent for run, percent in fell.items() if run not in unlike}
    runs["pair"] = [pair_of(fall, run)[1] for run in runs[keys].itertuples(index=False, name=None)]
    functions = functions if len(roles) else functions[:0]
    return Evidence(own(measures), runs, model, functions, roles, mine["heads.tsv"], mine)


def scores_of(scored: pd.DataFrame, statistics: pd.DataFrame) -> pd.DataFrame:
    """The `scores` of every run: BLEU on all test sentences, then on each draw of them; see `Scores`."""
    both = scored[[*RUN_COLUMNS, "score"]].merge(statistics, on=list(RUN_COLUMNS))
    draws = (bleu_of(resampled_sums(counts.astype(np.float32), DRAWS)) for counts in both["statistics"])
    scores = [np.concatenate([[whole], drawn]) for whole, drawn in zip(both["score"], draws, strict=True)]
    return both[list(RUN_COLUMNS)].assign(scores=pd.Series(scores, index=both.index, dtype=object))


def of_draws(values: Scores, of: float = UNKNOWN) -> Finding:
    """A number computed on all sentences and on each draw [1+B], with its interval over the draws."""
    low, high = interval(values[1:]) if len(values) > 1 else (UNKNOWN, UNKNOWN)
    return Finding(float(values[0]), of, low=float(low), high=float(high))
