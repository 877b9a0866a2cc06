"""Ladders: how far a model's answers move on held-out text while one sub-layer alone has fewer heads or units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from heads.base.names import HEAD
from heads.model.cached_states import CachedStates
from heads.model.encoder import Encoder
from heads.model.encoder_only import ExampleEncoder
from heads.model.shape import Place
from heads.pruning.closed_form import Surgeon, doing_without
from heads.pruning.rungs import Ladder
from heads.pruning.surgeon import OutputMap
from heads.text.batches import Batch, Pairs
from heads.text.packed import Packed

LADDER_COLUMNS = (*HEAD, "last", "divergence")
COMPARED = 400
"""Source subwords of a text whose answers are compared at once: products of fewer rows are slower."""
ROWS = 64
"""The number of answers whose distributions are in memory at once."""
LIKELIEST = 64
"""The probabilities of each distribution that are kept apart; all others are taken together."""
LEAST = 1e-9
"""The least probability, so that its logarithm is finite."""


def compared_on(pairs: Pairs, device: torch.device, sentences: int | None = None) -> list[Batch | Packed]:
    """Batches of the first sentences of a text, all by default, without padding, to compare answers on."""
    return [pairs.unpadded(members).to(device) for members in pairs.by_length(COMPARED, sentences)]


class HeldOut:
    """Held-out sentences on which a model is compared with what it was, each time from the layer that is changed."""

    def __init__(self, model: Encoder, batches: Sequence[Batch | Packed], whole: "HeldOut | None" = None) -> None:
        """batches: from `compared_on`. whole: the same with the whole model, unless this is it."""
        self.model, self.batches, self.cached = model, batches, CachedStates(model)
        self.whole: list[Tensor | tuple[Tensor, Tensor]] = (
            whole.whole if whole else [*map(self.answers, range(len(batches)))]
        )

    @torch.no_grad()
    def divergence(self, changed: Place | None) -> float:
        """How far the answers are from what they were, now that one sub-layer has other weights (None: none has).

        In nats an answer, the Kullback-Leibler divergence of the whole model's distributions from these, with all but
        the likeliest of the vocabulary taken together. The loss on references would do only for a model that was
        trained on such references: one that learnt from a teacher is too sure of itself on what people wrote, so that
        losing a head may lower its loss there. Of a sentence encoder, one minus the mean cosine of its vectors with
        the whole's.
        """
        total, answers = 0.0, 0
        for number, (batch, whole) in enumerate(zip(self.batches, self.whole, strict=True)):
            states = self.states(number, batch, changed)
            if isinstance(whole, Tensor):
                total += float((1 - (states * whole).sum(-1)).sum())
            else:
                total += float(self.nats(states, *whole))
            answers += len(states)
        return total / answers

    def answers(self, number: int) -> Tensor | tuple[Tensor, Tensor]:
        """The vectors that a model gives for a batch, or its `likeliest` answers."""
        states = self.states(number, self.batches[number], None)
        return states if self.model.shape.embeds else self.likeliest(states)

    @torch.no_grad()
    def likeliest(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The whole model's likeliest answers [N, K] from its states [N, D], and their probabilities."""
        parts = (self.chances(part) for part in states.split(ROWS))
        found = [part.topk(min(LIKELIEST, part.shape[-1])) for part in parts]
        return torch.cat([part.indices for part in found]), torch.cat([part.values for part in found])

    def nats(self, states: Tensor, answers: Tensor, wanted: Tensor) -> Tensor:
        """The summed divergence [] from the whole's probabilities [N, K] of its likeliest answers and of all others."""
        parts = zip(states.split(ROWS), answers.split(ROWS), strict=True)
        given = torch.cat([self.chances(part).gather(1, likely) for part, likely in parts])
        both = [torch.cat([each, 1 - each.sum(-1, keepdim=True)], -1).clamp_min(LEAST) for each in (given, wanted)]
        return F.kl_div(both[0].log(), both[1], reduction="sum")

    def chances(self, states: Tensor) -> Tensor:
        """The probabilities [N, V] of the answers that follow from some states [N, D]."""
        logits: Tensor = self.model.projection(states)
        # In their place, as new memory costs time.
        return torch.softmax(logits, -1, out=logits)

    @torch.no_grad()
    def states(self, number: int, batch: Batch | Packed, changed: Place | None) -> Tensor:
        """States [N, D] from which the answers to a batch follow, without padding."""
        if isinstance(batch, Batch):  # examples, with one answer each
            assert isinstance(self.model, ExampleEncoder)
            states = self.cached.encode(number, batch.source, batch.source_mask, changed=changed)
            return self.model.pool(states, batch.source_mask)[:, 0]
        spans, own = batch.source_spans, batch.target_spans
        memory = self.cached.encode(number, batch.source, spans, changed=changed)
        return self.cached.decode(number, batch.target_input, memory, spans, changed=changed, spans=own)


def ladders_of(
    surgeon: Surgeon,
    held_out: HeldOut,
    rungs: Callable[[OutputMap], Sequence[int]],
    numbers: Mapping[Place, int] | None = None,
) -> dict[Place, Ladder]:
    """How far answers move with each sub-layer at each of its rungs in turn.

    numbers: how many heads or units sub-layers have by now, from which each goes down; default: all.
    """
    moved = 0.0 if numbers is None else held_out.divergence(None)
    found = dict[Place, Ladder]()
    for place, what in surgeon.maps.items():
        most = what.groups if numbers is None else numbers[place]
        below = [number for number in rungs(what) if number < most]
        found[place] = {**surgeon.ladder(place, below, partial(held_out.divergence, place)), most: moved}
    return found


def ladders_below(
    surgeon: Surgeon, whole: HeldOut, rungs: Callable[[OutputMap], Sequence[int]], numbers: Mapping[Place, int]
) -> dict[Place, Ladder]:
    """As `ladders_of`, while all sub-layers have only so many heads or units."""
    kept = {place: surgeon.kept(place, number) for place, number in numbers.items()}
    with doing_without(surgeon.model, surgeon.maps, kept):
        return ladders_of(surgeon, HeldOut(surgeon.model, whole.batches, whole), rungs, numbers)


def every_number(what: OutputMap) -> list[int]:
    """The numbers of heads that are tried: all but the whole."""
    return list(range(what.groups))


def ladder_rows(surgeon: Surgeon, ladders: Mapping[Place, Ladder]) -> Iterator[dict[str, object]]:
    """A row with LADDER_COLUMNS for each head of each layer.

    last: 1 for the head that is the last to go in its layer, 2 for the one before it, and so on. divergence: how far
    answers move, in nats each, if it and all that go before it are gone.
    """
    shape = surgeon.model.shape
    for kind, layer, head in shape.heads():
        live, order = shape.live_heads[kind][layer], surgeon.order((kind, layer))
        last = len(live) - order.index(live.index(head))
        yield dict(zip(LADDER_COLUMNS, (kind, layer, head, last, ladders[kind, layer][last - 1]), strict=True))
