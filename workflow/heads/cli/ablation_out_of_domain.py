"""BLEU on an out-of-domain test set with each head masked alone (Michel et al. 2019, Fig 2)."""

import argparse

from heads.analysis.ablation import ablation_rows, columns_of, masked_alone
from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.base.files import write_tsv
from heads.cli._flags import add_masking_arguments, add_output_argument, settings_of, tokeniser_named
from heads.config.analyses import AblationSettings
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_output_argument(parser, "--masked", what="table to write: each head masked")


def run(arguments: argparse.Namespace) -> str:
    """Mask, translate and score; write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, AblationSettings, "ablation")
    model = load_with_heads(arguments.model, device)
    text = evaluation_of(
        model,
        device,
        read_text(arguments.source, arguments.references, arguments.target_bpe, tokeniser_named(arguments)),
        settings,
        much_alike=True,
    )
    rows = ablation_rows(model, masked_alone(model.shape), *text, resamples=settings.resamples)
    write_tsv(arguments.masked, rows, columns_of(text[2]))
    return label_of(device)
