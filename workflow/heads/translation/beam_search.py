"""Translation: batched beam search with a key/value cache (greedy search is a beam of one), and BLEU.

Scores are log-probabilities divided by ((5 + length) / 6)^alpha, the length with the end sign (Wu et al. 2016, eq. 14).
B sentences, N beams, V vocabulary, T steps so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics import BLEU
from torch import Tensor

from heads.model.transformer import DecoderCache, Gates, Transformer
from heads.text.batches import Pairs
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.bleu import COLUMNS as STATISTICS

IMPOSSIBLE = -1e9
"""Score of what must never be chosen; finite, so that sums of it stay ordered."""


def length_limit(source_length: int) -> int:
    """How many pieces a translation of that many source pieces may have."""
    return 2 * source_length + 10


@dataclass
class _Search:
    """State of the sentences still being translated: [b, N] unless said otherwise; N live and N finished each."""

    sentence: Tensor
    """[b] number of each sentence in the batch."""
    limit: Tensor
    """[b] how many pieces each may have, by its own source length, so that the batch does not matter."""
    live_scores: Tensor
    live_tokens: Tensor
    """[b, N, T]"""
    done_scores: Tensor
    """Normalised scores of the best finished hypotheses."""
    done_tokens: Tensor
    """[b, N, limit], padded."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these sentences only."""
        for name in ("sentence", "limit", "live_scores", "live_tokens", "done_scores", "done_tokens"):
            setattr(self, name, getattr(self, name)[rows])


@torch.no_grad()
def beam_search(
    model: Transformer,
    source: Tensor,
    source_mask: Tensor,
    *,
    beam: int,
    length_penalty: float,
    gates: Gates | None = None,
) -> list[list[int]]:
    """The best translation of each source sentence [B, S], as piece ids without start and end."""
    device, count = source.device, source.shape[0]
    limits = [length_limit(length) for length in source_mask.sum(1).tolist()]
    cache = model.start_cache(model.encode(source, source_mask, gates), source_mask)
    cache.reorder(torch.arange(count, device=device).repeat_interleave(beam))
    search = _Search(
        torch.arange(count, device=device),
        torch.tensor(limits, device=device),
        torch.full((count, beam), IMPOSSIBLE, device=device).index_fill_(1, torch.tensor([0], device=device), 0.0),
        torch.full((count, beam, 1), BOS, device=device),
        torch.full((count, beam), IMPOSSIBLE, device=device),
        torch.full((count, beam, max(limits)), PAD, device=device),
    )
    best: list[list[int]] = [[] for _ in range(count)]
    for step in range(1, max(limits) + 1):
        logits = model.decode_next(search.live_tokens[:, :, -1].flatten(), cache, gates)
        _extend(search, cache, logits.float().log_softmax(-1), step=step, alpha=length_penalty)
        attainable = search.live_scores[:, 0] / ((5 + search.limit) / 6) ** length_penalty
        over = (search.done_scores[:, -1] >= attainable) | (search.limit == step)
        for row in over.nonzero()[:, 0].tolist():
            tokens = search.done_tokens[row, 0].tolist()
            best[int(search.sentence[row])] = tokens[: tokens.index(PAD)] if PAD in tokens else tokens
        if over.any():
            rows = (~over).nonzero()[:, 0]
            if not len(rows):
                break
            search.keep(rows)
            cache.reorder((rows[:, None] * beam + torch.arange(beam, device=device)).flatten())
    return best


def penalty(length: int, alpha: float) -> float:
    """What a hypothesis of `length` pieces, the end sign counted, has its log-probability divided by."""
    return float(((5 + length) / 6) ** alpha)


