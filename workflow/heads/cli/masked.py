"""BLEU of the unpruned model when the heads that each choice closes are masked, without any update."""

import argparse

from heads.analysis.choices import MASKED_COLUMNS, choices_of, masked_rows
from heads.analysis.masking import evaluation_of, read_text
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import (
    add_grams_argument,
    add_masking_arguments,
    add_output_argument,
    add_path_argument,
    settings_of,
    tokeniser_named,
)
from heads.config.analyses import SelectionSettings, TranslateSettings
from heads.model.folder import load_model
from heads.pruning.closed_form import load_output_maps
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_path_argument(parser, "--selection", "table of the heads that each choice keeps")
    add_grams_argument(parser)
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Mask, translate and score; write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, SelectionSettings, "selection")
    search = settings_of(arguments, TranslateSettings, "translate")
    model = load_model(arguments.model).to(device)
    paths = arguments.source, arguments.references, arguments.target_bpe
    text = evaluation_of(model, device, read_text(*paths, tokeniser_named(arguments)), search)
    choices = choices_of(read_tsv(arguments.selection))
    maps = load_output_maps(arguments.grams, model) if arguments.grams else None
    rows = masked_rows(model, choices, *text, resamples=settings.resamples, maps=maps)
    write_tsv(arguments.out, rows, text[2].named(MASKED_COLUMNS))
    return label_of(device)
