"""A model in memory with all that goes with it: vocabularies, facts, search settings, and where it is from."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.families import family_in
from heads.interop.family import Family
from heads.interop.firefox.shortlists import shortlist_of
from heads.interop.origin import Origin
from heads.interop.original import OriginalFiles
from heads.model.encoder import Encoder
from heads.model.folder import check_translates, load_model
from heads.model.shape import ModelShape, facts_of
from heads.model.transformer import Transformer
from heads.text.encoding import Encodes, vocabulary_or_labels
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import LENGTH_OFFSET, NEVER
from heads.translation.model_folder import (
    ANY_TEXT,
    EARLY_STOPPING,
    PRETRAINED,
    SCORE,
    VOCABULARIES,
    about_of,
    refuse_other_sizes,
    score_of,
    vocabulary_folder,
)
from heads.translation.stream import Translator


@dataclass(frozen=True)
class Bundle:
    """A model of ours, or a third-party one that was read as one of ours."""

    place: Path
    """Its folder, or what it was read from."""
    model: Encoder
    source: Vocabulary
    target: Encodes
    """The target vocabulary, or labels."""
    facts: Mapping[str, Any]
    """About its training, with experiment, run, shape and provenance."""
    came_with: OriginalFiles | None
    """What an imported model came with, as its authors wrote it; None for one of ours."""
    family: Family | None
    """That of these files, if there are any."""
    origin: Origin | None = None
    """Of a third-party model that was read; a folder of ours has a copy of it."""
    note: str = ""
    """What has to be said about such a model: settings that are not used, weights that it came without."""
    run: tuple[str, str] | None = None
    """The experiment and the run that it is the model of, if any."""

    @property
    def shape(self) -> ModelShape:
        """The model's shape."""
        return self.model.shape

    @cached_property
    def about(self) -> Mapping[str, Any] | None:
        """Facts about the third-party model that it was made from; None if there is none."""
        if self.origin:
            return self.origin.about
        return about_of(self.came_with.place.parent) if self.came_with else None

    @property
    def writes_any_text(self) -> bool:
        """Whether it is a third-party model that may have another task than translation."""
        return (self.about or {}).get("model_type") in ANY_TEXT

    @cached_property
    def score(self) -> dict[str, Any] | None:
        """Its score and the search it was made with; None if it was never scored."""
        return None if self.origin else score_of(self.place)

    @property
    def search(self) -> tuple[int, float]:
        """Beam size and length penalty that it was scored with, or else those of its authors."""
        if self.score is not None:
            return self.score["beam"], self.score["length_penalty"]
        if self.about is None:
            never = f"{self.place} was never scored, so its beam size is unknown"
            raise UserError(f"{never}: give --beam and --length-penalty.")
        return self.about["num_beams"], self.about["length_penalty"]

    @property
    def offset_and_stopping(self) -> tuple[int, bool | str]:
        """Offset added to the length in the length penalty, and `early_stopping`: those of its authors, or ours.

        The authors' are used for an imported model that no experiment scored.
        """
        scored = not self.origin and (self.place / SCORE).exists()
        if scored or self.about is None:
            return LENGTH_OFFSET, NEVER
        return 0, self.about.get(EARLY_STOPPING, False)

    def on(self, device: torch.device | str) -> Bundle:
        """The same with its model on a device, a copy unless it is there."""
        device, here = torch.device(device), next(self.model.parameters()).device
        if here.type == device.type and device.index in (None, here.index):
            return self
        return replace(self, model=deepcopy(self.model).to(device))

    def translates(self) -> tuple[Transformer, tuple[Vocabulary, Vocabulary]]:
        """The model and both vocabularies. Raises UserError if it does not translate, or their sizes do not fit."""
        model, source, target = check_translates(self.model, self.place), self.source, self.target
        assert isinstance(target, Vocabulary)
        refuse_other_sizes(self.place, self.shape, source, target)
        return model, (source, target)

    def write_vocabularies(self, place: Path, *, with_facts: bool = True) -> None:
        """Write both vocabularies, or subwords and labels, and, if `with_facts`, the JSON files beside them."""
        for side, one in zip(SIDES, (self.source, self.target), strict=True):
            if with_facts:
                one.stored.write(place / f"{side}.model")
            else:
                (place / f"{side}.model").write_bytes(one.stored.content)

    def write_origin(self, place: Path) -> None:
        """Write the files that the model came with, if any, into a subfolder of `place`."""
        if self.origin:
            self.origin.write(place)
        elif self.came_with:
            shutil.copytree(self.came_with.place, place / PRETRAINED, dirs_exist_ok=True)


def saved_bundle(folder: Path) -> Bundle:
    """The model of a run's or an exported folder, on the CPU, with all that goes with it.

    Raises UserError if the folder has no complete model, or no vocabularies near it.
    """
    model, place = load_model(folder), vocabulary_folder(folder)
    source, target = (vocabulary_or_labels(place / name) for name in VOCABULARIES)
    assert isinstance(source, Vocabulary)
    theirs, whole = place / PRETRAINED, folder.resolve()
    # The vocabularies of a run are in a folder beside all runs of its experiment.
    run = None if place == whole else (place.parent.name, whole.relative_to(place.parent).as_posix())
    came_with, family = (OriginalFiles(theirs), family_in(theirs)) if theirs.is_dir() else (None, None)
    return Bundle(folder, model, source, target, facts_of(folder), came_with, family, run=run)


def open_translator(
    bundle: Bundle,
    device: torch.device,
    *,
    beam: int | None,
    length_penalty: float | None,
    batch_tokens: int,
    max_subwords: int,
) -> Translator:
    """The Translator of a model, on a device.

    Search settings that are None are those it was scored with. Raises UserError as `Bundle.translates` does.
    """
    model, (source, target) = bundle.translates()
    offset, stopping = bundle.offset_and_stopping
    if beam is None or length_penalty is None:
        scored = bundle.search
        beam = scored[0] if beam is None else beam
        length_penalty = scored[1] if length_penalty is None else length_penalty
    return Translator(
        model.to(device),
        source,
        target,
        device,
        beam=beam,
        length_penalty=length_penalty,
        length_offset=offset,
        early_stopping=stopping,
        shortlist=shortlist_of(bundle.came_with, (len(source), len(target))),
        batch_tokens=batch_tokens,
        max_subwords=max_subwords,
    )