def _extend(search: _Search, cache: DecoderCache, log_probs: Tensor, *, step: int, alpha: float) -> None:
    """One step: of the 2N best continuations, ends among the first N are finished, and the N best others live on."""
    count, beam = search.live_scores.shape
    log_probs[:, [PAD, BOS, UNK]] = IMPOSSIBLE
    log_probs = log_probs.view(count, beam, -1)
    goes_on = torch.arange(log_probs.shape[2], device=log_probs.device) != EOS
    log_probs.masked_fill_((search.limit == step)[:, None, None] & goes_on, IMPOSSIBLE)
    totals = search.live_scores[:, :, None] + log_probs
    scores, flat = totals.flatten(1).topk(min(2 * beam, totals[0].numel()), 1)
    parent, token = flat // totals.shape[2], flat % totals.shape[2]
    ended = token == EOS

    # An end that is not among the N best is no choice of a beam of N; without this, a beam of one is not greedy.
    finished = ended & (torch.arange(scores.shape[1], device=scores.device) < beam)
    ended_scores = (scores / penalty(step, alpha)).masked_fill(~finished, IMPOSSIBLE)
    history = search.live_tokens[:, :, 1:].gather(1, parent[:, :, None].expand(-1, -1, step - 1))
    ended_tokens = torch.nn.functional.pad(history, (0, search.done_tokens.shape[2] - history.shape[2]), value=PAD)
    done_scores, chosen = torch.cat([search.done_scores, ended_scores], 1).topk(beam, 1)
    tokens = torch.cat([search.done_tokens, ended_tokens], 1)
    search.done_scores, search.done_tokens = (
        done_scores,
        tokens.gather(1, chosen[:, :, None].expand(-1, -1, tokens.shape[2])),
    )

    search.live_scores, chosen = scores.masked_fill(ended, 2 * IMPOSSIBLE).topk(beam, 1)
    parent, token = parent.gather(1, chosen), token.gather(1, chosen)
    history = search.live_tokens.gather(1, parent[:, :, None].expand(-1, -1, step))
    search.live_tokens = torch.cat([history, token[:, :, None]], 2)
    if beam > 1:
        rows = torch.arange(count, device=parent.device)[:, None] * beam + parent
        cache.reorder(rows.flatten(), with_source=False)


def greedy(model: Transformer, source: Tensor, source_mask: Tensor, gates: Gates | None = None) -> list[list[int]]:
    """The translation of each source sentence [B, S] by always taking the likeliest piece."""
    return beam_search(model, source, source_mask, beam=1, length_penalty=0.0, gates=gates)


def translate_pairs(
    model: Transformer,
    pairs: Pairs,
    vocabulary: Vocabulary,
    device: torch.device,
    *,
    batch_tokens: int,
    beam: int,
    length_penalty: float,
    limit: int,
    gates: Gates | None = None,
) -> tuple[list[int], list[str]]:
    """Numbers and plain-text translations of the first `limit` pairs (0: all), in the order of the file."""
    numbers: list[int] = []
    ids: list[list[int]] = []
    for members, batch in pairs.in_order(batch_tokens, limit or None):
        batch = batch.to(device)
        numbers += members.tolist()
        ids += beam_search(
            model, batch.source, batch.source_mask, beam=beam, length_penalty=length_penalty, gates=gates
        )
    order = np.argsort(numbers)
    texts = vocabulary.decode([ids[i] for i in order])
    return [numbers[i] for i in order], texts


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Corpus BLEU of detokenised text (0 to 100) by sacrebleu, with its signature."""
    metric = BLEU()
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return {"bleu": float(score.score), "signature": str(metric.get_signature())}


def bleu_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> list[dict[str, int]]:
    """What sacrebleu counts in each sentence, as rows of `STATISTICS`; their sums give the corpus BLEU."""
    metric = BLEU(effective_order=True)
    scores = [metric.sentence_score(text, [reference]) for text, reference in zip(hypotheses, references, strict=True)]
    counts = [(score.sys_len, score.ref_len, *score.counts, *score.totals) for score in scores]
    return [dict(zip(STATISTICS, row, strict=True)) for row in counts]
