"""A model in which only some heads matter, known beforehand: the outputs of all others hardly reach the model."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from heads.ablation import all_heads
from heads.batches import Batch
from heads.decode import greedy
from heads.prune import attention_name
from heads.selection import Head
from heads.transformer import Gates, Transformer

USEFUL: tuple[Head, ...] = (("enc_self", 1, 2), ("dec_self", 0, 1), ("dec_enc", 0, 0), ("dec_enc", 1, 1))
"""The heads that matter: as many as differ in attention, layer and number."""
FAINT = 1e-4
LOUD = 4.0


def with_useful_heads(model: Transformer, useful: Collection[Head] = USEFUL) -> Transformer:
    """The same model after the output projection of useful heads was made large, and of all others faint."""
    modules, width = dict(model.named_modules()), model.shape.head_width
    for kind, layer, head in all_heads(model.shape):
        place = model.shape.live_heads[kind][layer].index(head)
        output = modules[f"{attention_name(kind, layer)}.output"]
        assert isinstance(output, torch.nn.Linear)
        columns = slice(place * width, (place + 1) * width)
        output.weight.data[:, columns] *= LOUD if (kind, layer, head) in useful else FAINT
    return model


def random_batch(sentences: int, seed: int) -> Batch:
    """Source and target pieces of the tiny model, drawn at random; all sentences have 6 and 5."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 13, (sentences, 6), generator=generator)
    target = torch.randint(4, 11, (sentences, 5), generator=generator)
    return Batch(source, source > 0, target, target.roll(-1, 1), target > 0)


def translator(model: Transformer, batch: Batch) -> Callable[[Gates | None], list[str]]:
    """Greedy translations of a batch as words made of piece numbers."""

    def translate(gates: Gates | None) -> list[str]:
        return [" ".join(f"w{i}" for i in ids) for ids in greedy(model, batch.source, batch.source_mask, gates)]

    return translate


def distance(model: Transformer, batch: Batch) -> Callable[[Gates], Tensor]:
    """How far (nats a token) the model's predictions with gates are from its own without."""

    def logits(gates: Gates | None) -> Tensor:
        states = model(batch.source, batch.source_mask, batch.target_input, gates)
        return F.log_softmax(model.projection(states), -1)

    with torch.no_grad():
        whole = logits(None)
    return lambda gates: F.kl_div(logits(gates), whole, reduction="none", log_target=True).sum(-1).mean()
