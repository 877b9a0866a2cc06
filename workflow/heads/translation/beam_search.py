"""Translation by batched beam search with a key/value cache (greedy search is a beam of one).

Scores are log-probabilities divided by ((5 + length) / 6)^alpha, where the length counts EOS (Wu et al. 2016, eq. 14);
an offset of 0 in place of 5 makes that length^alpha, as in transformers, CTranslate2 and fairseq.
A search ends when its best finished hypothesis cannot be beaten, or sooner with transformers' values of
`early_stopping`: False, when the worst of N finished ones is no worse than the best open one now; True, when N are
finished.
B sentences, N beams, V vocabulary, K of its subwords, T steps so far.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heads.model.linear import linear
from heads.model.shape import ModelShape
from heads.model.sublayers import Gates
from heads.model.transformer import DecoderCache, Transformer
from heads.text.special_ids import BOS, EOS, PAD, UNK

IMPOSSIBLE = -1e9
"""Score of a token that must never be chosen; finite, so that sums of it stay ordered."""

STAYING = 7 / 8
"""Finished sentences leave the batch once at most this share of it is unfinished, as removing them costs time."""
LENGTH_OFFSET = 5
"""Offset added to the length in the length penalty of Wu et al. 2016, eq. 14."""
NEVER = "never"
"""The `early_stopping` that searches until no hypothesis can beat the best finished one."""
CHUNK = 128
"""Number of scores per chunk in `largest`, which first compares chunks by their maxima."""


def never_said(shape: ModelShape) -> list[int]:
    """Ids that are never generated: padding, BOS, unknown, and rows without a subword.

    They keep their part in the probabilities, as in transformers, which rules out tokens only after the softmax.
    """
    return [PAD, BOS, UNK, *range(shape.named_subwords[1], shape.target_subwords)]


def length_limit(source_length: int) -> int:
    """Maximum number of subwords in a translation of `source_length` source subwords."""
    return 2 * source_length + 10


def limits_of(model: Transformer, lengths: Tensor) -> list[int]:
    """Limit for each of these source lengths [B], capped by the number of positions if the model has learnt them."""
    return [min(length_limit(length), model.shape.longest) for length in lengths.tolist()]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The part of the vocabulary that translations of a batch are made of."""

    ids: Tensor
    """[K] ascending ids of subwords, with EOS."""
    of: Tensor
    """[B, K] True where a sentence's translation may have the subword."""

    def projection(self, model: Transformer) -> Callable[[Tensor], Tensor]:
        """The model's projection to these subwords."""
        whole = model.projection
        return partial(linear, weight=whole.weight[self.ids], bias=whole.bias[self.ids])


@dataclass
class _Search:
    """Search state of the b sentences still in the batch; [b, N] unless stated otherwise."""

    sentence: Tensor
    """[b] number of each sentence in the original batch."""
    limit: Tensor
    """[b] length limit of each, from its own source length, so that it does not depend on the batch."""
    live_scores: Tensor
    live_tokens: Tensor
    """[b, N, T]"""
    done_scores: Tensor
    """[b, K] normalised scores of the K best finished hypotheses, descending; K is 1 or the beam size."""

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        for name in ("sentence", "limit", "live_scores", "live_tokens", "done_scores"):
            setattr(self, name, getattr(self, name)[rows])


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    source_mask: Tensor,
    *,
    beam: int,
    length_penalty: float,
    length_offset: int = LENGTH_OFFSET,
    early_stopping: bool | str = NEVER,
    gates: Gates | None = None,
    candidates: Candidates | None = None,
) -> list[list[int]]:
    """The best translation of each source sentence [B, S], as subword ids without BOS and EOS.

    A beam of one is greedy search, which stops at the first EOS whatever the length penalty. candidates: the subwords
    to choose from; for a model that can begin with any of them.
    """
    device, count, limits = source.device, source.shape[0], limits_of(model, source_mask.sum(1))
    length_penalty = length_penalty if beam > 1 else 0.0
    cache = model.start_cache(model.encode(source, source_mask, gates), source_mask, beam)
    search = _Search(
        torch.arange(count, device=device),
        torch.tensor(limits, device=device),
        torch.full((count, beam), IMPOSSIBLE, device=device).index_fill_(1, torch.tensor([0], device=device), 0.0),
        torch.full((count, beam, 1), BOS, device=device),
        torch.full((count, 1 if early_stopping == NEVER else beam), IMPOSSIBLE, device=device),
    )
    best: list[list[int]] = [[] for _ in range(count)]
    ids = candidates.ids if candidates else torch.arange(model.shape.target_subwords, device=device)
    project = candidates.projection(model) if candidates else None
    never = torch.isin(ids, torch.tensor(never_said(model.shape), device=device)).nonzero()[:, 0]
    for step in range(1, max(limits) + 1):
        logits = model.decode_next(search.live_tokens[:, :, -1], cache, gates, project).float()
        log_probs = _scored(logits, candidates, search.sentence).index_fill_(2, never, IMPOSSIBLE)
        if step == 1 and (first := model.shape.first_subword):
            log_probs.fill_(IMPOSSIBLE)[:, :, first] = 0.0
        if step >= min(limits):  # EOS alone is left to sentences at their limit
            log_probs.masked_fill_((search.limit == step)[:, None, None] & (ids != EOS), IMPOSSIBLE)
        _extend(search, cache, log_probs, ids, best, penalty(step, length_penalty, length_offset))
        longest = search.limit if early_stopping == NEVER else step
        over = _over(search, step, penalty(longest, length_penalty, length_offset), at_once=early_stopping is True)
        rows = (~over).nonzero()[:, 0]
        if not len(rows):
            break
        # A finished sentence may stay in the batch for a while if it cannot finish anything better there.
        staying = int(STAYING * len(over)) if early_stopping == NEVER else len(over) - 1
        if len(rows) <= staying:
            search.keep(rows)
            cache.keep(rows)
    return best


