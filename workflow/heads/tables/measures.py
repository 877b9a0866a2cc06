"""All measures of the unpruned model's heads (Voita et al., secs 4 to 6), and their rank correlations."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heads.base.names import ATTENTIONS, HALVES, HEAD, SCOPES
from heads.tables.head_measures import FILES, GATES, LABELS, MEASURED_COLUMNS
from heads.tables.labels import SHARES, column_pattern, is_shown, relevance_columns
from heads.tables.picking import first_of, pruned_by_gates
from heads.tables.reading import Frames

KEYS = ("experiment", "seed", *HEAD)

PERMUTATIONS = 1999
CORRELATIONS_COLUMNS = (
    *("experiment", "seed", "attention", "measure_a", "measure_b", "heads", "layers"),
    *("rho", "p_value", "rho_within_layers", "p_value_within_layers"),
)


def measures_table(frames: Frames) -> pd.DataFrame:
    """A row for each head of each baseline: KEYS, then a column for each measure, empty if it does not apply.

    `metric` is the metric of `score_lost`.
    """
    metric = _heads(frames["ablation.tsv"], {"metric": "metric"})
    joined = pd.concat([metric, *(_columns_of(file, frames) for file in FILES)], axis=1).reset_index()
    place = joined["attention"].map(ATTENTIONS.index)
    order = joined.assign(attention=place).sort_values([*KEYS], kind="stable").index
    return joined.loc[order].reset_index(drop=True)


def measure_names(table: pd.DataFrame) -> list[str]:
    """The columns of a table of measures to be correlated with each other; of relevance only the shown readings."""
    shown = {column for reading, column in relevance_columns(table).items() if is_shown(reading)}
    return [name for name in table.columns if name in LABELS or name in shown]


def _heads(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """The baseline's rows by KEYS, with `columns` renamed."""
    chosen = frame[frame["kind"] == "baseline"].set_index(list(KEYS))
    return chosen[list(columns)].rename(columns=dict(columns))


def _spread(frame: pd.DataFrame, by: str, columns: Mapping[str, str]) -> pd.DataFrame:
    """As `_heads`, for files with several rows for each head, distinguished by `by`; new names have a gap for it."""
    parts = [
        _heads(frame[frame[by] == name], {column: pattern.format(name) for column, pattern in columns.items()})
        for name in frame[by].unique()
    ]
    return pd.concat(parts, axis=1) if parts else _heads(frame, {})


def _role_accuracies(frames: Frames) -> pd.DataFrame:
    """Each head's best accuracy as a positional and as a rare-word head, and its largest gain as a syntactic one.

    In models with biases of distances, also its best accuracy as a positional head by halves.
    """
    roles = first_of(frames["roles.tsv"], "trees")
    roles = roles[roles["kind"] == "baseline"].assign(attention="enc_self")
    value = roles["accuracy"] - roles["baseline"].where(roles["role"] == "syntactic", 0)
    names = {"positional": "positional_accuracy", "positional_words": "positional_words_accuracy"}
    names |= {"syntactic": "syntactic_gain", "rare": "rare_accuracy"}
    best = roles.assign(value=value).groupby([*KEYS, "role"])["value"].max().unstack()
    halves = {half: f"positional_{half}" for half in HALVES[:2]}
    alone = roles[roles["role"] == "positional"].groupby(list(KEYS))[list(halves)].max().dropna(axis=1, how="all")
    return best.reindex(columns=list(names)).rename(columns=names).join(alone.rename(columns=halves))


