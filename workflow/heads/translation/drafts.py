"""Greedy translations of one text under many gates, with the first translations as drafts for all others.

Masking one head leaves most translations unchanged. One pass over a draft shows whether each of its subwords is still
the most probable after those before it; only drafts that change are searched step by step. This is speculative
decoding (Leviathan et al. 2023) with a draft that is accepted whole or not at all.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from heads.config.analyses import TranslateSettings
from heads.model.cached_states import CachedStates
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs, batched, make_batch
from heads.translation.beam_search import limits_of, never_said
from heads.translation.scoring import search_pairs

VERIFIED_TOKENS = 1000
"""Source tokens per batch of drafts to verify; few, so that little of it is padding."""


class Drafted:
    """Greedy search on the sources of the first `settings.sentences` pairs (0: all) by one model.

    The weights of the model must not change, and the settings' beam has to be 1.
    """

    def __init__(self, model: Transformer, pairs: Pairs, settings: TranslateSettings, device: torch.device) -> None:
        self.model, self.settings, self.device = model, settings, device
        self.pairs = pairs.only(pairs.index[: settings.sentences or None])
        self.drafts: dict[int, list[int]] = {}
        self.batches: list[tuple[list[int], Batch]] = []
        """Sentence numbers, with a batch of their sources and drafts."""
        self.cached = CachedStates(model)

    @torch.inference_mode()
    def __call__(self, gates: Gates | None) -> dict[int, list[int]]:
        """Subword ids of each translation by sentence number; the first call makes the drafts."""
        if not self.batches:
            self.drafts = search_pairs(self.model, self.pairs, self.settings, self.device, gates)
            self.batches = [*self._batches()]
            return self.drafts
        changed: list[int] = []
        for place, (numbers, batch) in enumerate(self.batches):
            memory = self.cached.encode(place, batch.source, batch.source_mask, gates)
            states = self.cached.decode(place, batch.target_input, memory, batch.source_mask, gates)
            same = said_again(self.model, batch, states).tolist()
            changed += [number for number, kept in zip(numbers, same, strict=True) if not kept]
        again = self.pairs.only(sorted(changed))
        return self.drafts | search_pairs(self.model, again, self.settings, self.device, gates)

    def _batches(self) -> Iterator[tuple[list[int], Batch]]:
        drafts = {number: np.array(ids, np.int32) for number, ids in self.drafts.items()}
        sources = self.pairs.source
        order = sorted(drafts, key=lambda number: (len(drafts[number]), sources.lengths[number]))
        widths = sources.lengths.copy()
        for number, draft in drafts.items():
            widths[number] = max(widths[number], len(draft))
        for members in batched(np.array(order), sources.lengths, VERIFIED_TOKENS, widths):
            batch = make_batch([sources[i] for i in members], [drafts[i] for i in members])
            yield members.tolist(), batch.to(self.device)


@torch.inference_mode()
def said_again(model: Transformer, batch: Batch, states: Tensor) -> Tensor:
    """Whether greedy search gives each sentence's target [B]. states: those of the decoder at the target [B, T, D]."""
    logits = model.projection(states[batch.target_mask]).float()
    logits[:, never_said(model.shape)] = -torch.inf
    same = torch.ones_like(batch.target_mask)
    same[batch.target_mask] = logits.argmax(-1) == batch.target_output[batch.target_mask]
    if model.shape.first_subword:
        same[:, 0] = True
    # At its limit a search ends, whatever is most probable.
    limits = torch.tensor(limits_of(model, batch.source_mask), device=same.device)
    same |= torch.arange(same.shape[1], device=same.device) >= limits[:, None] - 1
    return same.all(1)
