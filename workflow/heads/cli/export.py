"""Export a model as a self-contained folder: ours, CTranslate2's, ONNX, transformers' or Marian's.

heads export results/demo/pruned/all/lam-0.1/seed-1 --format ctranslate2 -o small
"""

import argparse
import sys
from pathlib import Path

from heads.base.files import UserError, read_lines
from heads.base.outputs import NEW_FOLDER
from heads.cli._flags import (
    add_labels_argument,
    add_model_argument,
    add_output_argument,
    add_quantization_argument,
    languages_of,
)
from heads.interop.encoders_alone import export_any
from heads.interop.export import FORMATS, refuse_quantization
from heads.interop.opening import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_model_argument(parser)
    add_labels_argument(parser)
    add_output_argument(parser, "-o", "--output", what="folder to write", kind=NEW_FOLDER)
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="format to write; default: folder, our own"
    )
    add_quantization_argument(parser)
    parser.add_argument(
        "--sentences", type=Path, help="source-language text on which the exported model is compared with ours"
    )
    parser.add_argument(
        "--alignment",
        type=Path,
        help="table of alignment heads for ctranslate2; default: alignment_heads.tsv in the model's folder",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it."""
    form, quantization = arguments.format, arguments.quantization
    refuse_quantization(form, quantization)
    if form == "folder" and arguments.sentences:
        raise UserError("--sentences needs a format other than folder: add --format, or remove --sentences.")
    if form != "ctranslate2" and arguments.alignment:
        raise UserError("--alignment needs --format ctranslate2: use it, or remove --alignment.")
    sentences = read_lines(arguments.sentences) if arguments.sentences else ()
    options = {"sentences": sentences, "quantization": quantization, "alignment": arguments.alignment}
    bundle = open_model(arguments.model, arguments.prefix, arguments.labels, languages_of(arguments))
    if form == "folder" and bundle.origin:
        raise UserError(f"{arguments.model} is not in our format: convert it with heads import, or give --format.")
    difference = export_any(bundle, arguments.output, form, **options)
    if bundle.shape.encoder_only and difference is None:
        print(f"{arguments.output}: its README.md describes the model", file=sys.stderr)
    elif difference is None:
        print(f"heads translate {arguments.output} < source.txt", file=sys.stderr)
    else:
        of = "per component of a vector of length 1" if bundle.shape.embeds else "nats per subword"
        farthest = f"{arguments.output} differs from ours by at most {difference:.1e} {of}"
        print(f"{farthest}; its README.md says how to use it", file=sys.stderr)
