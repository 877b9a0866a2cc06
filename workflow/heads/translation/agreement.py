"""Whether an exported model computes what ours does: log-probabilities of the same subwords, compared one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from heads.base.files import UserError
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.special_ids import UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import beam_search

Pair = tuple[list[int], list[int]]
"""Subword ids of a source and of a translation, without start and end."""
MADE, LONGEST = 16, 40
MOST = 400
"""Subwords of a sentence; a translation is twice as long at most, and a few."""
POSITIONS = 1024
"""Subwords of the longest sentence that formats of others are given positions for."""

TOLERANCE, SHARE = 1e-4, 1e-5
"""How far a log-probability of an exported model in 32 bits may lie from ours: nats, or a share of the largest."""


def pairs_of(model: Transformer, vocabulary: Vocabulary, sentences: Sequence[str]) -> list[Pair]:
    """Sentences with our own translations of them, or, without any, pairs of random subwords of many lengths.

    Sentences have their first MOST subwords, so that translations of them have positions. Raises UserError where all
    are empty.
    """
    if sentences:
        sources = [ids[:MOST] for ids in vocabulary.encode(sentences) if ids]
        if not sources:
            raise UserError("there is no word in the sentences that formats are to be held against: give others.")
        return [(ids, _translation(model, ids)) for ids in sources]
    draw = np.random.default_rng(0)
    shape = model.shape

    def subwords(number: int) -> list[int]:
        return [int(i) for i in draw.integers(UNK + 1, number, draw.integers(1, LONGEST))]

    return [(subwords(shape.source_subwords), subwords(shape.target_subwords)) for _ in range(MADE)]


@torch.inference_mode()
def log_probabilities(model: Transformer, pair: Pair) -> Tensor:
    """Of each subword of the translation and of its end [T]."""
    batch = make_batch(*([np.array(ids, np.int32)] for ids in pair))
    states = model(batch.source, batch.source_mask, batch.target_input)
    found: Tensor = model.projection(states)[0].log_softmax(-1)
    return found.gather(1, batch.target_output.T)[:, 0]


def rounding_of(model: Transformer, pairs: Sequence[Pair]) -> float:
    """How far rounding to 32 bits, which is relative, may take the log-probabilities of these pairs, in nats.

    Random subwords have some of tens of nats in a model that has converged.
    """
    return max(TOLERANCE, SHARE * max(float(log_probabilities(model, pair).abs().max()) for pair in pairs))


def largest_difference(model: Transformer, pairs: Sequence[Pair], theirs: Sequence[Tensor]) -> float:
    """The largest difference of a subword's log-probability from others, ends included; inf where one is no number."""
    differences = [
        (log_probabilities(model, pair) - other).abs().max() for pair, other in zip(pairs, theirs, strict=True)
    ]
    return float(torch.stack(differences).nan_to_num(nan=torch.inf).max())


def _translation(model: Transformer, ids: list[int]) -> list[int]:
    batch = make_batch([np.array(ids, np.int32)], [np.array([], np.int32)])
    return beam_search(model, batch.source, batch.source_mask, beam=1, length_penalty=0.0)[0]
