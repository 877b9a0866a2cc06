"""The shortlist that a Marian model came with, in our ids: the likely target subwords for each source sentence."""

import sys

import numpy as np
import torch
from torch import Tensor

from heads.base.files import UserError
from heads.interop.firefox.importing import numberings_in, parts_of
from heads.interop.firefox.parts import is_marian
from heads.interop.firefox.shortlist import Shortlist, read_shortlist
from heads.interop.original import OriginalFiles
from heads.text.special_ids import EOS
from heads.translation.beam_search import Candidates


class OurShortlist:
    """A shortlist in our ids; with it, a search multiplies by a small part of a large vocabulary."""

    def __init__(self, lists: Shortlist, source: tuple[int, ...], target: tuple[int, ...], *, shared: bool) -> None:
        """source, target: Marian's id for each of ours, or -1. shared: both sides have one vocabulary."""
        self.lists, self.shared = lists, shared
        self.theirs, ours = np.array(source), np.array(target)
        self.ours = np.zeros(ours.max() + 1, np.int64)
        self.ours[ours[ours >= 0]] = np.flatnonzero(ours >= 0)

    def of(self, source: Tensor, device: torch.device) -> Candidates:
        """The candidates, on a device, of source sentences [B, S]: each has its own, whatever the others in the batch.

        source: on the CPU, where the lists are.
        """
        sentences = []
        for ids in source.tolist():
            theirs = [one for one in self.theirs[ids].tolist() if one >= 0]
            found = self.lists.candidates(theirs)
            # As Marian does, since names and numbers are often copied.
            found = np.union1d(found, theirs) if self.shared else found
            sentences.append(np.union1d(self.ours[found], [EOS]))
        every = np.unique(np.concatenate(sentences))
        of = torch.zeros(len(sentences), len(every), dtype=torch.bool)
        for row, own in zip(of, sentences, strict=True):
            row[torch.from_numpy(np.searchsorted(every, own))] = True
        return Candidates(torch.from_numpy(every).to(device), of.to(device))


def shortlist_of(came_with: OriginalFiles | None, sizes: tuple[int, int]) -> OurShortlist | None:
    """The shortlist among the original files of an imported model, or None.

    sizes: of source and target vocabulary. A shortlist that is damaged or does not fit is reported on standard error
    and not used: the model translates without it.
    """
    return came_with.once(_shortlist_in, sizes) if came_with else None


def _shortlist_in(came_with: OriginalFiles, sizes: tuple[int, int]) -> OurShortlist | None:
    if not (is_marian(came_with.place) and (parts := came_with.once(parts_of)).shortlist):
        return None
    # Padding and BOS are ours alone.
    source, target = (size - 2 for size in sizes)
    try:
        lists = read_shortlist(parts.shortlist, (source, target))
    except UserError as error:
        print(f"{error} Until then all subwords are candidates.", file=sys.stderr)
        return None
    ours = came_with.once(numberings_in, (source, target))
    shared = len({*(parts.numbers or parts.vocabularies)}) == 1
    return OurShortlist(lists, ours[0].rows, ours[1].rows, shared=shared)