def gate_survival(frames: Frames) -> pd.DataFrame:
    """By scope, the share of prunings (`pruned_by_gates`) that leave a head's gate open, and the hardest of them.

    The hardest has the largest lambda, 0 if there is none, or in an experiment without lambdas the fewest heads, all
    heads if there is none. The latter column exists only if there is such an experiment.
    """
    gates = frames["heads.tsv"]
    gates = gates[gates["kind"] == "gates"]
    chosen = [gates[:0].assign(target=""), *(pruned_by_gates(own) for _, own in gates.groupby(["experiment", "scope"]))]
    rows = pd.concat(chosen)
    one_run = rows.groupby(["experiment", "seed", "scope", "target"])["open"]
    rows = rows.assign(
        last=pd.to_numeric(rows["lam"]) * rows["open"],
        left=one_run.transform("sum").where(rows["open"] == 1, one_run.transform("size")).where(rows["lam"] == ""),
    )
    parts = []
    for scope in SCOPES:
        heads = rows[rows["scope"] == scope].groupby(list(KEYS))
        parts.append(heads["open"].mean().rename(f"gate_survival_{scope}"))
        parts.append(heads["last"].max().rename(f"gate_last_lambda_{scope}"))
        fewest = heads["left"].min().rename(f"gate_fewest_heads_{scope}")
        parts += [fewest] if fewest.notna().any() else []
    return pd.concat(parts, axis=1)


SOURCES: dict[str, Callable[[Frames], pd.DataFrame]] = {
    "lrp.tsv": lambda frames: _spread(frames["lrp.tsv"], "rule", {share: column_pattern(share) for share in SHARES}),
    "importance.tsv": lambda frames: _spread(
        frames["importance.tsv"], "form", {"importance_normalised": "importance_{}"}
    ),
    "ablation.tsv": lambda frames: -_heads(frames["ablation.tsv"], {"score_change": "score_lost"}),
    "roles.tsv": _role_accuracies,
    GATES: gate_survival,
}
"""By file: what makes measures of it that are not its columns; a frame with the index KEYS and a column for each."""


def _columns_of(file: str, frames: Frames) -> pd.DataFrame:
    """The measures that are read from a file, none if no run has it."""
    if file in SOURCES:
        return SOURCES[file](frames)
    return _heads(frames[file], MEASURED_COLUMNS[file] if len(frames[file]) else {})


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
    return pd.DataFrame(rows, columns=list(CORRELATIONS_COLUMNS))


def correlate(heads: pd.DataFrame, names: Sequence[str]) -> list[dict[str, object]]:
    """A row for every two of the measures `names`, correlated over `heads`.

    heads: a row for each head with HEAD and the measures. Pairs with fewer than three heads in common are left out, and
    so are pairs on only one of several kinds of attention.
    """
    rows: list[dict[str, object]] = []
    kinds, layer_of = heads["attention"].to_numpy(), layer_numbers(heads)
    values = {name: heads[name].to_numpy(float) for name in names}
    for a, b in combinations(names, 2):
        both = np.flatnonzero(~np.isnan(values[a]) & ~np.isnan(values[b]))
        if len(both) < 3 or len({*kinds}) > 1 == len({*kinds[both]}):
            continue
        layers = np.unique(layer_of[both], return_inverse=True)[1]
        row: dict[str, object] = {"measure_a": a, "measure_b": b, "heads": len(both), "layers": len({*layers})}
        for place, blocks in (("", np.zeros(len(both), int)), ("_within_layers", layers)):
            row[f"rho{place}"], row[f"p_value{place}"] = rank_correlation(values[a][both], values[b][both], blocks)
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
    """Ranks within each block, shared by equal values, less the block's mean rank; NaN has none."""
    same = blocks[:, None] == blocks
    above = (values[:, None] > values) & same
    ranks = (above.sum(1) - above.sum(0)) / 2
    return np.where(np.isnan(values), np.nan, ranks)


@lru_cache(maxsize=16)
def shuffles(blocks: tuple[int, ...]) -> NDArray[np.intp]:
    """PERMUTATIONS fixed orders [permutations, heads] that shuffle within each of the sorted `blocks`."""
    keys = np.random.default_rng(1).random((PERMUTATIONS, len(blocks)))
    codes = np.unique(blocks, return_inverse=True)[1]
    return np.argsort(codes + keys, axis=1)
