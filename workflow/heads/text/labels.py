"""The labels of examples, in place of a target vocabulary."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heads.base.files import UserError, open_text
from heads.base.seals import checksum
from heads.text.vocabulary import CHECKSUM, facts_beside, facts_of, write_model

LABELS = "labels"


class Labels:
    """The labels of examples; ids are indices. Learnt ones are sorted, those of an imported model in its order."""

    def __init__(self, model: Path) -> None:
        self.path = model
        facts = facts_of(model)
        words = facts.get(LABELS)
        if not isinstance(words, list) or facts.get(CHECKSUM) != checksum([_listed(words)]):
            raise UserError(f"{facts_beside(model)} holds no valid labels: delete it and run the bpe stage again.")
        self.words: list[str] = words

    def __len__(self) -> int:
        return len(self.words)

    def arrays(self, lines: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The id of the label in each line, and the labels a line: one. Raises UserError for an unknown label."""
        place = {word: number for number, word in enumerate(self.words)}
        if strange := [line for line in lines if line not in place]:
            raise UserError(
                f"{strange[0]!r} is not one of the labels of the training text, which are {', '.join(self.words)}: "
                "correct it, or remove its examples."
            )
        return np.array([place[line] for line in lines], np.int32), np.ones(len(lines), np.int64)


def learn_labels(text: Path, model: Path) -> None:
    """Write the distinct lines of a text, sorted, as labels to `model`. Raises UserError for fewer than two."""
    with open_text(text) as stream:
        words = sorted({line.rstrip("\n") for line in stream})
    if len(words) < 2:
        raise UserError(f"{text} has fewer than two labels: give the label of one example in each line.")
    write_labels(words, model)


def write_labels(words: Sequence[str], model: Path) -> None:
    """Write labels in this order, one per line, to `model` and to the facts beside it."""
    write_model(model, _listed(words), {LABELS: [*words]})


def _listed(words: Sequence[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()
