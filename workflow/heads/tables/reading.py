"""Read run folders into data frames: one for each kind of file, with the run of each record in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heads.base.files import UserError, read_json, read_jsonl, read_tsv
from heads.base.names import BLEU, METRICS, ONLY_OF, REFERENCES, SCORES, TASK_OF, TRANSLATION, WMT
from heads.base.runs import Run, run_of
from heads.model.shape import shape_of
from heads.tables.needs import Need
from heads.translation.bleu import COLUMNS as STATISTICS

REFERENCE = Path(__file__).parent / "reference"

RUN_COLUMNS = ("experiment", "kind", "scope", "method", "lam", "keep", "seed")
"""The columns that identify a run; `scope`, `method`, `lam` and `keep` may be "", so that runs can be grouped."""

TEXT = {
    "experiment",
    "kind",
    "scope",
    "method",
    "lam",
    "keep",
    "attention",
    "rule",
    "trees",
    "role",
    "name",
    "relation",
    "signature",
    "against",
    "metric",
}
TEXT |= {"linked_by", "step", "run", "device", "form", "order", "target", "effect"}
OBJECTS = {"maps", "statistics"}

Record = dict[str, Any]
Frames = dict[str, pd.DataFrame]
"""Data frames by the name of the file they were read from, such as `heads.tsv`; scores of all metrics are in SCORED."""
SCORED = "score"


def _score(path: Path) -> Iterator[Record]:
    content, metric = read_json(path), path.stem
    # Older scores have neither chrF nor a copied source, and do not say what they are measured against.
    known = dict.fromkeys(COLUMNS[SCORED]) | {"metric": metric, "against": REFERENCES, "signature": ""}
    size = content["sentences" if metric == BLEU else "examples"]
    yield known | {
        "score": content[metric],
        "sentences": size,
        **{key: content[key] for key in known if key in content},
    }


def _scored(path: Path) -> Iterator[Record]:
    # Columns in files are named after the metric, and accuracy comes with Matthews' correlation.
    for row in read_tsv(path):
        metric = next(name for name in METRICS if name in row)
        named = {name.replace(metric, "score"): value for name, value in row.items()}
        yield {"metric": metric, **dict.fromkeys(MATTHEWS), **named}


def _model(path: Path) -> Iterator[Record]:
    content = read_json(path)
    shape = shape_of(path.parent)
    live = {*shape.heads()}
    for attention, layer, head in shape.all_heads():
        yield {
            "attention": attention,
            "layer": layer,
            "head": head,
            "live": int((attention, layer, head) in live),
            "dev_loss": content["dev_loss"],
            "total_updates": content["total_updates"],
            # Older files do not say; no model with attention biases was trained here from scratch.
            "pretrained": int(content.get("pretrained", shape.attention_biases)),
            "grown": int(content.get("grown", False)),
        }


def _rows(path: Path) -> Iterator[Record]:
    yield from read_tsv(path)


def _curve(path: Path) -> Iterator[Record]:
    # Not all trainings score the dev set on the way, and the name of the score depends on the task.
    for line in read_jsonl(path):
        yield {"dev_bleu": None, "dev_accuracy": None, **line}


def _gates(path: Path) -> Iterator[Record]:
    for line in read_jsonl(path):
        for attention, layers in line["p_open"].items():
            for layer, row in enumerate(layers):
                for head, p_open in enumerate(row):
                    yield {
                        "update": line["update"],
                        "attention": attention,
                        "layer": layer,
                        "head": head,
                        "p_open": p_open,
                    }


def _maps(path: Path) -> Iterator[Record]:
    # One record for all sentences, as in the file.
    yield {"maps": read_json(path)}


def _statistics(path: Path) -> Iterator[Record]:
    # One record for all sentences: there are thousands in each of a hundred runs.
    yield {"statistics": np.array([[int(row[name]) for name in STATISTICS] for row in read_tsv(path)])}


MATTHEWS = ("matthews", "matthews_change", "matthews_p_value")
COLUMNS: dict[str, tuple[str, ...]] = {
    SCORED: (*("metric", "score", "against", "chrf", "matthews", "majority", "sentences", "signature", "copied_bleu"),),
    "bleu_statistics.tsv": ("statistics",),
    "model.json": ("attention", "layer", "head", "live", "dev_loss", "total_updates", "pretrained", "grown"),
    "train.jsonl": ("update", "dev_loss", "dev_bleu"),
    "heads.tsv": ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between"),
    "confidence.tsv": ("attention", "layer", "head", "confidence"),
    "lrp.tsv": ("rule", "attention", "layer", "head", "relevance", "relevance_of_sums", "relevance_absolute"),
    "roles.tsv": (
        *("trees", "layer", "head", "role", "name"),
        *("accuracy", "low", "high", "baseline", "excess_low", "excess_high", "cases", "reaches", "holds"),
    ),
    "dynamics.tsv": (
        *("update", "finished", "layer", "head", "role", "name"),
        *("accuracy", "low", "high", "baseline"),
    ),
    "positions.tsv": ("trees", "relation", "position", "arcs"),
    "alignment.tsv": ("trees", "sentences", "measured", "tree_words", "aligned_words"),
    "alignment_heads.tsv": (
        *("step", "layer", "head", "aer", "aer_low", "aer_high", "precision", "recall"),
        *("offset", "offset_aer", "gain", "gain_low", "gain_high", "links", "pairs", "aligns"),
    ),
    "cross_attention_roles.tsv": (
        *("layer", "head", "role", "share", "low", "high", "offset", "offset_share"),
        *("gain_low", "gain_high", "cases", "pairs", "linked_by", "information", "holds"),
    ),
    "gates.jsonl": ("update", "attention", "layer", "head", "p_open"),
    "maps.json": ("maps",),
    "causal.tsv": ("attention", "layer", "head", "causal_gate", "effect"),
    "importance.tsv": ("attention", "layer", "head", "form", "importance", "importance_normalised"),
    **dict.fromkeys(
        ("ablation.tsv", "ablation.dev.tsv", "ablation.out_of_domain.tsv"),
        ("attention", "layer", "head", "metric", "score", "score_change", "p_value", *MATTHEWS),
    ),
    "layers_to_one.tsv": (
        *("attention", "layer", "heads", "metric", "head_chosen", "score", "score_change", "p_value"),
        *("head_oracle", "score_oracle", "score_change_oracle", "p_value_oracle"),
    ),
    "masked.tsv": ("target", "kept", "of", "metric", "score", "score_change", "p_value"),
    "compared.tsv": ("run", "kept", "of", "updates", "metric", "score", "score_change", "p_value"),
    "masking_curve.tsv": (
        *("order", "attention", "masked", "of", "share", "metric", "score"),
        *("score_change_low", "score_change_high", "score_kept_low", "score_kept_high"),
        *("score_behind", "score_behind_low", "score_behind_high"),
    ),
    "checkpoints.tsv": (
        *("update", "epoch", "finished", "order", "attention", "masked", "of", "share", "metric", "score"),
        *("score_change_low", "score_change_high", "score_kept_low", "score_kept_high"),
    ),
    "speed.tsv": (
        *("run", "batch_sentences", "repeats", "examples_per_second", "examples_per_second_sd"),
        *("ratio", "ratio_low", "ratio_high", "sentences", "subwords_per_example", "heads", "of"),
        *("parameters", "disk_mb", "peak_memory_mb", "device"),
    ),
}
READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    **dict.fromkeys(SCORES.values(), _score),
    **{name: _scored for name, columns in COLUMNS.items() if "metric" in columns and name != SCORED},
    "model.json": _model,
    "gates.jsonl": _gates,
    "train.jsonl": _curve,
    "maps.json": _maps,
    "bleu_statistics.tsv": _statistics,
}


def load_runs(need: Need, folders: Sequence[Path], compared_with: Mapping[str, str] | None = None) -> Frames:
    """Read the files that `need` asks for from run folders such as `results/demo/baseline/seed-1`.

    Runs that `need` does not ask for are skipped. Every frame has RUN_COLUMNS and the columns of its file, even without
    rows; columns named after BLEU or accuracy are renamed to `score`, and `metric` says which it is. Missing optional
    files are skipped, and so are files of a task other than the run's. The frame of `model.json` also has
    `compared_with`: the paper's corpus with which an experiment is compared, WMT if the argument has none for it.
    Raises UserError for a path that is not a run, a missing file or a missing column.
    """
    records: dict[str, list[Record]] = {_frame(name): [] for names in need.files.values() for name in names}
    for folder in folders:
        experiment, run = named_run(folder)
        if need.wants(run):
            identity = {"experiment": experiment, **run.columns}
            passed_over = _of_other_tasks(folder)
            for name in need.files[run.kind]:
                if name in passed_over or (name in need.optional and not (folder / name).exists()):
                    continue
                records[_frame(name)] += _records(folder / name, identity)
    frames = {name: frame_of(rows, (*RUN_COLUMNS, *COLUMNS[name])) for name, rows in records.items()}
    if "model.json" in frames:
        model = frames["model.json"]
        frames["model.json"] = model.assign(
            compared_with=[(compared_with or {}).get(e, WMT) for e in model["experiment"]]
        )
    return frames


def _of_other_tasks(folder: Path) -> list[str]:
    """The files that belong to tasks other than the one that a run's model is scored on."""
    own = next((TASK_OF[metric] for metric, file in SCORES.items() if (folder / file).exists()), TRANSLATION)
    return [name for task, names in ONLY_OF.items() if task != own for name in names]


