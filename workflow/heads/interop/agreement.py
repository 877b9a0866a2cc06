"""Check an exported model against ours by comparing the log-probabilities of the same subwords one by one."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from heads.base.files import UserError
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.special_ids import EOS, PAD, UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import greedy

Pair = tuple[list[int], list[int]]
"""Subword ids of a source and its translation, without BOS and EOS."""
MADE, LONGEST = 16, 40
MOST = 400
"""Maximum number of subwords in a source sentence; a translation has at most twice as many, plus ten."""
POSITIONS = 1024
"""Maximum number of positions written into other formats: the longest sentence in subwords."""

TOLERANCE, SHARE = 1e-4, 1e-5
"""Largest accepted difference of a float32 export's log-probabilities: in nats, or as a share of the largest."""


def pairs_of(model: Transformer, vocabulary: Vocabulary, sentences: Sequence[str]) -> list[Pair]:
    """Sentences paired with our own translations, or pairs of random subwords of various lengths if none are given.

    Sentences are cut to their first MOST subwords, so that their translations have positions. Raises UserError if all
    are empty.
    """
    if sentences:
        sources = [ids[:MOST] for ids in vocabulary.encode(sentences) if ids]
        if not sources:
            raise UserError("the sentences to check the exported model with contain no words: give others.")
        batches = [torch.tensor([[*ids, EOS]]) for ids in sources]
        return [(ids, greedy(model, batch, batch > PAD)[0]) for ids, batch in zip(sources, batches, strict=True)]
    draw = np.random.default_rng(0)

    def subwords(number: int) -> list[int]:
        return [int(i) for i in draw.integers(UNK + 1, number, draw.integers(1, LONGEST))]

    source, target = model.shape.named_subwords
    return [(subwords(source), subwords(target)) for _ in range(MADE)]


@torch.inference_mode()
def log_probabilities(model: Transformer, pair: Pair) -> Tensor:
    """Log-probability of each subword of the translation and of its EOS [T]."""
    batch = make_batch(*([np.array(ids, np.int32)] for ids in pair))
    states = model(batch.source, batch.source_mask, batch.target_input)
    found: Tensor = model.projection(states)[0].log_softmax(-1)
    return found.gather(1, batch.target_output.T)[:, 0]


def rounding_of(model: Transformer, pairs: Sequence[Pair]) -> float:
    """The `rounding` of the log-probabilities of these pairs, in nats. Raises UserError if they are not finite."""
    return rounding([log_probabilities(model, pair) for pair in pairs])


def rounding(ours: Sequence[Tensor]) -> float:
    """Largest difference from these outputs of our model that float32 rounding may cause.

    Rounding is relative, and a converged model gives some random subwords log-probabilities of minus tens of nats.
    Raises UserError for outputs that are not finite, which nothing can be compared with.
    """
    largest = largest_of(ours)
    if largest == torch.inf:
        raise UserError("the model's own outputs are not finite, as its weights are too large: give another model.")
    return max(TOLERANCE, SHARE * largest)


def largest_of(values: Sequence[Tensor]) -> float:
    """The largest magnitude in all of these; inf if any is NaN."""
    return float(torch.stack([value.abs().max() for value in values]).nan_to_num(nan=torch.inf, posinf=torch.inf).max())


def largest_difference(model: Transformer, pairs: Sequence[Pair], theirs: Sequence[Tensor]) -> float:
    """Largest difference between our log-probabilities and theirs, EOS included; inf if any is NaN."""
    return largest_of([log_probabilities(model, pair) - other for pair, other in zip(pairs, theirs, strict=True)])


def difference_of_models(model: Transformer, theirs: Transformer, pairs: Sequence[Pair]) -> float:
    """Largest difference in a target subword's log-probability between our model and theirs, read again as ours."""
    return largest_difference(model, pairs, [log_probabilities(theirs, pair) for pair in pairs])
