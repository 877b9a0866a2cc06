"""An encoder under many gates on one text: a pass begins at the first layer that has a masked head.

Below that layer no state is another than without gates, so that it is computed once and kept. Letters of shapes as in
`heads.model.encoder`.
"""

from __future__ import annotations

from torch import Tensor

from heads.model.encoder import Encoder, to_attention
from heads.model.sublayers import Gates, Pass, layers_of, run_through

MOST_BYTES = 2**30
"""Of all states that are kept; batches for which there is no room are read from the bottom every time."""


class Prefixes:
    """What an encoder, whose weights stay as they are, made of numbered batches before each layer with all heads."""

    def __init__(self, model: Encoder, room: int = MOST_BYTES) -> None:
        """room: bytes of states that may be kept; 0: none, for a text that is read once."""
        self.model, self.room = model, room
        self.kept: dict[int, list[Tensor]] = {}
        """By number of a batch: the states [B, S, D] before each layer from the lowest on, and behind the last."""

    def encode(self, number: int, source: Tensor, source_mask: Tensor, gates: Gates | None = None) -> Tensor:
        """The same as `Encoder.encode`.

        number: of the batch, whose source [B, S] and mask are the same at every call.
        """
        layers, seen = layers_of(self.model.encoder), Pass(gates, mask=to_attention(source_mask))
        first, kept = _first_masked(gates, len(layers)), self.kept.get(number, [])
        states = kept[: first + 1] or [self.model.source_embedding(source)]
        for layer in layers[len(states) - 1 :]:
            states.append(run_through(layer.parts, states[-1], seen))
        self._keep(number, states[len(kept) : first + 1])
        normed: Tensor = self.model.encoder_norm(states[-1])
        return normed

    def _keep(self, number: int, states: list[Tensor]) -> None:
        """Keep more states of a batch, where there is room for them."""
        size = sum(one.numel() * one.element_size() for one in states)
        if size <= self.room:
            self.room -= size
            self.kept.setdefault(number, []).extend(states)


def _first_masked(gates: Gates | None, layers: int) -> int:
    """The number of the first encoder layer that has a gate which is not open; that of layers where none has."""
    own = gates["enc_self"] if gates else []
    return next((layer for layer, gate in enumerate(own) if bool((gate != 1).any())), layers)
