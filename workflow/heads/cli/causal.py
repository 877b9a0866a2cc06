"""Which heads help, interfere or do neither, by gates fitted on frozen weights (Nam et al. 2025)."""

import argparse

from heads.analysis.causal_gating import COLUMNS, causal_rows
from heads.base.files import UserError, write_tsv
from heads.cli._flags import add_measure_arguments, settings_of
from heads.config.analyses import CausalSettings
from heads.model.folder import load_folder
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_measure_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Fit the gates and write the table."""
    settings = settings_of(arguments, CausalSettings, "causal")
    if not settings.updates:
        raise UserError("causal.updates is 0, so no gates are fitted: set a number, such as 60.")
    device = pick(arguments.device, arguments.threads)
    model = load_folder(arguments.model).to(device)
    pairs = measured_pairs(
        Tokens(arguments.source), Tokens(arguments.target), settings.batch_tokens, "causal.batch_tokens"
    )
    batches = [batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None)]
    write_tsv(arguments.out, causal_rows(model, batches, settings), COLUMNS)
    return label_of(device)
