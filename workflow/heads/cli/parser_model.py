"""Train a tagger and a dependency parser on a treebank with Stanza's own trainer."""

from pathlib import Path
from typing import Annotated

from heads.cli._flags import Machine, OutFolder, Settings
from heads.config.settings import section
from heads.config.trainings import ParserSettings
from heads.syntax.conllu import read_conllu
from heads.syntax.parsing import train_models
from heads.training.devices import label_of, pick


def run(
    settings: Settings,
    trees: Annotated[Path, "treebank to learn from, CoNLL-U"],
    language: Annotated[str, "language of the treebank, such as en"],
    model: Annotated[OutFolder, "folder of models to write"],
    machine: Machine,
) -> str:
    """Train and write the folder."""
    how = section(ParserSettings, settings["parser"])
    device = pick(machine.device, machine.threads)
    train_models(model, language, list(read_conllu(trees)), how, device)
    return label_of(device)
