"""Run a model with many different changes on one text, each time from the lowest layer that is changed.

A change is a masked head, or other weights of one layer. Below it all states are as without it, so they are computed
once and cached. Letters of shapes as in `heads.model.encoder` and `heads.model.transformer`.
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from heads.model.encoder import Encoder, pass_over
from heads.model.shape import Place
from heads.model.sublayers import Gates, Pass, layers_of, run_through
from heads.model.transformer import Transformer
from heads.text.packed import Spans

MOST_BYTES = 2**30
"""Limit on the size of all cached states; batches beyond it are run from the bottom every time."""
ALL = -1
"""In place of a layer: not even the embeddings are as without the change."""


class CachedStates:
    """Cached states of numbered batches before each layer of a model with all heads and, but for changes, its weights.

    For each batch, `encode` and `decode` are called with the same ids and masks every time. `changed` is the sub-layer
    whose weights are not the model's own in this call, if there is one.
    """

    def __init__(self, model: Encoder, room: int = MOST_BYTES) -> None:
        """room: bytes of states that may be cached; 0: none, for a text that is read only once."""
        self.model, self.room = model, room
        self.kept: dict[tuple[str, int], list[Tensor]] = {}
        """By stack and batch number: the states before each layer from the lowest on, and after the last."""

    def encode(
        self,
        number: int,
        source: Tensor,
        real: Tensor | Spans,
        gates: Gates | None = None,
        changed: Place | None = None,
    ) -> Tensor:
        """The same as `Encoder.encode`, with cached states where possible. number: of the batch."""
        first, spans = self._first("enc", gates, changed), real if isinstance(real, Spans) else None
        embed = partial(self.model.source_embedding, source, spans=spans)
        states = self._run(("enc", number), self.model.encoder, embed, pass_over(real, gates), first)
        normed: Tensor = self.model.encoder_norm(states)
        return normed

    def decode(
        self,
        number: int,
        target: Tensor,
        memory: Tensor,
        real: Tensor | Spans,
        gates: Gates | None = None,
        changed: Place | None = None,
        spans: Spans | None = None,
    ) -> Tensor:
        """The same as `Transformer.decode`, with cached states where possible. memory: by `encode`."""
        model = self.model
        assert isinstance(model, Transformer)
        seen, first = pass_over(real, gates, memory=memory, spans=spans), self._first("dec", gates, changed)
        if self._first("enc", gates, changed) < len(model.encoder):
            first = ALL
        embed = partial(model.target_embedding, target, spans=spans)
        states = self._run(("dec", number), model.decoder, embed, seen, first)
        normed: Tensor = model.decoder_norm(states)
        return normed

    def _first(self, stack: str, gates: Gates | None, changed: Place | None) -> int:
        """The lowest changed layer of a stack; their number if there is none."""
        layers = [layer for kind, layer in [changed] if kind.startswith(stack)] if changed else []
        for kind, of_layers in (gates or {}).items():
            if kind.startswith(stack):
                layers += [layer for layer, gate in enumerate(of_layers) if bool((gate != 1).any())]
        return min(layers, default=len(getattr(self.model, "encoder" if stack == "enc" else "decoder", ())))

    def _run(
        self, key: tuple[str, int], stack: nn.ModuleList, embed: Callable[[], Tensor], seen: Pass, first: int
    ) -> Tensor:
        """The states after the last layer; those up to the first changed layer are cached."""
        layers, kept = layers_of(stack), self.kept.get(key, [])
        states = kept[: first + 1] or [embed()]
        for layer in layers[len(states) - 1 :]:
            states.append(run_through(layer.parts, states[-1], seen))
        new = states[len(kept) : first + 1]
        size = sum(one.nbytes for one in new)
        if size <= self.room:
            self.room -= size
            self.kept.setdefault(key, []).extend(new)
        return states[-1]
