"""The table of ways to choose heads: BLEU at equal numbers of heads, without updates and after equally many."""

from __future__ import annotations

import pandas as pd

from heads.names import Run
from heads.tables.reading import Frames

COLUMNS = (
    "experiment",
    "seed",
    "target",
    "method",
    "draw",
    "kept",
    "of",
    "updates",
    "bleu",
    "bleu_baseline",
    "bleu_minus_baseline",
    "bleu_control",
    "bleu_minus_control",
    "p_value",
    "random_draws",
    "bleu_random_mean",
    "bleu_minus_random_mean",
    "above_all_draws",
)
GROUP = ["experiment", "seed", "kept", "updates"]
"""Whose draws of random heads a row is put beside."""

CONTROL = "lam-0"
NAMES = {"lam": "gates_lambda", "keep": "gates"}
"""Gates with a price, and with one that is driven to a number of heads; all other methods have their own word."""


def method_of(target: str) -> tuple[str, int | None]:
    """The method of a target and, for random heads, the number of the draw."""
    if target == CONTROL:
        return "control", None
    word = target.partition("-")[0]
    name = word.rstrip("0123456789")
    return NAMES.get(name, name), int(word.removeprefix(name)) if name == "random" else None


def selection_table(frames: Frames) -> pd.DataFrame:
    """A row for every choice and seed, as COLUMNS.

    frames: `masked.tsv` and `compared.tsv` of the baselines. The p-value is of a paired bootstrap against the unpruned
    model. The control trained on with gates that cost nothing, so only rows with updates are put beside it.
    `above_all_draws` is 1 where BLEU is above all random choices of as many heads after as many updates.
    """
    masked = frames["masked.tsv"].assign(updates=0)
    compared = frames["compared.tsv"]
    compared = compared.assign(target=[Run.parse(run).target for run in compared["run"]])
    shared = ["experiment", "seed", "target", "kept", "of", "updates", "bleu", "bleu_change", "p_value"]
    table = pd.concat([masked[shared], compared[shared]], ignore_index=True)
    named = [method_of(target) for target in table["target"]]
    table["method"] = [name for name, _ in named]
    table["draw"] = pd.Series([draw for _, draw in named], dtype=float)
    table = table.rename(columns={"bleu_change": "bleu_minus_baseline"})
    table["bleu_baseline"] = table["bleu"] - table["bleu_minus_baseline"]
    return with_random(with_control(table))[list(COLUMNS)]


def with_control(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the BLEU of the control of the same experiment, seed and number of updates, where there is one."""
    keys = ["experiment", "seed", "updates"]
    control = table[table["method"] == "control"][[*keys, "bleu"]].rename(columns={"bleu": "bleu_control"})
    merged = table.merge(control, on=keys, how="left")
    return merged.assign(bleu_minus_control=merged["bleu"] - merged["bleu_control"])


def with_random(table: pd.DataFrame) -> pd.DataFrame:
    """The table with what random choices of as many heads score; empty where there are none, and for themselves."""
    draws = table[table["method"] == "random"].groupby(GROUP)["bleu"].agg(["size", "mean", "max"]).reset_index()
    merged = table.merge(draws, on=GROUP, how="left")
    other = (merged["method"] != "random") & merged["size"].notna()
    above = (merged["bleu"] > merged["max"]).astype(float)
    return merged.assign(
        random_draws=merged["size"].where(other),
        bleu_random_mean=merged["mean"].where(other),
        bleu_minus_random_mean=(merged["bleu"] - merged["mean"]).where(other),
        above_all_draws=above.where(other),
    )
