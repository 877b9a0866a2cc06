"""BLEU of the unpruned model when the heads that each choice closes are masked, without any update."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.choices import MASKED_COLUMNS, choices_of, masked_rows
from heads.analysis.masking import answers_of, read_text
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import add_masking_arguments
from heads.config.analyses import SelectionSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    parser.add_argument("--selection", type=Path, required=True, help="table of the heads that each choice keeps")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Mask, translate and score; write the table."""
    device, content = pick(arguments.device, arguments.threads), arguments.settings
    settings = section(SelectionSettings, content["selection"])
    search = section(TranslateSettings, content["translate"])
    model = load_model(arguments.model).to(device)
    given = read_text(arguments.source, arguments.references, arguments.target_bpe)
    text = answers_of(model, device, given, search)
    rows = masked_rows(model, choices_of(read_tsv(arguments.selection)), *text, resamples=settings.resamples)
    write_tsv(arguments.out, rows, text[2].named(MASKED_COLUMNS))
    return label_of(device)