def named_run(folder: Path) -> tuple[str, Run]:
    """The experiment and the run of a folder that a user gave. Raises UserError if it is not the folder of a run."""
    try:
        return run_of(folder)
    except ValueError as error:
        raise UserError(f"{error}: give folders such as results/demo/baseline/seed-1.") from error


def _frame(name: str) -> str:
    """The name of the frame that a file is read into."""
    return SCORED if name in SCORES.values() else name


def _records(path: Path, run: Record) -> list[Record]:
    if not path.exists():
        raise UserError(f"{path} does not exist: run the stage that makes it, or leave this run out.")
    read = READERS.get(path.name, _rows)
    try:
        return [{**run, **{column: row[column] for column in COLUMNS[_frame(path.name)]}} for row in read(path)]
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is not as expected ({error!r}): delete it and run its stage again.") from error


def frame_of(rows: Sequence[Record], columns: Sequence[str]) -> pd.DataFrame:
    """A data frame, numeric except in columns of text and objects; empty cells of numeric columns become NaN."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    for column in frame.columns:
        if column not in TEXT | OBJECTS:
            frame[column] = pd.to_numeric(frame[column])
    return frame


def load_reference(name: str) -> pd.DataFrame:
    """Read a file of the papers' numbers; missing text becomes "" and a missing number NaN.

    Columns of scores are named as for runs, and their `metric` is added.
    """
    frame = pd.read_csv(REFERENCE / name)
    if metric := next((one for one in METRICS if any(column.startswith(one) for column in frame)), None):
        frame = frame.rename(columns=lambda column: column.replace(metric, "score")).assign(metric=metric)
    text = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{column: frame[column].fillna("") for column in text})
