"""The labels of examples, in place of a target vocabulary."""

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heads.base.files import UserError, normalise, open_text
from heads.text.stored import Stored, facts_beside, stored_at

LABELS = "labels"


class Labels:
    """The labels of examples; ids are indices. Learnt ones are sorted, those of an imported model in its order."""

    def __init__(self, model: Path, stored: Stored | None = None) -> None:
        """model: their file, or what they are called in messages if they are `stored` in memory."""
        self.path = model
        self.stored = stored or stored_at(model)
        words = self.stored.facts.get(LABELS)
        if not isinstance(words, list):
            raise UserError(f"{facts_beside(model)} holds no valid labels: delete it and run the bpe stage again.")
        self.words: list[str] = words

    def __len__(self) -> int:
        return len(self.words)

    def named(self, lines: Iterable[str], origin: object, numbers: Iterable[int] | None = None) -> list[str]:
        """The label in each line as it is spelled here.

        Lines may differ from it in case and blanks. origin: where they are from, such as a file. numbers: of the
        lines there; by default, they count from 1. Raises UserError for an unknown label, with both.
        """
        known = {spelled(word): word for word in self.words} | {word: word for word in self.words}
        found = []
        for number, line in zip(count(1) if numbers is None else numbers, lines, strict=False):
            if (word := known.get(line, known.get(spelled(line)))) is None:
                raise UserError(
                    f"{origin}, line {number}: {line!r} is not one of the labels, which are {', '.join(self.words)}: "
                    "correct it, or remove its example."
                )
            found.append(word)
        return found

    def arrays(self, lines: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The id of the label in each line, and the labels a line: one. Raises UserError as `named` does."""
        place = {word: number for number, word in enumerate(self.words)}
        found = [place[word] for word in self.named(lines, "the text")]
        return np.array(found, np.int32), np.ones(len(lines), np.int64)


def spelled(label: str) -> str:
    """A label as labels are compared: without regard to case and blanks around it."""
    return normalise(label).casefold()


def learn_labels(text: Path, model: Path) -> None:
    """Write the distinct labels in a text's lines, sorted, to `model`. Raises UserError for fewer than two."""
    with open_text(text) as stream:
        lines = sorted({normalise(line) for line in stream}, reverse=True)
    words = sorted({spelled(line): line for line in lines}.values())
    if len(words) < 2:
        raise UserError(f"{text} has fewer than two labels: give the label of one example in each line.")
    write_labels(words, model)


def write_labels(words: Sequence[str], model: Path) -> None:
    """Write labels in this order, one per line, to `model` and to the facts beside it."""
    stored_labels(words).write(model)


def stored_labels(words: Sequence[str]) -> Stored:
    """Labels in this order, as they are stored."""
    return Stored("".join(f"{word}\n" for word in words).encode(), {LABELS: [*words]})
