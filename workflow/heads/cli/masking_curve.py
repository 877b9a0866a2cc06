"""Test BLEU as more and more heads are masked, by importance or ablation (Michel et al. 2019, 4)."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.masking import answers_of, load_with_heads, read_text
from heads.analysis.masking_curve import COLUMNS, curve_rows, walks_of
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import add_masking_arguments
from heads.config.analyses import MaskingCurveSettings
from heads.config.settings import section
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    parser.add_argument("--importance", type=Path, required=True, help="table of the importance stage")
    parser.add_argument("--ablation-dev", type=Path, required=True, help="table of heads masked alone on dev")
    parser.add_argument("--ablation-test", type=Path, required=True, help="table of heads masked alone on test")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Mask heads in every order, and write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = section(MaskingCurveSettings, arguments.settings["masking_curve"])
    model = load_with_heads(arguments.model, device)
    given = read_text(arguments.source, arguments.references, arguments.target_bpe)
    text = answers_of(model, device, given, settings)
    measured = (arguments.importance, arguments.ablation_dev, arguments.ablation_test)
    walks = walks_of(model, *map(read_tsv, measured), random=settings.random_orders)
    rows = curve_rows(model, walks, *text, step=settings.step, resamples=settings.resamples)
    write_tsv(arguments.out, rows, text[2].named(COLUMNS))
    return label_of(device)
