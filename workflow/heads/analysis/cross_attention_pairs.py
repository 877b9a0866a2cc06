"""Roles of a model's cross-attention heads on sentence pairs; `cross_attention_roles` defines the roles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heads.analysis.alignment_pairs import Gold
from heads.analysis.attention_weights import attend_to_source
from heads.analysis.cross_attention_roles import Looked, Row, between_subwords, cross_attention_roles, looked_at
from heads.config.analyses import AlignmentHeadsSettings
from heads.model.transformer import Transformer


def roles_of_cross_attention(
    model: Transformer, golds: Sequence[Gold], settings: AlignmentHeadsSettings, *, linked: bool
) -> list[Row]:
    """Rows of `cross_attention_roles` for all cross-attention heads.

    linked: score them by the given links of the pairs, otherwise by those of the best aligner among the heads.
    """
    heads = [(layer, head) for _, layer, head in model.shape.heads(("dec_enc",))]
    attended = attend_to_source(model, [(gold.source, gold.target) for gold in golds], settings.batch_tokens)
    pairs = [
        Looked(
            np.asarray(golds[number].source.subwords, np.int64),
            np.asarray(golds[number].target.subwords, np.int64),
            looked_at(weights[:, :-1]),
            between_subwords(golds[number]) if linked else None,
        )
        for number, weights in attended
    ]
    return cross_attention_roles(pairs, heads, settings)