def _scored(logits: Tensor, candidates: Candidates | None, sentence: Tensor) -> Tensor:
    """Log-probabilities, in place of logits [b, N, K], among a sentence's candidates; if greedy, up to a constant."""
    if candidates:
        logits.masked_fill_(~candidates.of[sentence][:, None], IMPOSSIBLE)
    # Greedy search needs no more than the order of the logits; both ways overwrite them, as new memory costs time.
    if logits.shape[1] == 1:
        return logits.sub_(logits.amax(-1, keepdim=True))
    return torch.log_softmax(logits, -1, out=logits)


def _over(search: _Search, step: int, divisor: Any, *, at_once: bool) -> Tensor:
    """Which sentences [b] end after a step. divisor: of the best live score. at_once: with N finished hypotheses."""
    to_beat = search.done_scores[:, -1]
    over: Tensor = (to_beat >= search.live_scores[:, 0] / divisor) | (search.limit <= step)
    return over | (to_beat > IMPOSSIBLE) if at_once else over


def penalty(length: Any, alpha: float, offset: int = LENGTH_OFFSET) -> Any:
    """Length penalty that scores are divided by; `length`, a number or a tensor, counts EOS."""
    return ((offset + length) / (offset + 1)) ** alpha


def _extend(
    search: _Search, cache: DecoderCache, log_probs: Tensor, ids: Tensor, best: list[list[int]], divisor: float
) -> None:
    """Take one step: of the 2N best continuations, finish those of the first N that end, and keep the N best others.

    log_probs: [b, N, K] of the subwords `ids` [K], overwritten. best: updated with finished hypotheses that beat all
    earlier ones.
    """
    beam, subwords = log_probs.shape[1:]
    totals = log_probs.add_(search.live_scores[:, :, None]).flatten(1)
    scores, flat = largest(totals, min(2 * beam, totals.shape[1]))
    parent, token = flat // subwords, ids[flat % subwords]
    ended = token == EOS

    # A beam of N does not choose an EOS outside the N best; otherwise, a beam of one would not be greedy.
    finished = (scores[:, :beam] / divisor).masked_fill(~ended[:, :beam], IMPOSSIBLE)
    newest, place = finished.max(1)
    better = (newest > search.done_scores[:, 0]).nonzero()[:, 0]
    if len(better):  # all at once, as each transfer waits for the GPU
        found = search.live_tokens[better, parent[better, place[better]], 1:]
        for sentence, translation in zip(search.sentence[better].tolist(), found.tolist(), strict=True):
            best[sentence] = translation
    search.done_scores = torch.cat([search.done_scores, finished], 1).topk(search.done_scores.shape[1], 1).values

    search.live_scores, chosen = scores.masked_fill(ended, 2 * IMPOSSIBLE).topk(beam, 1)
    parent, token = parent.gather(1, chosen), token.gather(1, chosen)
    history = search.live_tokens.gather(1, parent[:, :, None].expand_as(search.live_tokens))
    search.live_tokens = torch.cat([history, token[:, :, None]], 2)
    if beam > 1:
        cache.reorder(parent)


def largest(scores: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """The `number` largest scores of each row [R, K], best first, and their positions.

    They lie in the chunks with the largest maxima, which are faster to find than single scores.
    """
    chunks = scores.shape[1] // CHUNK
    if chunks <= number:
        return scores.topk(number, 1)
    whole = scores[:, : chunks * CHUNK].unflatten(1, (chunks, CHUNK))
    chosen = whole.amax(2).topk(number, 1).indices
    positions = (chosen[:, :, None] * CHUNK + torch.arange(CHUNK, device=scores.device)).flatten(1)
    rest = torch.arange(chunks * CHUNK, scores.shape[1], device=scores.device).expand(len(scores), -1)
    positions = torch.cat([positions, rest], 1)
    values, places = scores.gather(1, positions).topk(number, 1)
    return values, positions.gather(1, places)


def greedy(model: Transformer, source: Tensor, source_mask: Tensor, gates: Gates | None = None) -> list[list[int]]:
    """Greedy translation of each source sentence [B, S], taking the most probable subword at every step."""
    return beam_search(model, source, source_mask, beam=1, length_penalty=0.0, gates=gates)
