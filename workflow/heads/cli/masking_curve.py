"""Test BLEU as more and more heads are masked, by importance or ablation (Michel et al. 2019, 4)."""

import argparse

from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.analysis.masking_curve import COLUMNS, curve_rows, walks_of
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import add_masking_arguments, add_output_argument, add_path_argument, settings_of, tokeniser_named
from heads.config.analyses import MaskingCurveSettings
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_path_argument(parser, "--importance", "table of the importance stage")
    add_path_argument(parser, "--ablation-dev", "table of heads masked alone on dev")
    add_path_argument(parser, "--ablation-test", "table of heads masked alone on test")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> str:
    """Mask heads in every order, and write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, MaskingCurveSettings, "masking_curve")
    model = load_with_heads(arguments.model, device)
    paths = arguments.source, arguments.references, arguments.target_bpe
    text = evaluation_of(model, device, read_text(*paths, tokeniser_named(arguments)), settings)
    measured = (arguments.importance, arguments.ablation_dev, arguments.ablation_test)
    walks = walks_of(model, *map(read_tsv, measured), random=settings.random_orders)
    rows = curve_rows(model, walks, *text, step=settings.step, resamples=settings.resamples)
    write_tsv(arguments.out, rows, text[2].named(COLUMNS))
    return label_of(device)
