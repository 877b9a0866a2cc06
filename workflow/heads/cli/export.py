"""Export a trained model to a folder that needs nothing else of the experiment: ours, CTranslate2's or ONNX.

heads export results/demo/pruned/all/lam-0.1/seed-1 --format ctranslate2 -o small
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from heads.base.files import UserError, read_lines
from heads.cli._flags import add_model_argument, languages_of
from heads.model.shape import shape_of
from heads.translation.encoders_alone import export_any
from heads.translation.export import FORMATS
from heads.translation.opening import opened
from heads.translation.to_ctranslate2 import QUANTIZATIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `heads export`."""
    add_model_argument(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to make")
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="who is to read it; default: folder, ours"
    )
    parser.add_argument(
        "--quantization", choices=QUANTIZATIONS, default=QUANTIZATIONS[0], help="of weights, for ctranslate2"
    )
    parser.add_argument(
        "--sentences", type=Path, help="text of the source language by which formats of others are held against ours"
    )
    parser.add_argument(
        "--alignment",
        type=Path,
        help="table of alignment heads for ctranslate2; default: alignment_heads.tsv in the folder of the model",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and say how to use it."""
    form, quantization = arguments.format, arguments.quantization
    if form != "ctranslate2" and quantization != QUANTIZATIONS[0]:
        raise UserError(f"--quantization {quantization} is of --format ctranslate2: take one of the two flags away.")
    if form == "folder" and arguments.sentences:
        raise UserError("--sentences checks formats of others: give --format, or take it away.")
    if form != "ctranslate2" and arguments.alignment:
        raise UserError("--alignment is of --format ctranslate2: take one of the two flags away.")
    sentences = read_lines(arguments.sentences) if arguments.sentences else ()
    options = {"sentences": sentences, "quantization": quantization, "alignment": arguments.alignment}
    with opened(arguments.model, arguments.prefix, languages=languages_of(arguments)) as folder:
        if form == "folder" and folder != Path(arguments.model):
            raise UserError(f"{arguments.model} is not of this project: heads import makes it so; else give --format.")
        shape = shape_of(folder)
        difference = export_any(folder, arguments.output, form, **options)
    if shape.alone and difference is None:
        print(f"{arguments.output}: README.md in it says what it is", file=sys.stderr)
    elif difference is None:
        print(f"heads translate {arguments.output} < source.txt", file=sys.stderr)
    else:
        of = "in a part of a vector of length 1" if shape.embeds else "nats a subword"
        farthest = f"{arguments.output} differs from ours by at most {difference:.1e} {of}"
        print(f"{farthest}; its README.md says how to use it", file=sys.stderr)
