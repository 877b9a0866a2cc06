"""What one head costs in seconds of beam search, for choosing heads under a budget of time.

All heads of one kind of attention do the same work, so one number a kind is measured: the unpruned model and the same
model without any head of that kind translate the same sentences at the same lengths, in turn, as when models are timed
(`heads.analysis.speed`). The median difference over rounds, divided by the heads that are gone, is what one of them
costs. The first head of a layer costs more than the next, since a layer without heads is left out; this is an average.
No head is free: where noise hides the cost of a kind, the noise is taken for it, as the most that it can hide.
"""

from __future__ import annotations

from functools import partial
from statistics import median, stdev

import torch

from heads.analysis.speed import Clock, device_name, rounds, source_batches, translate_all
from heads.config.analyses import SpeedSettings
from heads.model.encoder import Encoder
from heads.model.head_removal import prune
from heads.text.vocabulary import Tokens

COLUMNS = ("attention", "seconds_per_head", "seconds_unpruned", "batch_sentences", "repeats", "sentences", "device")


def without(model: Encoder, kind: str) -> Encoder:
    """The model without any head of one kind of attention."""
    return prune(model, {kind: [[False] * len(live) for live in model.shape.live_heads[kind]]})


def latency_rows(
    model: Encoder, source: Tokens, settings: SpeedSettings, device: torch.device, clock: Clock
) -> list[dict[str, object]]:
    """A row as in COLUMNS for every kind of attention, at the largest batch size.

    A cost is at least the standard error of the differences it was measured by.
    """
    size = max(settings.batch_sizes)
    batches = source_batches(source, model, settings, size, device)
    kinds = model.shape.kinds
    models = {"": model} | {kind: without(model, kind) for kind in kinds}
    work = {name: partial(translate_all, one, batches, settings) for name, one in models.items()}
    for warm_up in work.values():
        warm_up()
    seconds = rounds(work, settings.repeats, clock)
    rows = []
    for kind in kinds:
        differences = [whole - less for whole, less in zip(seconds[""], seconds[kind], strict=True)]
        noise = stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else abs(differences[0])
        saved = max(median(differences), noise)
        heads = len(model.shape.heads((kind,)))
        facts = (median(seconds[""]), size, settings.repeats, settings.sentences, device_name(device))
        rows.append(dict(zip(COLUMNS, (kind, saved / max(1, heads), *facts), strict=True)))
    return rows
