"""Translate sentences with a model, so that it or another model can be trained on the translations."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from heads.cli._flags import MAYBE, Machine, MaybePath, OutFile
from heads.config.corpus_parts import FileSpec
from heads.corpus.documentation import documentation
from heads.corpus.pairs import read_text
from heads.interop.bundle import open_translator, saved_bundle
from heads.training.devices import label_of, pick
from heads.translation.distilled import drawn, write_distilled


def run(
    *,
    model: Annotated[Path, "folder of the model, as written by import"],
    sentences: Annotated[int, "number of sentences to translate"],
    after: Annotated[int, "number of sentences to skip first"] = 0,
    text: Annotated[MaybePath, "sentences, one per line; none: installed Python packages' documentation"] = None,
    member: Annotated[str | None, MAYBE, "name of the file to read if --text is an archive"] = None,
    source: Annotated[OutFile, "file to write: source sentences"],
    target: Annotated[OutFile, "file to write: their translations"],
    machine: Machine,
) -> str:
    """Draw the sentences and translate them greedily, as Firefox does."""
    file = FileSpec(path=text, member=member)
    lines = read_text(file, Path()) if text else documentation()
    device = pick(machine.device, machine.threads)
    translator = open_translator(
        saved_bundle(model), device, beam=1, length_penalty=0.0, batch_tokens=3000, max_subwords=200
    )
    sources = drawn(lines, sentences, after, translator.source)
    report = partial(print, file=sys.stderr, flush=True)
    write_distilled(sources, translator, source, target, report)
    return label_of(device)
