"""The masking curve by importance at several checkpoints of one training (Michel et al. 2019, sec. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from heads.analysis.ablation import Translate
from heads.analysis.importance import importance_rows
from heads.analysis.masking_curve import WALK_COLUMNS, Row, curve_rows, importance_orders
from heads.analysis.metrics import BLEU, Metric
from heads.config.analyses import CheckpointsSettings, ImportanceSettings
from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder
from heads.model.folder import load_weights
from heads.text.batches import Pairs

COLUMNS = ("update", "epoch", "finished", *WALK_COLUMNS)


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
    """Rows as in COLUMNS for each checkpoint: its masking curve by importance, which is measured again each time.

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
