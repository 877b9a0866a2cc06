"""The table of ways to choose heads: scores at equal numbers of heads, masked or after equally many updates."""

import numpy as np
import pandas as pd

from heads.base.methods import DRAWN, LIKE, RANDOM, STRATIFIED
from heads.base.runs import Run
from heads.base.targets import BY_GATES, PENALTY, Target
from heads.tables.reading import Frames
from heads.tables.verdicts import t_quantile

SELECTION_COLUMNS = (
    *("experiment", "seed", "target", "method", "draw", "treatment", "kept", "of", "updates", "metric"),
    *("score", "score_baseline", "score_minus_baseline", "score_control", "score_minus_control", "p_value"),
    *("random_draws", "draws_below", "score_random_mean"),
    *("score_minus_random_mean", "score_minus_random_low", "score_minus_random_high"),
    *("stratified_draws", "stratified_draws_below", "score_stratified_mean"),
    *("score_minus_stratified_mean", "score_minus_stratified_low", "score_minus_stratified_high"),
)
GROUP = ["experiment", "seed", "kept", "treatment", "updates"]
"""Columns that a row has in common with the random draws that it is compared with."""

MASKED, TRAINED_ON, OWN_TRAINING = "masked", "trained on", "own training"
TREATMENTS = {"selected": TRAINED_ON, "pruned": OWN_TRAINING}
"""By kind of run: heads cut out of the unpruned model and fine-tuned; or heads left by gates at the end of their own
training, in which the model had noisy gates and, until the last ones closed, more heads."""

NAMES = {PENALTY: "gates_lambda"} | {word: method for method, word in BY_GATES.items()}
"""Names of gates with a fixed penalty, of gates driven to a number of heads, and of other gates; measures keep their
own name."""


def method_of(target: Target) -> str:
    """The name of a target's method in the table."""
    return "control" if target.is_control else NAMES.get(target.method, target.method)


def selection_table(frames: Frames) -> pd.DataFrame:
    """A row with SELECTION_COLUMNS for every choice of heads and seed.

    The p-value is from permutations against the unpruned model. Each row is compared with the control and the random
    choices of the same treatment and number of updates; stratified choices have as many heads of each kind of attention
    as LIKE and are compared with it alone.
    """
    masked = frames["masked.tsv"].assign(updates=0, treatment=MASKED)
    compared = frames["compared.tsv"]
    runs = [Run.parse(run) for run in compared["run"]]
    compared = compared.assign(
        target=[str(run.target) for run in runs], treatment=[TREATMENTS[run.kind] for run in runs]
    )
    shared = ["experiment", "seed", "target", "treatment", "kept", "of", "updates", "metric", "score"]
    shared += ["score_change", "p_value"]
    table = pd.concat([masked[shared], compared[shared]], ignore_index=True)
    targets = [Target.parse(text) for text in table["target"]]
    table["method"] = [method_of(target) for target in targets]
    table["draw"] = pd.Series([target.draw for target in targets], dtype=float)
    table = table.rename(columns={"score_change": "score_minus_baseline"})
    table["score_baseline"] = table["score"] - table["score_minus_baseline"]
    table = with_draws(with_control(table), RANDOM, ~table["method"].isin(DRAWN))
    table = with_draws(table, STRATIFIED, table["method"] == LIKE)
    return table.rename(columns={"random_draws_below": "draws_below"})[list(SELECTION_COLUMNS)]


def with_control(table: pd.DataFrame) -> pd.DataFrame:
    """Add the score of the control of the same experiment, seed, treatment and updates, if there is one."""
    keys = ["experiment", "seed", "treatment", "updates"]
    control = table[table["method"] == "control"][[*keys, "score"]].rename(columns={"score": "score_control"})
    merged = table.merge(control, on=keys, how="left")
    return merged.assign(score_minus_control=merged["score"] - merged["score_control"])


def with_draws(table: pd.DataFrame, drawn: str, compared: pd.Series) -> pd.DataFrame:
    """Add the scores of as many heads drawn by one method of DRAWN; empty where there are none.

    compared: the rows that draws are compared with; the others stay empty. `draws_below` is the number of draws that a
    row exceeds. The interval is of the difference from one more draw, by Student's t over the existing ones: a row is
    itself one choice and one training, so exceeding the mean is not enough. Test sentences are not treated as random.
    """
    found = table[table["method"] == drawn].groupby(GROUP)["score"]
    draws = found.agg(["size", "mean", "std"]).assign(scores=found.apply(list)).reset_index()
    merged = table[GROUP].merge(draws, on=GROUP, how="left")
    other = compared & merged["size"].notna()
    below = [
        sum(draw < score for draw in scores) if beside else None
        for score, scores, beside in zip(table["score"], merged["scores"], other, strict=True)
    ]
    gain = (table["score"] - merged["mean"]).where(other)
    quantiles = {size: t_quantile(int(size)) for size in draws["size"].unique()}
    margin = merged["std"] * np.sqrt(1 + 1 / merged["size"]) * merged["size"].map(quantiles)
    return table.assign(**{
        f"{drawn}_draws": merged["size"].where(other),
        f"{drawn}_draws_below": pd.Series(below, index=merged.index, dtype=float),
        f"score_{drawn}_mean": merged["mean"].where(other),
        f"score_minus_{drawn}_mean": gain,
        f"score_minus_{drawn}_low": gain - margin,
        f"score_minus_{drawn}_high": gain + margin,
    })  # fmt: skip
