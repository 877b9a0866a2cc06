"""Rank correlations between the measures of heads, over all heads and within layers, with permutation tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heads.base.names import ATTENTIONS
from heads.tables.measures import measure_names, measures_table
from heads.tables.reading import Frames

PERMUTATIONS = 1999
SIGNIFICANT = 0.05
FEWEST_HEADS = 3
COLUMNS = (
    *("experiment", "seed", "attention", "measure_a", "measure_b", "heads", "layers"),
    *("rho", "p_value", "rho_within_layers", "p_value_within_layers"),
)


def correlations_table(frames: Frames) -> pd.DataFrame:
    """Spearman's rank correlation of every two measures, for each kind of attention and for `all` of them.

    rho compares heads of all layers. rho_within_layers compares only heads of the same layer: relevance is shared out
    within a layer, so it cannot say which layer matters more, and a layer in which all heads are confident would count
    as disagreement. Under `all`, pairs that only one kind of attention has are not repeated, nor are the pairs of a
    model that has only one kind.
    """
    table = measures_table(frames)
    rows: list[dict[str, object]] = []
    for (experiment, seed), heads in table.groupby(["experiment", "seed"], sort=False):
        kinds = [kind for kind in ATTENTIONS if (heads["attention"] == kind).any()]
        for attention in (*kinds, *["all"] * (len(kinds) > 1)):
            chosen = heads if attention == "all" else heads[heads["attention"] == attention]
            run = {"experiment": experiment, "seed": seed, "attention": attention}
            rows += [{**run, **row} for row in correlate(chosen, measure_names(table))]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def correlate(heads: pd.DataFrame, names: Sequence[str]) -> list[dict[str, object]]:
    """A row for every two of the measures `names`, correlated over `heads`.

    heads: a row for each head with HEAD and the measures. Pairs with fewer than three heads in common are left out, and
    so are pairs on only one of several kinds of attention.
    """
    rows: list[dict[str, object]] = []
    kinds = heads["attention"].nunique()
    for a, b in combinations(names, 2):
        both = heads.dropna(subset=[a, b])
        if len(both) < FEWEST_HEADS or (kinds > 1 and both["attention"].nunique() == 1):
            continue
        layers = layer_numbers(both)
        row: dict[str, object] = {"measure_a": a, "measure_b": b, "heads": len(both), "layers": len(set(layers))}
        for place, blocks in (("", np.zeros(len(both), int)), ("_within_layers", layers)):
            row[f"rho{place}"], row[f"p_value{place}"] = rank_correlation(both[a], both[b], blocks)
        rows.append(row)
    return rows


def layer_numbers(heads: pd.DataFrame) -> NDArray[np.int_]:
    """A number for each head, shared by the heads of the same layer and kind of attention."""
    return np.asarray(heads.groupby(["attention", "layer"]).ngroup())


def rank_correlation(a: ArrayLike, b: ArrayLike, blocks: NDArray[np.int_]) -> tuple[float, float]:
    """Spearman's rho of `a` and `b` [heads], ranked within each of `blocks` [heads], and its two-sided p value.

    A single block gives the usual rho. With several, ranks are taken and centred in each block and pooled, as in a
    stratified test. p: how often shuffling `b` within its blocks gives a correlation at least as far from zero,
    including the observed order; heads of one model are not independent draws, so treat it as a guide. Both are NaN if
    a measure is constant in every block.
    """
    sort = np.argsort(blocks, kind="stable")
    x, y = (_centred_ranks(np.asarray(values, float)[sort], blocks[sort]) for values in (a, b))
    scale = np.sqrt((x @ x) * (y @ y))
    if scale == 0:
        return float("nan"), float("nan")
    shuffled = y[shuffles(tuple(int(block) for block in blocks[sort]))] @ x
    as_far = np.abs(shuffled) >= abs(x @ y) - 1e-9 * scale
    return float(x @ y / scale), float((1 + as_far.sum()) / (1 + PERMUTATIONS))


def rank_rho(a: ArrayLike, b: ArrayLike, blocks: NDArray[np.int_]) -> float:
    """The rho of `rank_correlation` without its p value, which takes most of the time."""
    x, y = (_centred_ranks(np.asarray(values, float), blocks) for values in (a, b))
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale else float("nan")


def _centred_ranks(values: NDArray[np.float64], blocks: NDArray[np.int_]) -> NDArray[np.float64]:
    ranks = pd.Series(values).groupby(blocks).rank()
    return np.asarray(ranks - ranks.groupby(blocks).transform("mean"))


@lru_cache(maxsize=16)
def shuffles(blocks: tuple[int, ...]) -> NDArray[np.intp]:
    """PERMUTATIONS fixed orders [permutations, heads] that shuffle within each of the sorted `blocks`."""
    keys = np.random.default_rng(1).random((PERMUTATIONS, len(blocks)))
    codes = np.unique(blocks, return_inverse=True)[1]
    return np.argsort(codes + keys, axis=1)
