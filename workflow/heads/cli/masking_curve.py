"""`masking_curve`: test BLEU as more and more heads are masked, by importance or ablation (Michel et al. 2019, 4)."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.masking_curve import (
    ABLATION,
    COLUMNS,
    ORACLE,
    ablation_order,
    by_attention,
    curve_rows,
    importance_orders,
    random_orders,
)
from heads.base.files import read_tsv, read_yaml, write_tsv
from heads.cli._masking import add_masking_arguments, load_with_heads, translation_of
from heads.config.analyses import MaskingCurveSettings
from heads.config.settings import section
from heads.training.devices import pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads masking_curve`."""
    add_masking_arguments(parser)
    parser.add_argument("--importance", type=Path, required=True, help="table of the importance stage")
    parser.add_argument("--ablation-dev", type=Path, required=True, help="table of heads masked alone on dev")
    parser.add_argument("--ablation-test", type=Path, required=True, help="table of heads masked alone on test")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Walk along every order, write the table."""
    device = pick(arguments)
    settings = section(MaskingCurveSettings, read_yaml(arguments.settings)["masking_curve"])
    model = load_with_heads(arguments.model, device)
    translate, references = translation_of(
        model, device, arguments.source, arguments.references, arguments.target_bpe, settings
    )
    by_importance = importance_orders(read_tsv(arguments.importance))
    form, paper = next(iter(by_importance.items()))
    orders = {
        **by_importance,
        ABLATION: ablation_order(read_tsv(arguments.ablation_dev)),
        ORACLE: ablation_order(read_tsv(arguments.ablation_test)),
        **random_orders(model, settings.random_orders),
    }
    walks = {(order, "all"): scores for order, scores in orders.items()}
    walks |= {(form, kind): scores for kind, scores in by_attention(paper).items()}
    rows = curve_rows(model, walks, translate, references, step=settings.step, resamples=settings.resamples)
    write_tsv(arguments.out, rows, COLUMNS)
