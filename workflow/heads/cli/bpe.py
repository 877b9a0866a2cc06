"""Learn the BPE vocabularies from the training text, or collect its labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heads.base.files import UserError
from heads.base.names import CLASSIFICATION, SIDES, TASK
from heads.cli._flags import Settings
from heads.cli._signature import Written
from heads.config.settings import section
from heads.config.trainings import BpeSettings
from heads.text.labels import learn_labels
from heads.text.vocabulary import train_bpe


def run(
    settings: Settings,
    side: Annotated[Sequence[str], {"choices": SIDES}, "source, target or both"],
    text: Annotated[Sequence[Path], "training text of each side"],
    model: Annotated[Sequence[Path], Written(), "SentencePiece model of each, to write"],
) -> None:
    """Learn and write the vocabularies or the labels."""
    if not len(side) == len(text) == len(model):
        raise UserError("--side, --text and --model differ in number: give a text and a model for each side.")
    how, labelled = section(BpeSettings, settings["bpe"]), settings.get(TASK) == CLASSIFICATION
    subwords = {"source": how.source_subwords, "target": how.target_subwords}
    for name, read, written in zip(side, text, model, strict=True):
        if labelled and name == "target":
            learn_labels(read, written)
        else:
            train_bpe(read, written, how, subwords[name], framed=labelled)
