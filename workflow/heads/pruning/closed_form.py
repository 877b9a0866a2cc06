"""Remove heads and hidden units of a model in closed form: statistics of a text, ladders, the smaller model.

The surgeon says which heads or units of one sub-layer go, and in which order. How many go in each is asked of the
model's answers, with one sub-layer at a time cut down and all others whole: a ladder, from which
`heads.pruning.rungs` picks.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.encoder import Encoder
from heads.model.head_removal import OpenHeads, prune
from heads.model.shape import Place
from heads.model.sublayers import CrossAttention, FeedForwardPart, SelfAttention, SubLayer, parts_of
from heads.model.transformer import Transformer
from heads.pruning.surgeon import OutputMap, order_of_removal, refitted
from heads.text.batches import Batch

Model = TypeVar("Model", bound=Encoder)
KeptHeadsOrUnits = Mapping[Place, Sequence[int]]
"""The heads or units that sub-layers keep, by their places among those that are there; all others keep all."""
BATCH_TOKENS = 2048
"""Source subwords of a text that are read at once."""
STRIP = 192
"""Rows of a Gram matrix that are summed at once, from the diagonal on."""
SHARES = 8
"""A feed-forward network keeps at least one of so many units."""
MEASURED = (1, 3)
"""Losses are measured with so many eighths of the heads or units, and with the fewest."""


def parts_at(model: Encoder, kinds: Collection[str]) -> dict[Place, SubLayer]:
    """The sub-layers of these kinds, from bottom to top."""
    stacks = [model.encoder, *([model.decoder] if isinstance(model, Transformer) else [])]
    return {(part.kind, part.index): part for stack in stacks for part in parts_of(stack) if part.kind in kinds}


def output_of(part: SubLayer) -> tuple[nn.Linear, int]:
    """The output map of a sub-layer, and its number of heads or units."""
    if isinstance(part, FeedForwardPart):
        return part.feedforward.outer, part.feedforward.outer.in_features
    assert isinstance(part, SelfAttention | CrossAttention)
    return part.attention.output, part.attention.heads


@torch.no_grad()
def gram_matrices(model: Encoder, batches: Iterable[Batch], kinds: Collection[str]) -> dict[Place, Tensor]:
    """The sum of h h' [C, C] over what the output map of each sub-layer of these kinds is given, in evaluation mode.

    h [C] has the inputs for one subword, and 1 if the map has a bias. In double precision, on the CPU.
    """
    parts = {place: part for place, part in parts_at(model, kinds).items() if output_of(part)[1]}
    grams, real = dict[Place, Tensor](), dict[str, Tensor]()

    def listen(place: Place) -> torch.utils.hooks.RemovableHandle:
        """Add to its Gram matrix whatever the output map of a sub-layer is given from now on."""
        output, _ = output_of(parts[place])

        def add(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            """Add the rows of real subwords."""
            rows = given[0][real[place[0].partition("_")[0]]].double()
            if output.bias is not None:
                rows = torch.cat([rows, rows.new_ones(len(rows), 1)], 1)
            if place not in grams:
                grams[place] = rows.new_zeros(rows.shape[1], rows.shape[1])
            add_products(grams[place], rows)

        return output.register_forward_pre_hook(add)

    handles = [listen(place) for place in parts]
    try:
        for batch in batches:
            real |= {"enc": batch.source_mask, "dec": batch.target_mask}
            model(batch.source, batch.source_mask, batch.target_input)
    finally:
        for handle in handles:
            handle.remove()
    return {place: (gram.triu() + gram.triu(1).T).cpu() for place, gram in grams.items()}


def add_products(gram: Tensor, rows: Tensor) -> None:
    """Add the sum of h h' over the rows h of [N, C] to [C, C], on and above the diagonal: as many again equal these."""
    for first in range(0, len(gram), STRIP):
        gram[first : first + STRIP, first:].addmm_(rows[:, first : first + STRIP].T, rows[:, first:])


def output_maps(model: Encoder, grams: Mapping[Place, Tensor]) -> dict[Place, OutputMap]:
    """What the surgeon needs to know of each sub-layer, from the Gram matrices of this model."""
    found, parts = {}, parts_at(model, {kind for kind, _ in grams})
    for place, gram in grams.items():
        output, groups = output_of(parts[place])
        bias = None if output.bias is None else output.bias.cpu()
        found[place] = OutputMap.of(gram, output.weight.cpu(), bias, groups)
    return found


def save_grams(path: Path, grams: Mapping[Place, Tensor]) -> None:
    """Write Gram matrices to a file."""
    save_tensors(path, {_name_of(place): gram for place, gram in grams.items()}, {})


def load_output_maps(path: Path, model: Encoder) -> dict[Place, OutputMap]:
    """As `output_maps`, from a file by `save_grams`. Raises UserError unless it is of the attention of such a model."""
    grams, places, sizes = load_tensors(path)[0], dict[str, Place](), dict[str, tuple[int, ...]]()
    for place, part in parts_at(model, ATTENTIONS).items():
        output, heads = output_of(part)
        if heads:
            name = _name_of(place)
            places[name], sizes[name] = place, (output.in_features + (output.bias is not None),) * 2
    if {name: tuple(gram.shape) for name, gram in grams.items()} != sizes:
        raise UserError(f"{path} is of a model with other heads: delete it and run its stage again.")
    return output_maps(model, {place: grams[name] for name, place in places.items()})


