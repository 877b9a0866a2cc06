"""Ladders: what a whole model loses on held-out text while one sub-layer alone has fewer heads or hidden units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from heads.base.names import HEAD
from heads.model.alone import ExampleEncoder
from heads.model.encoder import Encoder
from heads.model.prefixes import Prefixes
from heads.model.shape import Place
from heads.pruning.closed_form import Surgeon
from heads.pruning.rungs import Ladder
from heads.pruning.surgeon import OutputMap
from heads.text.batches import Batch

COLUMNS = (*HEAD, "last", "loss_change")


class HeldOut:
    """Held-out sentences on which losses of one model are compared, each time from the layer that is changed."""

    def __init__(self, model: Encoder, batches: Sequence[Batch]) -> None:
        """batches: on the model's device."""
        self.model, self.batches, self.prefixes = model, batches, Prefixes(model)

    @torch.no_grad()
    def loss(self, changed: Place | None = None) -> float:
        """What the model, with other weights in one sub-layer, loses.

        In nats an answer; of a sentence encoder, one minus the mean cosine with its vectors as they were.
        """
        total, answers = 0.0, 0
        embeds = self.model.shape.embeds
        vectors = self.vectors if embeds else []
        for number, batch in enumerate(self.batches):
            states = self.states(number, batch, changed)
            if embeds:
                total += float((1 - (states * vectors[number]).sum(-1)).sum())
                answers += len(states)
            else:
                logits = self.model.projection(states[batch.target_mask])
                total += float(F.cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum"))
                answers += len(logits)
        return total / answers

    @cached_property
    def vectors(self) -> list[Tensor]:
        """The sentences' vectors by the model as it was."""
        return [self.states(number, batch, None) for number, batch in enumerate(self.batches)]

    @torch.no_grad()
    def states(self, number: int, batch: Batch, changed: Place | None) -> Tensor:
        """States [B, T, D] from which the answers to a batch follow."""
        memory = self.prefixes.encode(number, batch.source, batch.source_mask, changed=changed)
        if isinstance(self.model, ExampleEncoder):
            return self.model.summed_up(memory, batch.source_mask)
        return self.prefixes.decode(number, batch.target_input, memory, batch.source_mask, changed=changed)


def ladders_of(surgeon: Surgeon, held_out: HeldOut, rungs: Callable[[OutputMap], Sequence[int]]) -> dict[Place, Ladder]:
    """What is lost with each sub-layer at each of its rungs in turn, all others being whole, and 0 if it is whole."""
    whole = held_out.loss()
    found: dict[Place, Ladder] = {}
    for place, what in surgeon.maps.items():
        fewer = surgeon.ladder(place, rungs(what), partial(held_out.loss, place))
        found[place] = {**{number: loss - whole for number, loss in fewer.items()}, what.groups: 0.0}
    return found


def every_number(what: OutputMap) -> list[int]:
    """The numbers of heads for which losses are measured: all but the whole."""
    return list(range(what.groups))


def ladder_rows(surgeon: Surgeon, ladders: Mapping[Place, Ladder]) -> Iterator[dict[str, object]]:
    """A row with COLUMNS for each head of each layer.

    last: 1 for the head that is the last to go in its layer, 2 for the one before it, and so on. loss_change: what is
    lost in nats an answer if it and all that go before it are gone.
    """
    shape = surgeon.model.shape
    for kind, layer, head in shape.heads():
        live, order = shape.live_heads[kind][layer], surgeon.order((kind, layer))
        last = len(live) - order.index(live.index(head))
        yield dict(zip(COLUMNS, (kind, layer, head, last, ladders[kind, layer][last - 1]), strict=True))
