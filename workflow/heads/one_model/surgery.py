"""Prune one model in closed form on its own outputs for a text: heads go, and output maps are refitted, in one pass."""

from copy import deepcopy
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from heads.base.files import write_tsv
from heads.base.names import SCOPES, SIDES
from heads.base.provenance import made_by
from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder
from heads.model.folder import WEIGHTS, load_model, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.shape import facts_of
from heads.one_model.measuring import UNTRAINED
from heads.one_model.workplace import Workplace
from heads.pruning.closed_form import Ladder, Place, Surgeon, output_maps, picked, without
from heads.text.batches import Pairs, measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.evaluation import fidelity, measured
from heads.translation.stream import Report

STUDIED = 60_000
"""About how many source subwords the output maps are refitted on."""
ASKED = 100
"""The most held-out sentences on which losses are compared."""
READING = TrainingSettings(micro_batch_tokens=2048)


class Surgery:
    """One model, from which any number of heads of a scope can be taken."""

    def __init__(self, place: Workplace, scope: str, device: torch.device, report: Report) -> None:
        """report: called with what is being done. The text of every split must have been answered."""
        self.place, self.scope, self.device, self.report = place, scope, device, report
        self.model = load_model(place.baseline).to(device)

    def smaller(self, kept: int, out: Path) -> None:
        """Write the model with so many heads into a folder, unless it is there."""
        if (out / WEIGHTS).is_file():
            return
        numbers = picked(self.ladders, kept)
        model = without(self.model, self.surgeon, numbers)
        out.mkdir(parents=True, exist_ok=True)
        write_tsv(out / "heads.tsv", head_rows(model.shape), COLUMNS)
        save_folder(model, out, {**UNTRAINED, **facts_of(self.place.baseline)}, made_by())

    @cached_property
    def surgeon(self) -> Surgeon:
        """The surgeon, once it has read the text."""
        self.report("reading the text once for the outputs of all heads")
        pairs = self.pairs("train")
        order = np.random.default_rng(1).permutation(pairs.index)
        read = pairs.only(order[: 1 + np.searchsorted(np.cumsum(pairs.source.lengths[order]), STUDIED)])
        batches = (batch.to(self.device) for _, batch in read.in_order(READING.micro_batch_tokens))
        return Surgeon(self.model, output_maps(self.model, batches, SCOPES[self.scope]))

    @cached_property
    def ladders(self) -> dict[Place, Ladder]:
        """What each layer loses with each number of heads, all other layers being whole."""
        surgeon, whole = self.surgeon, self.loss()
        self.report("comparing what each layer loses with fewer heads")
        return {
            place: {
                number: loss - whole
                for number, loss in surgeon.ladder(place, range(what.groups + 1), self.loss).items()
            }
            for place, what in surgeon.maps.items()
        }

    @cached_property
    def held_out(self) -> Pairs:
        """The sentences on which losses are compared."""
        pairs = self.pairs("dev")
        return pairs.only(pairs.index[:ASKED])

    @cached_property
    def first(self) -> Encoder:
        """The model as it was."""
        return deepcopy(self.model)

    def pairs(self, split: str) -> Pairs:
        """The text of a split with the model's answers."""
        source, target = (Tokens(self.place.tokens(split, side)) for side in SIDES)
        return measured_pairs(source, target, labelled=self.model.shape.alone)

    def loss(self) -> float:
        """What the model, as it is now, loses on held-out sentences: nats an answer, or the drift of vectors."""
        if self.model.shape.embeds:
            return fidelity(self.held_out, self.first, READING, self.device, self.model, None)["dev_loss"]
        with torch.no_grad():
            return measured(self.model, self.held_out, None, READING, self.device)[0]
