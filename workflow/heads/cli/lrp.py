"""Relevance of each head for the logits of the model's own translations of dev sentences."""

import argparse

from heads.analysis.lrp.rows import COLUMNS, CONSERVATION_COLUMNS, generated, relevance_rows
from heads.base.files import write_tsv
from heads.cli._flags import add_measure_arguments, add_output_argument, settings_of
from heads.config.analyses import LrpSettings
from heads.model.folder import load_answering
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_measure_arguments(parser)
    add_output_argument(parser, "--conservation", what="table to write: how much each sub-layer keeps")


def run(arguments: argparse.Namespace) -> str:
    """Translate greedily, propagate relevance back from every step by every rule, and write the tables."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, LrpSettings, "lrp")
    model = load_answering(arguments.model).to(device)
    # A sentence longer than a batch would break the bound on memory.
    bound, alone = (settings.batch_tokens, "lrp.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(arguments.source), Tokens(arguments.target), *bound, labelled=alone)
    in_order = pairs.in_order(settings.batch_tokens, settings.sentences or None)
    batches = (generated(model, batch.to(device)) for _, batch in in_order)
    heads, conservation = relevance_rows(model, batches, settings)
    write_tsv(arguments.out, heads, COLUMNS)
    write_tsv(arguments.conservation, conservation, CONSERVATION_COLUMNS)
    return label_of(device)
