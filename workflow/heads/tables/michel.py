"""Michel et al. 2019: single heads masked (Table 1), layers cut to one head (2 and 5), masking in steps, speed (4)."""

import numpy as np
import pandas as pd

from heads.base.bootstrap import MICHEL_SIGNIFICANT
from heads.base.names import BLEU, HEAD
from heads.base.runs import Run
from heads.tables.picking import run_order
from heads.tables.reading import MATTHEWS, RUN_COLUMNS, Frames

LEAST = 1.0
"""The smallest score of which a share is meaningful."""

PAPER = "paper, "
"""The prefix of experiment names in rows of the paper."""

HEADS_COLUMNS = (
    *("experiment", "seed", *HEAD, "metric"),
    *("score", "score_change", "p_value", "significant"),
    *("score_change_dev", "p_value_dev", "significant_dev", *MATTHEWS, "matthews_significant", "tag"),
)
LAYERS_COLUMNS = (
    *("experiment", "seed", "attention", "layer", "heads", "metric"),
    *("head_oracle", "score_change_oracle", "p_value_oracle", "significant_oracle"),
    *("head_chosen", "score_change", "p_value", "significant"),
    *("paper_layer", "paper_score_change_oracle", "paper_significant_oracle"),
    *("paper_score_change", "paper_significant", "paper_tag"),
)
CURVE_COLUMNS = (
    *("experiment", "seed", "order", "attention", "masked", "of", "masked_percent", "metric"),
    *("score", "score_change", "score_change_low", "score_change_high"),
    *("kept_percent", "kept_percent_low", "kept_percent_high"),
    *("score_behind", "score_behind_low", "score_behind_high"),
)
MOMENTS_COLUMNS = (
    *("experiment", "seed", "update", "epoch", "finished", "masked", "of", "masked_percent", "metric"),
    *("score", "score_change", "score_change_low", "score_change_high"),
    *("kept_percent", "kept_percent_low", "kept_percent_high"),
    *("paper_epoch", "paper_score", "paper_kept_percent_low", "paper_kept_percent_high", "paper_tag"),
)
SPEED_TABLE_COLUMNS = (
    *(*RUN_COLUMNS, "device", "batch_sentences", "heads", "of", "examples_per_second", "examples_per_second_sd"),
    *("faster_percent", "faster_percent_low", "faster_percent_high", "repeats", "sentences", "subwords_per_example"),
    *("parameters", "disk_mb", "peak_memory_mb", "paper_model", "paper_examples_per_second"),
    *("paper_examples_per_second_spread", "paper_faster_percent", "paper_tag"),
)


def heads_table(frames: Frames, table1: pd.DataFrame) -> pd.DataFrame:
    """A row for every head masked alone, on test and on dev, followed by every head of the paper's Table 1."""
    keys = ["experiment", "seed", *HEAD]
    dev = frames["ablation.dev.tsv"].set_index(keys)[["score_change", "p_value"]].add_suffix("_dev")
    ours = frames["ablation.tsv"].join(dev, on=keys)
    ours = ours.assign(
        significant=_significant(ours["p_value"]),
        significant_dev=_significant(ours["p_value_dev"]),
        matthews_significant=_significant(ours["matthews_p_value"]).where(ours["matthews"].notna()),
        tag="",
    )
    paper = table1[table1["metric"].isin(ours["metric"])]
    paper = paper.assign(experiment=PAPER + paper["model"] + " " + paper["pair"])
    return pd.concat([frame.reindex(columns=list(HEADS_COLUMNS)) for frame in (ours, paper)], ignore_index=True)


