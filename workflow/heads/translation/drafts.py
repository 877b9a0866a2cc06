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
from heads.text.batches import Pairs, batched
from heads.text.packed import Packed, pack
from heads.translation.beam_search import limits_of, never_said
from heads.translation.scoring import search_pairs

VERIFIED_TOKENS = 1000
"""Source tokens per batch of drafts to verify; the logits at all subwords of one are in memory at once."""


class Drafted:
    """Greedy search on the sources of the first `settings.sentences` pairs (0: all) by one model.

    The weights of the model must not change, and the settings' beam has to be 1.
    """

    def __init__(self, model: Transformer, pairs: Pairs, settings: TranslateSettings, device: torch.device) -> None:
        self.model, self.settings, self.device = model, settings, device
        self.pairs = pairs.only(pairs.index[: settings.sentences or None])
        self.drafts: dict[int, list[int]] = {}
        self.batches: list[tuple[list[int], Packed]] = []
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
            spans, own = batch.source_spans, batch.target_spans
            memory = self.cached.encode(place, batch.source, spans, gates)
            states = self.cached.decode(place, batch.target_input, memory, spans, gates, spans=own)
            same = said_again(self.model, batch, states).tolist()
            changed += [number for number, kept in zip(numbers, same, strict=True) if not kept]
        again = self.pairs.only(sorted(changed))
        return self.drafts | search_pairs(self.model, again, self.settings, self.device, gates)

    def _batches(self) -> Iterator[tuple[list[int], Packed]]:
        drafts = {number: np.array(ids, np.int32) for number, ids in self.drafts.items()}
        sources = self.pairs.source
        order = sorted(drafts, key=lambda number: (len(drafts[number]), sources.lengths[number]))
        widths = sources.lengths.copy()
        for number, draft in drafts.items():
            widths[number] = max(widths[number], len(draft))
        for members in batched(np.array(order), sources.lengths, VERIFIED_TOKENS, widths):
            batch = pack([sources[i] for i in members], [drafts[i] for i in members])
            yield members.tolist(), batch.to(self.device)


@torch.inference_mode()
def said_again(model: Transformer, batch: Packed, states: Tensor) -> Tensor:
    """Whether greedy search gives each sentence's target [B]. states: those of the decoder at the target [N, D]."""
    logits, spans = model.projection(states).float(), batch.target_spans
    logits[:, never_said(model.shape)] = -torch.inf
    same = logits.argmax(-1) == batch.target_output
    if model.shape.first_subword:
        same |= spans.places == 0
    # At its limit a search ends, whatever is most probable.
    limits = torch.tensor(limits_of(model, batch.source_spans.starts.diff()), device=same.device)
    same |= spans.places >= limits[spans.sentences] - 1
    return torch.stack([sentence.all() for sentence in same.split(spans.starts.diff().tolist())])
