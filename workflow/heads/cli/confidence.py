"""Confidence, the mean maximum attention weight, of each head on dev pairs."""

import argparse

from heads.analysis.confidence import COLUMNS, confidence
from heads.base.files import write_tsv
from heads.cli._flags import add_measure_arguments, settings_of
from heads.config.analyses import ConfidenceSettings
from heads.model.folder import load_model
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_measure_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table."""
    settings = settings_of(arguments, ConfidenceSettings, "confidence")
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    pairs = measured_pairs(Tokens(arguments.source), Tokens(arguments.target), labelled=model.shape.encoder_only)
    batches = (batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None))
    write_tsv(arguments.out, confidence(model, batches), COLUMNS)
    return label_of(device)
