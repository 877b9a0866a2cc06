"""Run an encoder with many different gates on one text, each time from the first layer with a masked head.

Below that layer all states are the same as without gates, so they are computed once and cached. Letters of shapes as in
`heads.model.encoder`.
"""

from torch import Tensor

from heads.model.encoder import Encoder, to_attention
from heads.model.sublayers import Gates, Pass, layers_of, run_through

MOST_BYTES = 2**30
"""Limit on the size of all cached states; batches beyond it are encoded from the bottom every time."""


class Prefixes:
    """Cached states of numbered batches before each layer of an encoder with all heads and constant weights."""

    def __init__(self, model: Encoder, room: int = MOST_BYTES) -> None:
        """room: bytes of states that may be cached; 0: none, for a text that is read only once."""
        self.model, self.room = model, room
        self.kept: dict[int, list[Tensor]] = {}
        """By batch number: the states [B, S, D] before each layer from the lowest on, and after the last."""

    def encode(self, number: int, source: Tensor, source_mask: Tensor, gates: Gates | None = None) -> Tensor:
        """The same as `Encoder.encode`, with cached states where possible.

        number: of the batch, whose source [B, S] and mask must be the same in every call.
        """
        layers, seen = layers_of(self.model.encoder), Pass(gates, mask=to_attention(source_mask))
        masked = (layer for layer, gate in enumerate(gates["enc_self"] if gates else []) if bool((gate != 1).any()))
        first, kept = next(masked, len(layers)), self.kept.get(number, [])
        states = kept[: first + 1] or [self.model.source_embedding(source)]
        for layer in layers[len(states) - 1 :]:
            states.append(run_through(layer.parts, states[-1], seen))
        new = states[len(kept) : first + 1]
        size = sum(one.nbytes for one in new)
        if size <= self.room:
            self.room -= size
            self.kept.setdefault(number, []).extend(new)
        normed: Tensor = self.model.encoder_norm(states[-1])
        return normed
