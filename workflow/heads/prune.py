"""Physical removal of heads: the same function with smaller matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from heads.names import ATTENTIONS
from heads.transformer import ModelShape, Transformer

OpenHeads = Mapping[str, Sequence[Sequence[bool]]]
"""By attention and layer, whether each live head of a model is to stay."""


def pruned_shape(shape: ModelShape, open_heads: OpenHeads) -> ModelShape:
    """The shape that is left when the closed heads are gone; kinds of attention that are not named stay whole."""
    live = {
        kind: tuple(
            tuple(head for head, stays in zip(layer, open_heads[kind][index], strict=True) if stays)
            if kind in open_heads
            else layer
            for index, layer in enumerate(shape.live_heads[kind])
        )
        for kind in ATTENTIONS
    }
    return ModelShape.from_dict({**shape.as_dict(), "live_heads": live})


def prune(model: Transformer, open_heads: OpenHeads) -> Transformer:
    """A new model without the closed heads, equal to `model` with their gates at zero (and all others at one)."""
    shape = model.shape
    smaller = Transformer(pruned_shape(shape, open_heads))
    weights = dict(model.state_dict())
    for kind in open_heads:
        for layer, stays in enumerate(open_heads[kind]):
            keep = torch.tensor([bool(stay) for stay in stays], dtype=torch.bool)
            columns = keep.repeat_interleave(shape.head_width)
            prefix = attention_name(kind, layer)
            for part in ("query", "key", "value"):
                weights[f"{prefix}.{part}.weight"] = weights[f"{prefix}.{part}.weight"][columns]
            weights[f"{prefix}.output.weight"] = weights[f"{prefix}.output.weight"][:, columns]
    smaller.to(model.projection.weight).load_state_dict(weights)
    return smaller.train(model.training)


def attention_name(kind: str, layer: int) -> str:
    """The name of an attention module inside `Transformer`."""
    stack = "encoder" if kind == "enc_self" else "decoder"
    return f"{stack}.{layer}.{'cross' if kind == 'dec_enc' else 'self'}_attention"


def open_heads_of(rows: Iterable[Mapping[str, str]], shape: ModelShape) -> dict[str, list[list[bool]]]:
    """Which live heads of `shape` stay, by the rows of a table `heads.tsv`; heads it does not name stay."""
    closed = {(row["attention"], int(row["layer"]), int(row["head"])) for row in rows if row["open"] == "0"}
    return {
        kind: [[(kind, layer, head) not in closed for head in live] for layer, live in enumerate(layers)]
        for kind, layers in shape.live_heads.items()
    }