def layers_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row for every layer cut to one head: the best on test (oracle, Tables 2 and 3) and on dev (Tables 5 and 6).

    Beside it is the paper's layer at the same relative depth, from 0 for the first layer to 1 for the last one, of its
    model with the same metric.
    """
    ours = frames["layers_to_one.tsv"]
    last = ours.groupby("experiment")["layer"].transform("max")
    paper = pd.concat(papers, ignore_index=True)
    deepest = ours["metric"].map(paper.groupby("metric")["layers"].max() - 1)
    depth = (ours["layer"] / last.where(last > 0, 1)) * deepest
    # Halves are rounded up to the later layer; rounding to even would leave gaps.
    ours = ours.assign(
        paper_layer=(depth + 0.5).astype(int),
        significant=_significant(ours["p_value"]),
        significant_oracle=_significant(ours["p_value_oracle"]),
    )
    keys = ["metric", "attention", "layer"]
    paper = paper.drop(columns=["model", "pair", "layers"]).set_index(keys).add_prefix("paper_")
    joined = ours.join(paper, on=["metric", "attention", "paper_layer"])
    return joined[list(LAYERS_COLUMNS)].reset_index(drop=True)


def curve_table(frames: Frames) -> pd.DataFrame:
    """A row for every order and number of masked heads: the score, its change and the share of it that is kept."""
    walks = with_unmasked(frames["masking_curve.tsv"], ["experiment", "seed", "order", "attention"])
    return walks[list(CURVE_COLUMNS)].reset_index(drop=True)


def checkpoints_table(frames: Frames, figure5: pd.DataFrame) -> pd.DataFrame:
    """A row for every checkpoint and number of masked heads, beside the paper's epoch that is nearest by ratio.

    `paper_score` is beside the model with all heads; the share that the paper keeps is beside the step nearest to its
    number of masked heads. The paper has these numbers for BLEU only.
    """
    checkpoint = ["experiment", "seed", "finished", "update"]
    ours = with_unmasked(frames["checkpoints.tsv"], checkpoint)
    nearest = pd.Series([_nearest_epoch(epoch, figure5["epoch"]) for epoch in ours["epoch"]], ours.index, dtype=float)
    ours = ours.assign(paper_epoch=nearest.where(ours["metric"] == BLEU))
    paper = figure5.drop(columns=["model", "pair", "metric"]).set_index("epoch").add_prefix("paper_")
    joined = ours.join(paper, on="paper_epoch")
    far = (joined["masked_percent"] - joined["paper_masked_percent"]).abs()
    beside = far == far.groupby([joined[key] for key in checkpoint]).transform("min")
    for column in ("paper_kept_percent_low", "paper_kept_percent_high"):
        joined[column] = joined[column].where(beside)
    joined["paper_score"] = joined["paper_score"].where(joined["masked"] == 0)
    return joined[list(MOMENTS_COLUMNS)].reset_index(drop=True)


def _nearest_epoch(epoch: float, of: pd.Series) -> int:
    """The paper's epoch nearest to `epoch` by ratio; its first one for an untrained model."""
    return int(of[(np.log(of) - np.log(max(epoch, 1e-9))).abs().idxmin()])


def with_unmasked(walks: pd.DataFrame, walk: list[str]) -> pd.DataFrame:
    """Compare the scores of masking walks with the unmasked score of each; the columns `walk` identify a walk.

    Adds `unmasked`, `masked_percent`, `score_change`, and `kept_percent` with the ends of its interval, which are empty
    if there was nothing to keep.
    """
    unmasked = walks.groupby(walk, sort=False)["score"].transform("first")
    return walks.assign(
        unmasked=unmasked,
        masked_percent=100 * walks["share"],
        score_change=walks["score"] - unmasked,
        kept_percent=100 * walks["score"] / unmasked.where(unmasked > 0),
        kept_percent_low=100 * walks["score_kept_low"].astype(float),
        kept_percent_high=100 * walks["score_kept_high"].astype(float),
    )


def _significant(p_values: pd.Series) -> pd.Series:
    return (p_values < MICHEL_SIGNIFICANT).astype(int)


def speed_table(frames: Frames, table4: pd.DataFrame) -> pd.DataFrame:
    """A row for every device, timed model and batch size, with the paper's row of that batch size if it has one.

    An experiment's rows are grouped by device, CPUs before GPUs; gains are relative to the unpruned model there. The
    paper's pruned model has half of its heads, whatever ours has, and classifies instead of translating, so only the
    change of the gain with the batch size can be compared.
    """
    timed = frames["speed.tsv"]
    runs = [Run.parse(name) for name in timed["run"]]
    ours = timed.assign(
        **{column: [run.columns[column] for run in runs] for column in RUN_COLUMNS[1:]},
        faster_percent=100 * (timed["ratio"] - 1),
        faster_percent_low=100 * (timed["ratio_low"] - 1),
        faster_percent_high=100 * (timed["ratio_high"] - 1),
        _unpruned=[run.kind == "baseline" for run in runs],
    )
    paper = pd.DataFrame(
        {
            "batch_sentences": table4["batch_sentences"],
            "_unpruned": table4["model"] == "unpruned",
            "paper_model": table4["task"] + ", " + table4["hardware"] + ", " + table4["model"],
            "paper_examples_per_second": table4["examples_per_second"],
            "paper_examples_per_second_spread": table4["spread"],
            "paper_faster_percent": table4["gain_percent"],
            "paper_tag": table4["tag"],
        }
    )
    rows = run_order(ours.merge(paper, how="left", on=["batch_sentences", "_unpruned"]))
    keys = rows.assign(_gpu=~rows["device"].str.startswith("CPU"))
    order = keys.sort_values(["experiment", "_gpu", "device"], kind="stable").index
    return rows.loc[order, list(SPEED_TABLE_COLUMNS)].reset_index(drop=True)
