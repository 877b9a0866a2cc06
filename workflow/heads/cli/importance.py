"""How much the loss depends on each head, to first order, on dev pairs (Michel et al. 2019, sec. 4.1)."""

import argparse

from heads.analysis.importance import COLUMNS, importance_rows
from heads.base.files import write_tsv
from heads.cli._flags import add_measure_arguments, settings_of
from heads.config.analyses import ImportanceSettings
from heads.config.trainings import TrainingSettings
from heads.model.folder import load_answering
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_measure_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table."""
    settings = settings_of(arguments, ImportanceSettings, "importance")
    smoothing = settings_of(arguments, TrainingSettings, "training").label_smoothing
    device = pick(arguments.device, arguments.threads)
    model = load_answering(arguments.model).to(device)
    # A sentence longer than a batch would break the bound on memory.
    bound, alone = (settings.batch_tokens, "importance.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(arguments.source), Tokens(arguments.target), *bound, labelled=alone)
    batches = (batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None))
    write_tsv(arguments.out, importance_rows(model, batches, label_smoothing=smoothing), COLUMNS)
    return label_of(device)
