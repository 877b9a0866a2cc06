"""Greedy translations of one text under many gates, each held against the translations without them.

Where one head is masked most sentences stay as they are. Whether a sentence does is seen in one pass over all its
subwords, each of which has to be the likeliest after those before it; only the others are searched step by step. This
is speculative decoding (Leviathan et al. 2023) with a draft that is taken whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from heads.model.prefixes import Prefixes
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs, cut, make_batch
from heads.translation.beam_search import NEVER_SAID, limits_of, search_pairs

VERIFIED_TOKENS = 1000
"""Source tokens of a batch whose drafts are verified: few, so that little of it is padding."""


class Drafted:
    """Greedy search of the first `limit` pairs' sources (0: all) by one model, whose weights stay as they are."""

    def __init__(
        self, model: Transformer, pairs: Pairs, device: torch.device, *, batch_tokens: int, limit: int
    ) -> None:
        self.model, self.device, self.batch_tokens = model, device, batch_tokens
        self.pairs = pairs.only(pairs.index[: limit or None])
        self.drafts: dict[int, list[int]] = {}
        self.batches: list[tuple[list[int], Batch]] = []
        """Numbers of sentences, and their sources and drafts."""
        self.prefixes = Prefixes(model)

    @torch.inference_mode()
    def __call__(self, gates: Gates | None) -> dict[int, list[int]]:
        """Subword ids of each translation by the number of its sentence; the first call gives the drafts."""
        if not self.batches:
            self.drafts = self._searched(self.pairs, gates)
            self.batches = [*self._batches()]
            return self.drafts
        changed: list[int] = []
        for place, (numbers, batch) in enumerate(self.batches):
            memory = self.prefixes.encode(place, batch.source, batch.source_mask, gates)
            same = said_again(self.model, batch, memory, gates).tolist()
            changed += [number for number, kept in zip(numbers, same, strict=True) if not kept]
        return self.drafts | self._searched(self.pairs.only(sorted(changed)), gates)

    def _searched(self, pairs: Pairs, gates: Gates | None) -> dict[int, list[int]]:
        return search_pairs(
            self.model, pairs, self.device, batch_tokens=self.batch_tokens, beam=1, length_penalty=0.0, gates=gates
        )

    def _batches(self) -> Iterator[tuple[list[int], Batch]]:
        drafts = {number: np.array(ids, np.int32) for number, ids in self.drafts.items()}
        sources = self.pairs.source
        order = sorted(drafts, key=lambda number: (len(drafts[number]), sources.lengths[number]))
        for members in cut(np.array(order), sources.lengths, VERIFIED_TOKENS):
            batch = make_batch([sources[i] for i in members], [drafts[i] for i in members])
            yield members.tolist(), batch.to(self.device)


@torch.inference_mode()
def said_again(model: Transformer, batch: Batch, memory: Tensor, gates: Gates | None) -> Tensor:
    """Whether greedy search of each sentence says what stands in the batch as its target, with these gates [B].

    memory: states of the encoder [B, S, D].
    """
    states = model.decode(batch.target_input, memory, batch.source_mask, gates)
    logits = model.projection(states[batch.target_mask]).float()
    logits[:, list(NEVER_SAID)] = -torch.inf
    same = torch.ones_like(batch.target_mask)
    same[batch.target_mask] = logits.argmax(-1) == batch.target_output[batch.target_mask]
    if model.shape.first_subword:
        same[:, 0] = True
    # At its limit a search ends, whatever is likeliest.
    limits = torch.tensor(limits_of(model, batch.source_mask), device=same.device)
    same |= torch.arange(same.shape[1], device=same.device) >= limits[:, None] - 1
    return same.all(1)
