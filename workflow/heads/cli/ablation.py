"""BLEU with each head masked alone, and with each head left alone in its layer (Michel et al. 2019, 3)."""

import argparse
from functools import partial

from heads.analysis.ablation import CHOICE_COLUMNS, ablation_rows, choice_rows, columns_of, kept_alone, masked_alone
from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.base.files import write_tsv
from heads.cli._flags import add_masking_arguments, add_output_argument, add_path_argument, settings_of, tokeniser_named
from heads.config.analyses import AblationSettings
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_path_argument(parser, "--dev-source", "token file of the dev sentences")
    add_path_argument(parser, "--dev-references", "plain text of their translations")
    add_output_argument(parser, "--masked", what="table to write: each head masked, on test")
    add_output_argument(parser, "--masked-dev", what="table to write: the same on dev")
    add_output_argument(parser, "--alone", what="table to write: each head alone in its layer, on test")
    add_output_argument(parser, "--alone-dev", what="table to write: the same on dev")
    add_output_argument(parser, "--layers", what="table to write: each layer with its best head only")


def run(arguments: argparse.Namespace) -> str:
    """Mask, translate and score; write the five tables."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, AblationSettings, "ablation")
    model = load_with_heads(arguments.model, device)
    dev = settings.model_copy(update={"sentences": settings.dev_sentences})
    answers = partial(evaluation_of, model, device, much_alike=True)
    common = arguments.target_bpe, tokeniser_named(arguments)
    on_test = answers(read_text(arguments.source, arguments.references, *common), settings)
    on_dev = answers(read_text(arguments.dev_source, arguments.dev_references, *common), dev)
    alone = {}
    for name, text, masked_out, alone_out in (
        ("test", on_test, arguments.masked, arguments.alone),
        ("dev", on_dev, arguments.masked_dev, arguments.alone_dev),
    ):
        masked = ablation_rows(model, masked_alone(model.shape), *text, resamples=settings.resamples)
        alone[name] = ablation_rows(model, kept_alone(model.shape), *text, resamples=settings.resamples)
        write_tsv(masked_out, masked, columns_of(text[2]))
        write_tsv(alone_out, alone[name], columns_of(text[2]))
    metric = on_test[2]
    write_tsv(arguments.layers, choice_rows(alone["dev"], alone["test"], metric), metric.named(CHOICE_COLUMNS))
    return label_of(device)
