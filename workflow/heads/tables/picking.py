"""Rows of runs: the control, models pruned by gates, the first rule or trees; their order, and their heads left."""

import pandas as pd

from heads.base.names import ATTENTIONS, GATED_SCOPES, SCOPES
from heads.base.targets import CONTROL, Target
from heads.tables.reading import RUN_COLUMNS


def is_control(runs: pd.DataFrame) -> pd.Series:
    """Whether each row of a frame with RUN_COLUMNS is of the control, which closes no head; see `Target.is_control`."""
    return runs["lam"] == CONTROL.columns[1]


def pruned_by_gates(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of models pruned by gates, with a column `target` that names their penalty or number of heads.

    runs: a frame with RUN_COLUMNS. The models are those with a fixed penalty, as in the papers, or if there are none
    those driven to a number of heads.
    """
    penalised = (runs["lam"] != "") & ~is_control(runs)
    chosen = runs[penalised] if penalised.any() else runs[(runs["keep"] != "") & (runs["method"] == "")]
    words = [f"λ {lam}" if lam else f"to {keep}" for lam, keep in zip(chosen["lam"], chosen["keep"], strict=True)]
    return chosen.assign(target=words)


def in_order(targets: pd.DataFrame) -> list[str]:
    """The distinct `target` values of `pruned_by_gates`: penalties rising, numbers of heads falling."""
    listed = targets.drop_duplicates("target")[["target", "lam", "keep"]].itertuples(index=False)
    places = {word: Target.of_penalty(lam) if lam else Target.of_choice("gates", keep) for word, lam, keep in listed}
    return sorted(places, key=places.__getitem__)


def first_of(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows with the first value of `column` in their run, such as its first rule or its first trees."""
    first = frame.groupby(list(RUN_COLUMNS), sort=False)[column].transform("first")
    return frame[frame[column] == first]


def run_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows sorted by experiment, scope, kind, target and seed, the baseline first."""
    scopes = ["", *GATED_SCOPES]
    targets = [Target.of_columns(*row) for row in frame[["method", "lam", "keep"]].itertuples(index=False, name=None)]
    keys = frame.assign(
        _scope=frame["scope"].map(scopes.index),
        _target=[target.order if target else () for target in targets],
    )
    order = keys.sort_values(["experiment", "_scope", "kind", "_target", "seed"], kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def original(attention: str) -> str:
    """The column of `heads_left` with the original number of heads of this kind."""
    return f"of_{attention}"


def heads_left(model: pd.DataFrame) -> pd.DataFrame:
    """The live heads of every run, a row for each, by kind of attention and in total, and the original numbers.

    Columns: RUN_COLUMNS, `ATTENTIONS`, `total`, `of`, `of` by kind (see `original`), `dev_loss`. model: the frame of
    `model.json`, a row for each original head.
    """
    groups = model.groupby(list(RUN_COLUMNS), sort=False)
    left = groups.agg(total=("live", "sum"), of=("live", "size"), dev_loss=("dev_loss", "first"))
    runs = [model[column] for column in RUN_COLUMNS]
    for attention in ATTENTIONS:
        own = model["attention"] == attention
        left[attention] = model["live"].where(own, 0).groupby(runs, sort=False).sum()
        left[original(attention)] = own.groupby(runs, sort=False).sum()
    return run_order(left.reset_index())


def kept_share(left: pd.DataFrame) -> pd.Series:
    """The share of heads left in each run's pruning scope; the baseline counts as scope `all`."""
    in_scope = pd.DataFrame(
        {attention: [attention in SCOPES[scope or "all"] for scope in left["scope"]] for attention in ATTENTIONS},
        index=left.index,
    )
    kept = (left[list(ATTENTIONS)] * in_scope).sum(axis=1)
    return kept / (left[[*map(original, ATTENTIONS)]].set_axis(list(ATTENTIONS), axis=1) * in_scope).sum(axis=1)
