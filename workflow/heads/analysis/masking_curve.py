"""Score as more and more heads are masked, least important first (Michel et al. 2019, secs 4 and 6).

The order is fixed once and the model is not trained again. This module opens no files: the caller supplies the function
that translates or classifies.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from heads.analysis.ablation import Translate, gates_without
from heads.analysis.importance import FORMS, importance_rows
from heads.analysis.metrics import ACCURACY, BLEU, COSINE, Answers, Found, Metric
from heads.base.bootstrap import interval
from heads.base.columns import MASKING_CURVE_COLUMNS, WALK_COLUMNS
from heads.base.names import ATTENTIONS
from heads.config.analyses import CheckpointsSettings, ImportanceSettings
from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder
from heads.model.folder import load_weights
from heads.model.shape import Head
from heads.pruning.selection import Scores, random_scores, steps
from heads.text.batches import Pairs

ABLATION, ORACLE = "ablation", "ablation_oracle"
"""Orders by the score lost without each head, measured on other sentences or on those the curve is scored on."""

Row = dict[str, str | int | float | None]


def scores_of(rows: Sequence[Mapping[str, object]], column: str) -> dict[Head, float]:
    """The score of each head in a table with one row per head; cells may be text."""
    return {
        (str(row["attention"]), int(str(row["layer"])), int(str(row["head"]))): float(str(row[column])) for row in rows
    }


def importance_orders(rows: Sequence[Mapping[str, object]]) -> dict[str, Scores]:
    """Importance of each head, normalised within its layer, by form of importance; the paper's own form comes first."""
    return {form: scores_of([row for row in rows if row["form"] == form], "importance_normalised") for form in FORMS}


def ablation_order(rows: Sequence[Mapping[str, object]]) -> Scores:
    """The score lost when each head is masked, from rows of `heads.analysis.ablation`."""
    (column,) = (f"{one.name}_change" for one in (BLEU, ACCURACY, COSINE) if f"{one.name}_change" in rows[0])
    return {head: -change for head, change in scores_of(rows, column).items()}


def random_orders(model: Encoder, number: int) -> dict[str, Scores]:
    """The control: `number` random orders of the heads, with seeds 1, 2, and so on."""
    return {f"random-{seed}": random_scores(model.shape.heads(), seed) for seed in range(1, number + 1)}


def by_attention(scores: Scores) -> dict[str, Scores]:
    """The scores of each kind of attention that has live heads (Michel et al. 2019, sec. 5)."""
    parts = {kind: {head: score for head, score in scores.items() if head[0] == kind} for kind in ATTENTIONS}
    return {kind: part for kind, part in parts.items() if part}


def walks_of(
    model: Encoder,
    importance: Sequence[Mapping[str, object]],
    ablation_dev: Sequence[Mapping[str, object]],
    ablation_test: Sequence[Mapping[str, object]],
    *,
    random: int,
) -> dict[tuple[str, str], Scores]:
    """All walks of a model by order and kind of attention, the paper's own order first.

    Each order walks over all heads; the paper's own also walks over each kind of attention. importance, ablation_dev,
    ablation_test: rows of the tables of importance and of heads masked alone. random: the number of random orders.
    """
    by_importance = importance_orders(importance)
    form, paper = next(iter(by_importance.items()))
    orders = {
        **by_importance,
        ABLATION: ablation_order(ablation_dev),
        ORACLE: ablation_order(ablation_test),
        **random_orders(model, random),
    }
    walks = {(order, "all"): scores for order, scores in orders.items()}
    return walks | {(form, kind): scores for kind, scores in by_attention(paper).items()}


def curve_rows(
    model: Encoder,
    walks: Mapping[tuple[str, str], Scores],
    translate: Translate,
    references: Answers,
    metric: Metric = BLEU,
    *,
    step: float,
    resamples: int,
) -> list[Row]:
    """The score of each walk with 0, `step`, ... 1 of its heads masked, the least important first.

    A walk is named by its order and by its kind of attention or "all". change: the 95 % interval of the score minus
    that without masking, by paired bootstrap over sentences. kept: the interval of the ratio of these two scores, from
    the same draws. behind: the score of the first walk with as many masked heads minus that of this one, with its
    interval; None for walks over part of the heads.
    """
    known: dict[frozenset[Head], Found] = {}
    rows: list[Row] = []
    of_first = next(iter(walks.values()))
    first = [frozenset(masked) for masked in ([], *steps(of_first, step))]
    for (order, attention), scores in walks.items():
        walk = [frozenset(masked) for masked in ([], *steps(scores, step))]
        for heads in walk:
            if heads not in known:
                known[heads] = metric.drawn(translate(gates_without(model, heads)), references, resamples)
        for heads, rival in zip(walk, first, strict=True):
            cells = (order, attention, len(heads), len(scores), len(heads) / len(scores), known[heads][0])
            behind = compared(known[rival], known[heads]) if scores.keys() == of_first.keys() else (None, None, None)
            change = compared(known[heads], known[frozenset()])[1:]
            kept = share_kept(known[heads], known[frozenset()])
            rows.append(dict(zip(metric.named(MASKING_CURVE_COLUMNS), (*cells, *change, *kept, *behind), strict=True)))
    return rows


def compared(one: Found, other: Found) -> tuple[float, float, float]:
    """The score of `one` minus that of `other`, and the interval of the difference."""
    low, high = interval(one[1] - other[1])
    return one[0] - other[0], float(low), float(high)


def share_kept(masked: Found, unmasked: Found) -> tuple[float | None, ...]:
    """The interval of the ratio of two scores; None if the unmasked score is positive in no draw.

    The ratio is taken within each draw: divided by a fixed number, it would also contain the variation of BLEU itself.
    """
    ends = interval(masked[1] / np.where(unmasked[1] > 0, unmasked[1], np.nan))
    return tuple(None if np.isnan(end) else float(end) for end in ends)


def checkpoint_rows(
    model: Encoder,
    weights: Iterable[tuple[int, Path, int]],
    pairs: Pairs,
    trained_on: Pairs,
    translate: Translate,
    references: Sequence[str],
    metric: Metric = BLEU,
    *,
    settings: CheckpointsSettings,
    how: ImportanceSettings,
    training: TrainingSettings,
) -> list[Row]:
    """Rows as in CHECKPOINT_COLUMNS for each checkpoint of one training: its curve by importance, measured anew.

    weights: update, file, and 1 for the finished model. They are loaded into `model`, which `translate` translates
    with. pairs: what importance is measured on; trained_on: what epochs are counted in.
    """
    updates_an_epoch = len(trained_on.epoch(training.batch_tokens, seed=0, epoch=0))
    rows: list[Row] = []
    for update, path, finished in weights:
        load_weights(model, path)
        batches = (batch for _, batch in pairs.in_order(how.batch_tokens, how.sentences or None))
        measured = importance_rows(model, batches, label_smoothing=training.label_smoothing)
        form, scores = next(iter(importance_orders(measured).items()))
        walks = {(form, "all"): scores}
        walked = curve_rows(
            model, walks, translate, references, metric, step=settings.step, resamples=settings.resamples
        )
        checkpoint: Row = {"update": update, "epoch": update / updates_an_epoch, "finished": finished}
        rows += [{**checkpoint, **{name: row[name] for name in metric.named(WALK_COLUMNS)}} for row in walked]
    return rows
