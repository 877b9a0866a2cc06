"""Michel et al. 2019: single heads masked (Table 1), layers cut to one head (Tables 2 and 5), heads masked in steps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heads.tables.reading import Frames

SIGNIFICANT = 0.01
"""The paper's level, of one head or layer at a time."""

LEAST_BLEU = 1.0
"""A share of less is the share of nothing."""

PAPER = "paper, "
"""How the names begin that stand for an experiment in rows of the paper."""

HEADS_COLUMNS = (
    *("experiment", "seed", "attention", "layer", "head"),
    *("bleu", "bleu_change", "p_value", "significant"),
    *("bleu_change_dev", "p_value_dev", "significant_dev", "tag"),
)
LAYERS_COLUMNS = (
    *("experiment", "seed", "attention", "layer", "heads"),
    *("head_oracle", "bleu_change_oracle", "p_value_oracle", "significant_oracle"),
    *("head_chosen", "bleu_change", "p_value", "significant"),
    *("paper_layer", "paper_bleu_change_oracle", "paper_significant_oracle"),
    *("paper_bleu_change", "paper_significant", "paper_tag"),
)
CURVE_COLUMNS = (
    *("experiment", "seed", "order", "attention", "masked", "of", "masked_percent"),
    *("bleu", "bleu_change", "bleu_change_low", "bleu_change_high"),
    *("kept_percent", "kept_percent_low", "kept_percent_high"),
    *("bleu_behind", "bleu_behind_low", "bleu_behind_high"),
)
MOMENTS_COLUMNS = (
    *("experiment", "seed", "update", "epoch", "finished", "masked", "of", "masked_percent"),
    *("bleu", "bleu_change", "bleu_change_low", "bleu_change_high"),
    *("kept_percent", "kept_percent_low", "kept_percent_high"),
    *("paper_epoch", "paper_bleu", "paper_kept_percent_low", "paper_kept_percent_high", "paper_tag"),
)
HEAD = ("experiment", "seed", "attention", "layer", "head")


def heads_table(frames: Frames, table1: pd.DataFrame) -> pd.DataFrame:
    """A row for every head masked alone, on test and on dev, and after them every head of the paper's Table 1."""
    keys = list(HEAD)
    dev = frames["ablation.dev.tsv"].set_index(keys)[["bleu_change", "p_value"]].add_suffix("_dev")
    ours = frames["ablation.tsv"].join(dev, on=keys)
    ours = ours.assign(
        significant=_significant(ours["p_value"]), significant_dev=_significant(ours["p_value_dev"]), tag=""
    )
    paper = table1.assign(experiment=PAPER + table1["model"] + " " + table1["pair"])
    return pd.concat([frame.reindex(columns=list(HEADS_COLUMNS)) for frame in (ours, paper)], ignore_index=True)


def layers_table(frames: Frames, tables2_5: pd.DataFrame) -> pd.DataFrame:
    """A row for every layer cut to one head: the best on test (oracle, Table 2) and the best on dev (Table 5).

    Beside it the paper's layer at the same depth, where the first layer is 0 and the last one is 1.
    """
    ours = frames["layers_to_one.tsv"]
    last = ours.groupby("experiment")["layer"].transform("max")
    depth = (ours["layer"] / last.where(last > 0, 1)) * (tables2_5["layers"] - 1).max()
    # Halves go to the later layer; rounding to even would leave gaps.
    ours = ours.assign(
        paper_layer=(depth + 0.5).astype(int),
        significant=_significant(ours["p_value"]),
        significant_oracle=_significant(ours["p_value_oracle"]),
    )
    paper = tables2_5.drop(columns=["model", "pair", "layers"]).set_index(["attention", "layer"]).add_prefix("paper_")
    joined = ours.join(paper, on=["attention", "paper_layer"])
    return joined[list(LAYERS_COLUMNS)].reset_index(drop=True)


def curve_table(frames: Frames) -> pd.DataFrame:
    """A row for every order and number of masked heads: BLEU, its change and the share of it that is kept."""
    walks = with_unmasked(frames["masking_curve.tsv"], ["experiment", "seed", "order", "attention"])
    return walks[list(CURVE_COLUMNS)].reset_index(drop=True)


def checkpoints_table(frames: Frames, figure5: pd.DataFrame) -> pd.DataFrame:
    """A row for every checkpoint of training and number of masked heads, beside the paper's epoch nearest by ratio.

    `paper_bleu` stands beside the model with all heads; the share that the paper keeps beside the step nearest to its
    number of masked heads.
    """
    checkpoint = ["experiment", "seed", "finished", "update"]
    ours = with_unmasked(frames["checkpoints.tsv"], checkpoint)
    ours = ours.assign(paper_epoch=[_nearest_epoch(epoch, figure5["epoch"]) for epoch in ours["epoch"]])
    paper = figure5.drop(columns=["model", "pair"]).set_index("epoch").add_prefix("paper_")
    joined = ours.join(paper, on="paper_epoch")
    far = (joined["masked_percent"] - joined["paper_masked_percent"]).abs()
    beside = far == far.groupby([joined[key] for key in checkpoint]).transform("min")
    for column in ("paper_kept_percent_low", "paper_kept_percent_high"):
        joined[column] = joined[column].where(beside)
    joined["paper_bleu"] = joined["paper_bleu"].where(joined["masked"] == 0)
    return joined[list(MOMENTS_COLUMNS)].reset_index(drop=True)


def _nearest_epoch(epoch: float, of: pd.Series) -> int:
    """That epoch of the paper which is the fewest times more or less; its first for a model that was not trained."""
    return int(of[(np.log(of) - np.log(max(epoch, 1e-9))).abs().idxmin()])


def with_unmasked(walks: pd.DataFrame, walk: list[str]) -> pd.DataFrame:
    """Rows of walks with BLEU set against that of the same walk before anything is masked; `walk` tells walks apart.

    Adds `unmasked`, `masked_percent`, `bleu_change` and `kept_percent` with the ends of its interval, which are empty
    where there was nothing to keep.
    """
    unmasked = walks.groupby(walk, sort=False)["bleu"].transform("first")
    return walks.assign(
        unmasked=unmasked,
        masked_percent=100 * walks["share"],
        bleu_change=walks["bleu"] - unmasked,
        kept_percent=100 * walks["bleu"] / unmasked.where(unmasked > 0),
        kept_percent_low=100 * walks["bleu_kept_low"].astype(float),
        kept_percent_high=100 * walks["bleu_kept_high"].astype(float),
    )


def _significant(p_values: pd.Series) -> pd.Series:
    return (p_values < SIGNIFICANT).astype(int)
