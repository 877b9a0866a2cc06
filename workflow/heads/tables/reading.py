"""Runs as data frames: one for each kind of file, with the run of each record in front."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heads.base.columns import ABLATION_COLUMNS, ABLATIONS, COLUMNS_OF
from heads.base.files import UserError, read_json, read_jsonl, read_tsv
from heads.base.names import (
    BLEU,
    FEEDFORWARDS,
    HALVES,
    HEAD,
    METRICS,
    ONLY_OF,
    REFERENCES,
    SCORES,
    TASK_OF,
    WMT,
)
from heads.base.runs import Need, Run, run_of
from heads.model.shape import ModelShape
from heads.tables.head_measures import MEASURED_COLUMNS
from heads.translation.bleu import STATISTICS

REFERENCE = Path(__file__).parent / "reference"

RUN_COLUMNS = ("experiment", "kind", "scope", "method", "lam", "keep", "seed")
"""The columns that identify a run; `scope`, `method`, `lam` and `keep` may be "", so that runs can be grouped."""

TEXT = {
    *RUN_COLUMNS[:-1],
    *("attention", "rule", "trees", "role", "name", "relation", "signature", "against", "metric", "linked_by", "step"),
    *("run", "device", "form", "order", "target", "effect", *FEEDFORWARDS),
}
OBJECTS = {"maps", "statistics"}
MATTHEWS = ("matthews", "matthews_change", "matthews_p_value")

Record = dict[str, Any]
Frames = dict[str, pd.DataFrame]
"""Data frames by the name of the file they were read from, such as `heads.tsv`; scores of all metrics are in SCORED."""
SCORED = "score"


def _score(metric: str, content: Record) -> Iterator[Record]:
    # Older scores have neither chrF nor a copied source, and do not say what they are measured against.
    known = dict.fromkeys(READ_COLUMNS[SCORED]) | {"metric": metric, "against": REFERENCES, "signature": ""}
    own = {"score": content[metric], "sentences": content["sentences" if "sentences" in content else "examples"]}
    yield known | {**own, **{key: content[key] for key in known if key in content}}


def _scored(rows: Iterable[Record]) -> Iterator[Record]:
    # Columns in files are named after the metric, and accuracy comes with Matthews' correlation.
    for row in rows:
        metric = next(name for name in METRICS if name in row)
        named = {name.replace(metric, "score"): value for name, value in row.items()}
        yield {"metric": metric, **dict.fromkeys(MATTHEWS), **named}


def _model(content: Record) -> Iterator[Record]:
    shape = ModelShape.from_dict(content["shape"])
    live = {*shape.heads()}
    facts = {name: content[name] for name in ("dev_loss", "total_updates")} | {
        "grown": int(content.get("grown", False))
    }
    facts |= {"feedforward": shape.feedforward} | {s: " ".join(map(str, shape.units(s))) for s in FEEDFORWARDS}
    # T5s are known by their biases; of others, only what is in memory says.
    facts |= {"any_text": int(content.get("any_text", shape.distance_buckets > 0))}
    # Older files do not say; no model with attention biases was trained here from scratch.
    facts |= {"pretrained": int(content.get("pretrained", shape.attention_biases))}
    for head in shape.all_heads():
        yield {**dict(zip(HEAD, head, strict=True)), "live": int(head in live), **facts}


def _gates(lines: Iterable[Record]) -> Iterator[Record]:
    for line in lines:
        for attention, layers in line["p_open"].items():
            for layer, row in enumerate(layers):
                for head, p_open in enumerate(row):
                    place = {"attention": attention, "layer": layer, "head": head}
                    yield {"update": line["update"], **place, "p_open": p_open}


def _as_read(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a file as they are called in frames: scores by one name, beside that of their metric."""
    metric = ("metric",) if "bleu" in columns else ()
    return (*metric, *(column.replace("bleu", "score") for column in columns))


