"""Prune heads of a model while fine-tuning it on its own outputs for a text.

heads prune firefox/en-pt text.en --keep 32 -o small
heads prune firefox/en-pt text.en --loss 0.5 -o small
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from heads.base.files import read_lines, write_text
from heads.base.outputs import NEW_FOLDER
from heads.cli._flags import (
    add_device_arguments,
    add_labels_argument,
    add_model_argument,
    add_output_argument,
    add_tokeniser_argument,
    languages_of,
)
from heads.one_model.inspecting import shown_name
from heads.one_model.prune_report import page_beside, pruned_page, report_lines, wish_of
from heads.one_model.shrinking import GATES, SURGEON, WAYS, check_units, heads_of, shrunk, speed_won
from heads.one_model.workplace import Workplace, fingerprint_of, splits_for
from heads.training.devices import pick
from heads.translation.encoders_alone import export_any, refuse_format
from heads.translation.export import FORMATS
from heads.translation.opening import opened
from heads.translation.text_scores import tokeniser_of

SENTENCES = {GATES: 20000, SURGEON: 4000}
"""The most sentences to use; the surgeon reads about half of them, once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_model_argument(parser)
    parser.add_argument("text", type=Path, help="text to read, one sentence or example per line; a tenth is held out")
    what = "folder to write, with a page beside it"
    add_output_argument(parser, "-o", "--output", what=what, kind=NEW_FOLDER, beside=page_beside)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--keep", help="number of heads to keep, such as 24; encoder=12 prunes only the encoder")
    size.add_argument(
        "--loss", type=float, help="the most BLEU, or points of accuracy or cosine, to lose on held-out sentences"
    )
    units = "number of hidden units to keep in an average feed-forward layer, with --by surgeon"
    parser.add_argument("--feedforward", type=int, help=units)
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="format to write; default: folder, our own"
    )
    ways = "gates, while the model trains; or surgeon, in closed form without training (gates)"
    parser.add_argument("--by", choices=WAYS, default=GATES, help=ways)
    add_labels_argument(parser)
    add_tokeniser_argument(parser)
    most = "the most sentences of the text to use (20000; by surgeon 4000)"
    parser.add_argument("--sentences", type=int, default=0, help=most)
    parser.add_argument("--updates", type=int, default=400, help="updates of the training with gates (400)")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Prune, write the folder, and report loss and speed-up; if interrupted, the same command resumes."""
    wish = wish_of(arguments.keep, arguments.loss, arguments.updates, arguments.by, arguments.feedforward)
    lines = read_lines(arguments.text)
    tokeniser_of((), arguments.tokenize)  # raises at once what is wrong with it
    languages = languages_of(arguments)
    report = partial(print, file=sys.stderr, flush=True)
    with opened(arguments.model, arguments.prefix, arguments.labels, languages) as folder:
        splits = splits_for(folder, lines, arguments.sentences or SENTENCES[wish.by], report)
        wish.sizes(heads_of(folder, wish.scope))
        check_units(folder, wish)
        refuse_format(folder, arguments.format)
        asked = {"model": arguments.model, "text": fingerprint_of(splits), "updates": wish.updates}
        asked |= {"by": wish.by, "units": wish.units} if wish.by != GATES else {}
        asked |= {"languages": " ".join(languages)} if any(languages) else {}
        asked |= {"labels": arguments.labels} if arguments.labels else {}
        unfinished = arguments.output.with_name(f".{arguments.output.name}.unfinished")
        place = Workplace(unfinished, asked, arguments.tokenize)
        place.lay_out(folder)
    # Only once: what holds a GPU would wait for a second one.
    device = pick(arguments.device, arguments.threads)
    place.answer(splits, device, report)
    smaller, lost, tried = shrunk(place, wish, device, arguments.threads, report)
    shown = pruned_page(place, shown_name(arguments.model), wish, tried, device, report)
    export_any(smaller, arguments.output, arguments.format)
    write_text(page_beside(arguments.output), shown)
    for line in report_lines(place, wish, lost, speed_won(place, smaller, device)):
        report(line)
    place.remove()