def _name_of(place: Place) -> str:
    """The name of a sub-layer's Gram matrix in a file."""
    return ".".join(map(str, place))


class Surgeon:
    """Cuts sub-layers of one model down, one by one for a look, or all for good."""

    def __init__(self, model: Encoder, maps: Mapping[Place, OutputMap]) -> None:
        """maps: by `output_maps`, of this model."""
        self.model, self.maps = model, maps
        self.removal = cache(lambda place: order_of_removal(maps[place], fewest_in(maps[place])))

    def order(self, place: Place) -> list[int]:
        """The heads or units of a sub-layer in the order in which they go, by their places in it."""
        return self.removal(place)[0]

    def error(self, place: Place, number: int) -> float:
        """The squared error of a sub-layer's outputs over the text if it keeps so many heads or units."""
        gone = self.maps[place].groups - number
        return self.removal(place)[1][gone - 1] if gone > 0 else 0.0

    def kept(self, place: Place, number: int) -> list[int]:
        """Which heads or units a sub-layer keeps if it keeps so many, or all if it has fewer, by their places in it.

        Raises ValueError for fewer than it is ever cut down to.
        """
        if number < (fewest := fewest_in(self.maps[place])):
            raise ValueError(f"{number} are fewer than {fewest}")
        gone = {*self.order(place)[: max(0, self.maps[place].groups - number)]}
        return [group for group in range(self.maps[place].groups) if group not in gone]

    def ladder(self, place: Place, rungs: Sequence[int], loss: Callable[[], float]) -> dict[int, float]:
        """The loss with this sub-layer cut down to each number of heads or units in turn."""
        found = {}
        for number in rungs:
            with doing_without(self.model, self.maps, {place: self.kept(place, number)}):
                found[number] = loss()
        return found


def fewest_in(what: OutputMap) -> int:
    """The smallest number of heads or units that a sub-layer is cut down to: none, or a share of its units."""
    return 0 if what.size > 1 else fewest_units(what.groups)


def fewest_units(units: int) -> int:
    """The smallest number of so many units that a feed-forward network is cut down to."""
    return -(-units // SHARES)


def rungs_of(what: OutputMap) -> list[int]:
    """The numbers of heads or units that are tried, all but the whole: those between follow from errors."""
    most, least = what.groups, fewest_in(what)
    return sorted({max(least, most * share // SHARES) for share in MEASURED} - {most} | {least})


@contextmanager
def doing_without(model: Encoder, maps: Mapping[Place, OutputMap], kept: KeptHeadsOrUnits) -> Iterator[None]:
    """Let sub-layers do without all other heads or units while the context lasts, as in `without`."""
    kept = fewer(maps, kept)
    parts = parts_at(model, {kind for kind, _ in kept})
    outputs = {place: output_of(parts[place])[0] for place in kept}
    before = {place: copy.deepcopy(output.state_dict()) for place, output in outputs.items()}
    try:
        for place, output in outputs.items():
            whole = torch.zeros_like(maps[place].weight)
            whole[maps[place].inputs(kept[place])] = refitted(maps[place], kept[place])
            put(output, whole)
        yield
    finally:
        for place, output in outputs.items():
            output.load_state_dict(before[place])


def without(model: Model, maps: Mapping[Place, OutputMap], kept: KeptHeadsOrUnits) -> Model:
    """A smaller model without all other heads or units of these sub-layers, whose output maps are refitted."""
    kept = fewer(maps, kept)
    stays: dict[str, list[list[bool]]] = {}
    for place, part in parts_at(model, {kind for kind, _ in kept}).items():
        _, groups = output_of(part)
        stays.setdefault(place[0], []).append([group in kept.get(place, range(groups)) for group in range(groups)])
    smaller = prune(model, stays)
    parts = parts_at(smaller, stays)
    for place, left in kept.items():
        put(output_of(parts[place])[0], refitted(maps[place], left))
    return smaller


def kept_by(open_heads: OpenHeads) -> KeptHeadsOrUnits:
    """The heads that a choice keeps in each layer."""
    return {
        (kind, layer): [head for head, stays in enumerate(of_layer) if stays]
        for kind, layers in open_heads.items()
        for layer, of_layer in enumerate(layers)
        if of_layer
    }


def fewer(maps: Mapping[Place, OutputMap], kept: KeptHeadsOrUnits) -> KeptHeadsOrUnits:
    """Only those sub-layers that lose any; the others need not be refitted."""
    return {place: left for place, left in kept.items() if len(left) < maps[place].groups}


def put(output: nn.Linear, rows: Tensor) -> None:
    """Give an output map these weights [C, D], the last of which is the bias, if it has one."""
    weight = rows if output.bias is None else rows[:-1]
    with torch.no_grad():
        output.weight.copy_(weight.T)
        if output.bias is not None:
            output.bias.copy_(rows[-1])
