"""The encoded text of a training and of the evaluation on the way: in memory, or of the bpe stage's files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heads.base.checksums import checksum
from heads.base.files import read_references
from heads.text.batches import Pairs, read_tokens, training_pairs
from heads.text.encoding import Encodes, vocabulary_or_labels
from heads.text.vocabulary import Tokens
from heads.translation.model_folder import VOCABULARIES


@dataclass(frozen=True, slots=True)
class TrainingText:
    """Sentences with their translations, or examples with their labels, to train on and to evaluate on."""

    train: tuple[Tokens, Tokens]
    """Source and target."""
    dev: tuple[Tokens, Tokens]
    references: Sequence[str]
    """Plain text of the dev targets."""
    target: Encodes
    """The target vocabulary, or labels."""
    name: str = "the text"
    """What it is called in messages."""

    @property
    def digest(self) -> str:
        """What differs for any other text: the dev set is part of it, as logs and the best dev loss depend on it."""
        sides = [part for side in (*self.train, *self.dev) for part in (side.ids, side.lengths)]
        arrays = [np.ascontiguousarray(part).view(np.uint8).data for part in sides]
        return checksum([*arrays, *(f"{line}\n".encode() for line in self.references)])

    def pairs(self, split: str, max_subwords: int, *, labelled: bool) -> Pairs:
        """The pairs of train or dev, or its examples. Raises UserError if none is short enough."""
        sides = self.train if split == "train" else self.dev
        return training_pairs(*sides, max_subwords, f"{self.name}/{split}", labelled=labelled)


def read_training_text(data: Path, references: Path) -> TrainingText:
    """The text of the bpe stage's folder. references: the dev targets as plain text.

    Raises UserError for damaged files, and unless each dev sentence has a reference.
    """
    train, dev = read_tokens(data, "train"), read_tokens(data, "dev")
    lines = read_references(references, "The dev source", len(dev[0]))
    return TrainingText(train, dev, lines, vocabulary_or_labels(data / VOCABULARIES[1]), str(data))
