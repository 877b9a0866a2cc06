"""Prune one model in closed form on its own outputs for a text: heads go, and output maps are refitted, in one pass."""

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heads.base.files import UserError, write_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS, SIDES
from heads.base.provenance import made_by
from heads.model.alone import ExampleEncoder
from heads.model.folder import WEIGHTS, load_model, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.prefixes import Place, Prefixes
from heads.model.shape import facts_of
from heads.one_model.measuring import UNTRAINED
from heads.one_model.workplace import Workplace
from heads.pruning.closed_form import (
    SHARES,
    Ladder,
    Surgeon,
    fewest_units,
    interpolated,
    output_maps,
    picked,
    rungs_of,
    without,
)
from heads.text.batches import Batch, Pairs, measured_pairs
from heads.text.vocabulary import Tokens
from heads.translation.stream import Report

STUDIED = 60_000
"""About how many source subwords the output maps are refitted on."""
ASKED = 100
"""The most held-out sentences on which losses are compared."""
BATCH_TOKENS = 2048
STEP = 64
"""Hidden units go in steps of this number, for which engines have fast products; in narrow models one by one."""


class Surgery:
    """One model, from which any number of heads of a scope, and of hidden units, can be taken."""

    def __init__(self, place: Workplace, kinds: Collection[str], device: torch.device, report: Report) -> None:
        """kinds: of attention and of feed-forward stacks to be cut. report: called with what is being done.

        The text of every split must have been answered.
        """
        self.place, self.kinds, self.device, self.report = place, kinds, device, report
        self.model = load_model(place.baseline).to(device)

    def smaller(self, heads: int, units: int | None, out: Path) -> None:
        """Write the model with so many heads, and units in an average layer, into a folder, unless it is there.

        heads: used if heads are among the kinds. units: None, or about that number, in steps of STEP.
        """
        if (out / WEIGHTS).is_file():
            return
        ladders = {place: ladder for place, ladder in self.ladders.items() if place[0] in ATTENTIONS}
        numbers = picked(ladders, heads) if ladders else {}
        if units is not None:
            numbers |= self.units(units)
        model = without(self.model, self.surgeon, numbers)
        out.mkdir(parents=True, exist_ok=True)
        write_tsv(out / "heads.tsv", head_rows(model.shape), COLUMNS)
        save_folder(model, out, {**UNTRAINED, **facts_of(self.place.baseline)}, made_by())

    def units(self, average: int) -> dict[Place, int]:
        """The number of hidden units in each layer, if they are to have so many on average."""
        own = {place: ladder for place, ladder in self.ladders.items() if place[0] in FEEDFORWARDS}
        total = total_of_units([*map(max, own.values())], average)
        return picked({place: interpolated(ladder, step_of(max(ladder))) for place, ladder in own.items()}, total)

    @cached_property
    def surgeon(self) -> Surgeon:
        """The surgeon, once it has read the text."""
        self.report("reading the text once for the outputs of all heads and units")
        pairs = self.pairs("train")
        order = np.random.default_rng(1).permutation(pairs.index)
        read = pairs.only(order[: 1 + np.searchsorted(np.cumsum(pairs.source.lengths[order]), STUDIED)])
        batches = (batch.to(self.device) for _, batch in read.in_order(BATCH_TOKENS))
        return Surgeon(self.model, output_maps(self.model, batches, self.kinds))

    @cached_property
    def ladders(self) -> dict[Place, Ladder]:
        """What each layer loses with each number of heads, or some numbers of units, all other layers being whole."""
        surgeon, whole = self.surgeon, self.loss()
        self.report("comparing what each layer loses with fewer of them")
        found: dict[Place, Ladder] = {}
        for place, what in surgeon.maps.items():
            fewer = surgeon.ladder(place, rungs_of(what), partial(self.loss, place))
            found[place] = {**{number: loss - whole for number, loss in fewer.items()}, what.groups: 0.0}
        return found

    @cached_property
    def held_out(self) -> list[Batch]:
        """The sentences on which losses are compared."""
        pairs = self.pairs("dev")
        return [batch.to(self.device) for _, batch in pairs.only(pairs.index[:ASKED]).in_order(BATCH_TOKENS)]

    @cached_property
    def prefixes(self) -> Prefixes:
        """States of the held-out sentences below a layer that has fewer heads."""
        return Prefixes(self.model)

    @cached_property
    def vectors(self) -> list[Tensor]:
        """The held-out sentences' vectors by the model as it was."""
        return [self.states(number, batch, None) for number, batch in enumerate(self.held_out)]

    def pairs(self, split: str) -> Pairs:
        """The text of a split with the model's answers."""
        source, target = (Tokens(self.place.tokens(split, side)) for side in SIDES)
        return measured_pairs(source, target, labelled=self.model.shape.alone)

    @torch.no_grad()
    def loss(self, changed: Place | None = None) -> float:
        """What the model, with other weights in one sub-layer, loses on held-out sentences.

        In nats an answer; of a sentence encoder, one minus the mean cosine with its vectors as they were.
        """
        total, answers = 0.0, 0
        embeds = self.model.shape.embeds
        vectors = self.vectors if embeds else []
        for number, batch in enumerate(self.held_out):
            states = self.states(number, batch, changed)
            if embeds:
                total += float((1 - (states * vectors[number]).sum(-1)).sum())
                answers += len(states)
            else:
                logits = self.model.projection(states[batch.target_mask])
                total += float(F.cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum"))
                answers += len(logits)
        return total / answers

    @torch.no_grad()
    def states(self, number: int, batch: Batch, changed: Place | None) -> Tensor:
        """States [B, T, D] from which the answers to a held-out batch follow."""
        memory = self.prefixes.encode(number, batch.source, batch.source_mask, changed=changed)
        if isinstance(self.model, ExampleEncoder):
            return self.model.summed_up(memory, batch.source_mask)
        return self.prefixes.decode(number, batch.target_input, memory, batch.source_mask, changed=changed)


def step_of(units: int) -> int:
    """In what steps the hidden units of a feed-forward network go."""
    return STEP if units >= SHARES * STEP else 1


def total_of_units(layers: Sequence[int], average: int) -> int:
    """How many hidden units of layers with so many are kept, if a layer is to have an average number, in whole steps.

    Raises UserError if that is no fewer than there are, or fewer than layers are cut down to.
    """
    most, step = sum(layers), step_of(max(layers))
    least = sum(units - (units - fewest_units(units)) // step * step for units in layers)
    total = most - (most - average * len(layers)) // step * step
    if not least <= total < most:
        fewest, many = -(-least // len(layers)), (most - step) // len(layers)
        raise UserError(f"--feedforward {average} is not possible: give {fewest} to {many}.")
    return total
