"""Translation: batched beam search with a key/value cache (greedy search is a beam of one), and BLEU.

Scores are log-probabilities divided by ((5 + length) / 6)^alpha, the length with the end sign (Wu et al. 2016, eq. 14);
an offset of 0 in place of 5 makes that length^alpha, as transformers, CTranslate2 and fairseq have it.
A search ends when its best finished hypothesis can not be beaten, or sooner where `early_stopping` says so in the words
of transformers: False, when the worst of N finished ones is no worse than the best open one now; True, when N are.
B sentences, N beams, V vocabulary, T steps so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from sacrebleu.metrics import BLEU
from torch import Tensor

from heads.model.sublayers import Gates
from heads.model.transformer import DecoderCache, Transformer
from heads.text.batches import Pairs
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.bleu import COLUMNS as STATISTICS

IMPOSSIBLE = -1e9
"""Score of what must never be chosen; finite, so that sums of it stay ordered."""

STAYING = 7 / 8
"""Sentences that are over are left out of the batch when no more than this share of it goes on: to do so costs time."""
NEVER_SAID = (PAD, BOS, UNK)
"""Tokens that are never generated."""
LENGTH_OFFSET = 5
"""What is added to a length that scores are divided by, in Wu et al. 2016, eq. 14."""
NEVER = "never"
"""The `early_stopping` that finds the best."""
CHUNK = 128
"""How many scores are looked at by their maximum alone, when the largest are sought."""


def length_limit(source_length: int) -> int:
    """How many subwords a translation of that many source subwords may have."""
    return 2 * source_length + 10


def limits_of(model: Transformer, source_mask: Tensor) -> list[int]:
    """The same of each source sentence [B, S], by a model that may have learnt few positions."""
    return [min(length_limit(length), model.shape.longest) for length in source_mask.sum(1).tolist()]


@dataclass
class _Search:
    """State of the b sentences that are still in the batch: [b, N] unless said otherwise."""

    sentence: Tensor
    """[b] number of each sentence in the batch."""
    limit: Tensor
    """[b] how many subwords each may have, by its own source length, so that the batch does not matter."""
    live_scores: Tensor
    live_tokens: Tensor
    """[b, N, T]"""
    done_scores: Tensor
    """[b, K] normalised scores of the best finished hypotheses, falling: of the best alone, or as many as the beam."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these sentences only."""
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
) -> list[list[int]]:
    """The best translation of each source sentence [B, S], as subword ids without start and end.

    A beam of one is greedy search, which ends at its first end whatever longer translations are divided by.
    """
    device, count, limits = source.device, source.shape[0], limits_of(model, source_mask)
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
    never = torch.tensor(NEVER_SAID, device=device)
    for step in range(1, max(limits) + 1):
        log_probs = model.decode_next(search.live_tokens[:, :, -1], cache, gates).float().log_softmax(-1)
        log_probs.index_fill_(2, never, IMPOSSIBLE)
        if step == 1:
            _begin(log_probs, model.shape.first_subword)
        if step >= min(limits):
            _end(log_probs, search.limit == step)
        _extend(search, cache, log_probs, best, step=step, divisor=penalty(step, length_penalty, length_offset))
        longest = search.limit if early_stopping == NEVER else step
        attainable = search.live_scores[:, 0] / penalty(longest, length_penalty, length_offset)
        to_beat = search.done_scores[:, -1]
        over = (to_beat >= attainable) | (search.limit <= step)
        if early_stopping is True:
            over |= to_beat > IMPOSSIBLE
        rows = (~over).nonzero()[:, 0]
        if not len(rows):
            break
        # A sentence that is over may stay in the batch for a while if it can finish nothing better there.
        staying = int(STAYING * len(over)) if early_stopping == NEVER else len(over) - 1
        if len(rows) <= staying:
            search.keep(rows)
            cache.keep(rows)
    return best


def _begin(log_probs: Tensor, subword: int) -> None:
    """Leave nothing of log_probs [b, N, V] but the subword that every translation begins with, which is certain."""
    if subword:
        log_probs.fill_(IMPOSSIBLE)[:, :, subword] = 0.0


def _end(log_probs: Tensor, over: Tensor) -> None:
    """Leave sentences that are over [b] nothing of log_probs [b, N, V] but their ends."""
    goes_on = torch.arange(log_probs.shape[2], device=log_probs.device) != EOS
    log_probs.masked_fill_(over[:, None, None] & goes_on, IMPOSSIBLE)


def penalty(length: Any, alpha: float, offset: int = LENGTH_OFFSET) -> Any:
    """What hypotheses of `length` subwords, a number or a tensor, the end sign counted, are divided by."""
    return ((offset + length) / (offset + 1)) ** alpha


def _extend(
    search: _Search, cache: DecoderCache, log_probs: Tensor, best: list[list[int]], *, step: int, divisor: float
) -> None:
    """One step: of the 2N best continuations, ends among the first N are finished, and the N best others live on.

    log_probs: [b, N, V], overwritten; best: given the finished hypotheses that are better than all before.
    """
    beam, subwords = log_probs.shape[1:]
    totals = log_probs.add_(search.live_scores[:, :, None]).flatten(1)
    scores, flat = largest(totals, min(2 * beam, totals.shape[1]))
    parent, token = flat // subwords, flat % subwords
    ended = token == EOS

    # An end that is not among the N best is no choice of a beam of N; without this, a beam of one is not greedy.
    finished = (scores[:, :beam] / divisor).masked_fill(~ended[:, :beam], IMPOSSIBLE)
    newest, place = finished.max(1)
    better = (newest > search.done_scores[:, 0]).nonzero()[:, 0]
    if len(better):  # all at once, as a GPU is waited for each time that it is asked
        found = search.live_tokens[better, parent[better, place[better]], 1:]
        for sentence, ids in zip(search.sentence[better].tolist(), found.tolist(), strict=True):
            best[sentence] = ids
    search.done_scores = torch.cat([search.done_scores, finished], 1).topk(search.done_scores.shape[1], 1).values

    search.live_scores, chosen = scores.masked_fill(ended, 2 * IMPOSSIBLE).topk(beam, 1)
    parent, token = parent.gather(1, chosen), token.gather(1, chosen)
    history = search.live_tokens.gather(1, parent[:, :, None].expand(-1, -1, step))
    search.live_tokens = torch.cat([history, token[:, :, None]], 2)
    if beam > 1:
        cache.reorder(parent)


def largest(scores: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """The largest scores of each row [R, K], the best first, and where they stand.

    They are among the chunks that have the largest maxima, which are sooner found than scores one by one.
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
    """The translation of each source sentence [B, S] by always taking the likeliest subword."""
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
    found = search_pairs(
        model,
        pairs,
        device,
        batch_tokens=batch_tokens,
        beam=beam,
        length_penalty=length_penalty,
        limit=limit,
        gates=gates,
    )
    numbers = sorted(found)
    return numbers, vocabulary.decode([found[number] for number in numbers])


def search_pairs(
    model: Transformer,
    pairs: Pairs,
    device: torch.device,
    *,
    batch_tokens: int,
    beam: int,
    length_penalty: float,
    limit: int = 0,
    gates: Gates | None = None,
) -> dict[int, list[int]]:
    """The best translations, as subword ids, of the first `limit` pairs (0: all), by the number of the pair."""
    found: dict[int, list[int]] = {}
    for members, batch in pairs.in_order(batch_tokens, limit or None):
        batch = batch.to(device)
        ids = beam_search(model, batch.source, batch.source_mask, beam=beam, length_penalty=length_penalty, gates=gates)
        found.update(zip(members.tolist(), ids, strict=True))
    return found


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
