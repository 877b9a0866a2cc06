"""Export a model as a self-contained folder: ours, CTranslate2's, ONNX, transformers' or Marian's.

heads export results/demo/pruned/all/lam-0.1/seed-1 --format ctranslate2 -o small
"""

import sys
from pathlib import Path
from typing import Annotated

from heads.base.files import UserError, read_lines
from heads.base.names import QUANTIZATIONS
from heads.cli._flags import AnyModel, Labels, Languages, NewFolder, Quantization
from heads.interop.export import FORMATS, refuse_quantization
from heads.interop.export_encoder import export_any
from heads.interop.opening import open_model


def run(
    model: AnyModel,
    /,
    *,
    languages: Languages,
    labels: Labels = (),
    output: Annotated[NewFolder, "folder to write"],
    format: Annotated[str, {"choices": FORMATS}, "format to write; default: folder, our own"] = FORMATS[0],
    quantization: Quantization = QUANTIZATIONS[0],
    sentences: Annotated[Path | None, "source-language text on which the exported model is compared with ours"] = None,
    alignment: Annotated[
        Path | None, "table of alignment heads for ctranslate2; default: alignment_heads.tsv in the model's folder"
    ] = None,
) -> None:
    """Write the folder and say how to use it."""
    refuse_quantization(format, quantization)
    if format == "folder" and sentences:
        raise UserError("--sentences needs a format other than folder: add --format, or remove --sentences.")
    if format != "ctranslate2" and alignment:
        raise UserError("--alignment needs --format ctranslate2: use it, or remove --alignment.")
    lines = read_lines(sentences) if sentences else ()
    bundle = open_model(model, languages.prefix, labels, languages.pair)
    if format == "folder" and bundle.origin:
        raise UserError(f"{model} is not in our format: convert it with heads import, or give --format.")
    difference = export_any(bundle, output, format, sentences=lines, quantization=quantization, alignment=alignment)
    if bundle.shape.encoder_only and difference is None:
        print(f"{output}: its README.md describes the model", file=sys.stderr)
    elif difference is None:
        print(f"heads translate {output} < source.txt", file=sys.stderr)
    else:
        of = "per component of a vector of length 1" if bundle.shape.embeds else "nats per subword"
        farthest = f"{output} differs from ours by at most {difference:.1e} {of}"
        print(f"{farthest}; its README.md says how to use it", file=sys.stderr)
