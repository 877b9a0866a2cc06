"""The labels of examples, in the place of a target's vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heads.base.files import UserError, open_text
from heads.base.seals import checksum
from heads.text.vocabulary import CHECKSUM, facts_beside, facts_of, write_model

LABELS = "labels"


class Labels:
    """The labels of examples, in the place of a target's vocabulary: the id of one is its place among all.

    Those that are learnt here are sorted; those of an imported model stand in its own order.
    """

    def __init__(self, model: Path) -> None:
        self.path = model
        facts = facts_of(model)
        words = facts.get(LABELS)
        if not isinstance(words, list) or facts.get(CHECKSUM) != checksum([_listed(words)]):
            raise UserError(f"{facts_beside(model)} names no labels: delete it and run the bpe stage again.")
        self.words: list[str] = words

    def __len__(self) -> int:
        return len(self.words)

    def arrays(self, lines: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The id of the label in each line, and how many there are in each, which is one.

        Raises UserError for a label that is not known.
        """
        place = {word: number for number, word in enumerate(self.words)}
        if strange := [line for line in lines if line not in place]:
            raise UserError(
                f"{strange[0]!r} is a label that the training text does not have, which has {', '.join(self.words)}: "
                "correct it, or take its examples out."
            )
        return np.array([place[line] for line in lines], np.int32), np.ones(len(lines), np.int64)


def learn_labels(text: Path, model: Path) -> None:
    """Write the distinct lines of a text file, sorted, to `model`, and beside it as facts.

    Raises UserError where there are less than two.
    """
    with open_text(text) as stream:
        words = sorted({line.rstrip("\n") for line in stream})
    if len(words) < 2:
        raise UserError(f"{text} has fewer than two labels: it is to have the label of an example in each line.")
    write_labels(words, model)


def write_labels(words: Sequence[str], model: Path) -> None:
    """Write labels in this order, a line each, and beside them as facts."""
    write_model(model, _listed(words), {LABELS: [*words]})


def _listed(words: Sequence[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()