READ_COLUMNS: dict[str, tuple[str, ...]] = {
    **{file: _as_read(columns) for file, columns in COLUMNS_OF.items()},
    **{file: (*_as_read(ABLATION_COLUMNS), *MATTHEWS) for file in ABLATIONS},
    **{file: (*HEAD, *columns) for file, columns in MEASURED_COLUMNS.items()},
    "coverage.tsv": ("trees", "sentences", "measured", "tree_words", "aligned_words"),
    SCORED: ("metric", "score", "against", "chrf", "matthews", "majority", "sentences", "signature", "copied_bleu"),
    "bleu_statistics.tsv": ("statistics",),
    "model.json": (
        *(*HEAD, "live", "dev_loss", "total_updates", "pretrained", "grown", "any_text"),
        *("feedforward", *FEEDFORWARDS),
    ),
    "train.jsonl": ("update", "dev_loss", "dev_bleu"),
    "gates.jsonl": ("update", *HEAD, "p_open"),
    "maps.json": ("maps",),
}
"""Columns of frames by the file they are read from. Tables of measures have them as written, but for those that older
files lack."""
MADE: dict[str, Callable[[Any], Iterable[Record]]] = {
    **{file: partial(_score, metric) for metric, file in SCORES.items()},
    **{name: _scored for name, columns in READ_COLUMNS.items() if "metric" in columns and name != SCORED},
    "model.json": _model,
    "gates.jsonl": _gates,
    # Older runs do not have what a head does by its biases of distances alone.
    "roles.tsv": lambda rows: ({**dict.fromkeys(HALVES), **row} for row in rows),
    # Not all trainings score the dev set on the way.
    "train.jsonl": lambda lines: ({"dev_bleu": None, **line} for line in lines),
    # One record for all sentences: there are thousands in each of a hundred runs.
    "maps.json": lambda content: [{"maps": content}],
    "bleu_statistics.tsv": lambda rows: [
        {"statistics": np.array([[int(row[name]) for name in STATISTICS] for row in rows])}
    ],
}
"""What makes records of the content of a file, by its name; the records of other files are their rows."""
READERS: dict[str, Callable[[Path], Any]] = {".json": read_json, ".jsonl": read_jsonl, ".tsv": read_tsv}


class RunContent:
    """The records of a run's files, by name: of content in memory, or else of files in the run's folder."""

    def __init__(self, content: Mapping[str, Any], folder: Path | None = None) -> None:
        self.content, self.folder = content, folder

    def __contains__(self, name: object) -> bool:
        return name in self.content or bool(self.folder and (self.folder / str(name)).exists())

    def __getitem__(self, name: str) -> list[Record]:
        """Raise UserError for a missing file, or a missing column."""
        if self.folder is None or name in self.content:
            return _records(name, self.content[name])
        path = self.folder / name
        if not path.exists():
            raise UserError(f"{path} does not exist: run the stage that makes it, or leave this run out.")
        try:
            return _records(name, READERS[path.suffix](path))
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise UserError(f"{path} is not as expected ({error!r}): delete it and run its stage again.") from error


RunFiles = tuple[str, Run, RunContent]
"""An experiment, a run of it, and the run's files."""


def _records(name: str, content: Any) -> list[Record]:
    """The records of a file with a name in READ_COLUMNS or SCORES, from its content."""
    columns = READ_COLUMNS[_frame(name)]
    return [{column: row[column] for column in columns} for row in MADE.get(name, iter)(content)]


def load_runs(need: Need, folders: Sequence[Path], compared_with: Mapping[str, str] | None = None) -> Frames:
    """Read the files that `need` asks for from run folders such as `results/demo/baseline/seed-1`; see `frames_of`.

    Raises UserError for a path that is not a run, a missing file or a missing column.
    """
    return frames_of(need, [(*named_run(folder), RunContent({}, folder)) for folder in folders], compared_with)


def frames_of(need: Need, runs: Iterable[RunFiles], compared_with: Mapping[str, str] | None = None) -> Frames:
    """Data frames of the files that `need` asks for.

    Runs that `need` does not ask for are skipped. Every frame has RUN_COLUMNS and the columns of its file, even without
    rows; columns named after BLEU or accuracy are renamed to `score`, and `metric` says which it is. Missing optional
    files are skipped, and so are files of a task other than the run's. The frame of `model.json` also has
    `compared_with`: the paper's corpus with which an experiment is compared, WMT if the argument has none for it.
    """
    found: dict[str, list[Record]] = {_frame(name): [] for names in need.files.values() for name in names}
    for experiment, run, files in runs:
        if need.wants(run):
            identity = {"experiment": experiment, **run.columns}
            passed_over = _of_other_tasks(files)
            for name in need.files[run.kind]:
                if name not in passed_over and (name not in need.optional or name in files):
                    found[_frame(name)] += [identity | record for record in files[name]]
    frames = {name: frame_of(rows, (*RUN_COLUMNS, *READ_COLUMNS[name])) for name, rows in found.items()}
    if "model.json" in frames:
        corpora = [(compared_with or {}).get(experiment, WMT) for experiment in frames["model.json"]["experiment"]]
        frames["model.json"] = frames["model.json"].assign(compared_with=corpora)
    return frames


def _of_other_tasks(files: RunContent) -> list[str]:
    """The files that belong to other tasks or metrics than those that a run's model is scored by."""
    own = next((metric for metric, file in SCORES.items() if file in files), BLEU)
    others = [name for task, names in ONLY_OF.items() if task != TASK_OF[own] for name in names]
    return [name for name in (*SCORES.values(), *others) if name != SCORES[own]]


def named_run(folder: Path) -> tuple[str, Run]:
    """The experiment and the run of a folder that a user gave. Raises UserError if it is not the folder of a run."""
    try:
        return run_of(folder)
    except ValueError as error:
        raise UserError(f"{error}: give folders such as results/demo/baseline/seed-1.") from error


def _frame(name: str) -> str:
    """The name of the frame that a file is read into."""
    return SCORED if name in SCORES.values() else name


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
