"""The table of speed: examples per second of pruned models, beside Michel et al., Table 4."""

from __future__ import annotations

import pandas as pd

from heads.base.runs import Run
from heads.tables.pruning import run_order
from heads.tables.reading import RUN_COLUMNS, Frames

COLUMNS = (
    *(*RUN_COLUMNS, "device", "batch_sentences", "heads", "of", "examples_per_second", "examples_per_second_sd"),
    *("faster_percent", "faster_percent_low", "faster_percent_high", "repeats", "sentences", "subwords_per_example"),
    *("parameters", "disk_mb", "peak_memory_mb", "paper_model", "paper_examples_per_second"),
    *("paper_examples_per_second_spread", "paper_faster_percent", "paper_tag"),
)


def speed_table(frames: Frames, table4: pd.DataFrame) -> pd.DataFrame:
    """A row for every device, timed model and batch size, with the paper's row of that batch size if it has one.

    An experiment's rows are grouped by device, CPUs before GPUs; gains are relative to the unpruned model there.

    The paper's pruned model has half of its heads, whatever ours has, and classifies instead of translating, so only
    the change of the gain with the batch size can be compared. frames: `speed.tsv` of baseline runs, which names the
    models that were timed with it.
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
    return rows.loc[order, list(COLUMNS)].reset_index(drop=True)
