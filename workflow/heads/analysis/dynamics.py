"""Confidence and roles of encoder heads at several checkpoints of one training.

The papers look at finished models. Where a role is missing, its curve says more: one that is still rising calls for
longer training, one that has levelled off far below its threshold for another text or model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from heads.analysis.attention_weights import attend
from heads.analysis.confidence import confidence
from heads.analysis.roles import Row, Whole
from heads.analysis.roles import roles as measures
from heads.config.analyses import ConfidenceSettings, RolesSettings
from heads.model.encoder import Encoder
from heads.model.folder import load_weights
from heads.syntax.alignment import Words
from heads.text.batches import Pairs

MEASURED = ("accuracy", "low", "high", "baseline")
COLUMNS = ("update", "finished", "layer", "head", "role", "name", *MEASURED)


def dynamics_rows(
    model: Encoder,
    weights: Iterable[tuple[int, Path, int]],
    pairs: Pairs,
    sentences: Sequence[Words],
    ranks: Whole,
    *,
    roles: RolesSettings,
    how: ConfidenceSettings,
) -> list[Row]:
    """Rows as in COLUMNS for each checkpoint: each encoder head's confidence, listed as a role, and its measures.

    weights: update, file, and 1 for the finished model; they are loaded into `model`. pairs: what confidence is
    measured on. sentences: what roles are measured on. ranks: of the source subwords, from `frequency_ranks`.
    """
    heads = [(layer, head) for _, layer, head in model.shape.heads(("enc_self",))]
    rows: list[Row] = []
    for update, path, finished in weights:
        load_weights(model, path)
        checkpoint: Row = {"update": update, "finished": finished}
        batches = (batch for _, batch in pairs.in_order(how.batch_tokens, how.sentences or None))
        for row in confidence(model, batches):
            if row["attention"] == "enc_self":
                place = {"layer": row["layer"], "head": row["head"], "role": "confidence", "name": ""}
                rows.append({**checkpoint, **place, **dict.fromkeys(MEASURED), "accuracy": row["confidence"]})
        for row in measures(attend(model, sentences, roles.batch_tokens), heads, ranks, roles):
            rows.append({**checkpoint, **{name: row[name] for name in COLUMNS[2:]}})
    return rows
