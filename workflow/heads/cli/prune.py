"""Make a model smaller: remove heads and hidden units, and fine-tune the rest on the model's own outputs for a text.

heads prune firefox/en-pt text.en --keep encoder=32 -o small
heads prune firefox/en-pt text.en --vocabulary --format marian -o small
heads prune firefox/en-pt text.en --feedforward 67% --format marian -o small
heads prune firefox/en-pt text.en --megabytes 60 --minutes 0 -o small
heads prune firefox/en-pt text.en --keep 32 --by gates -o small
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
    add_metric_argument,
    add_model_argument,
    add_output_argument,
    add_quantization_argument,
    add_tokeniser_argument,
    languages_of,
)
from heads.interop.encoders_alone import export_any, refuse_format
from heads.interop.export import FORMATS, refuse_quantization
from heads.interop.opening import open_model
from heads.one_model.answered_text import STUDIED, AnsweredSplits, fingerprint_of, splits_for
from heads.one_model.costs import weights_in
from heads.one_model.inspecting import shown_name
from heads.one_model.prune_report import page_beside, pruned_page, report_lines
from heads.one_model.request import FLAGS, GATES, MINUTES, SURGEON, UPDATES, WAYS, fitted, request_of
from heads.one_model.shrinking import Shrinking
from heads.one_model.smaller_vocabulary import refuse_vocabulary, with_smaller_vocabulary
from heads.one_model.surgery import studied
from heads.one_model.working_folder import WorkingFolder
from heads.training.devices import pick
from heads.translation.scoring import metric_named

SENTENCES = {GATES: 20000, SURGEON: 10000}
"""The most sentences to use."""
TEXT = "text to read, one sentence or example per line; a tenth is held out, half to choose by and half to report on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_model_argument(parser)
    parser.add_argument("text", type=Path, help=TEXT)
    what = "folder to write, with a page beside it"
    add_output_argument(parser, "-o", "--output", what=what, kind=NEW_FOLDER, beside=page_beside)
    what = "keep only the subwords that the text and the model's answers use, and what can write any other text"
    parser.add_argument("--vocabulary", action="store_true", help=what)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--keep", help="number of heads to keep, such as 24; encoder=12 prunes only the encoder")
    size.add_argument(
        "--loss",
        type=float,
        help="the most BLEU or other --metric, or points of accuracy or cosine, to lose on held-out sentences",
    )
    units = "number of hidden units to keep in an average feed-forward layer, or a share such as 67%%"
    parser.add_argument("--feedforward", help=units)
    parser.add_argument(
        "--faster", type=float, help="how many times as fast as the whole model it is to be, such as 1.3"
    )
    parser.add_argument("--megabytes", type=float, help="the most that its weights may take in the format")
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="format to write; default: folder, our own"
    )
    ways = "surgeon, in closed form before any training; or gates, while the model trains (surgeon)"
    parser.add_argument("--by", choices=WAYS, default=SURGEON, help=ways)
    long = f"minutes of fine-tuning by knowledge distillation from the whole model; 0: none ({MINUTES:g})"
    parser.add_argument("--minutes", type=float, help=long)
    add_quantization_argument(parser)
    add_labels_argument(parser)
    add_metric_argument(parser)
    add_tokeniser_argument(parser)
    most = "the most sentences of the text to use (10000; by gates 20000)"
    parser.add_argument("--sentences", type=int, default=0, help=most)
    parser.add_argument("--updates", type=int, help=f"updates of the training with gates ({UPDATES})")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Prune, write the folder, and report loss and speed-up; if interrupted, the same command resumes."""
    refuse_quantization(arguments.format, arguments.quantization)
    request = request_of(**{name: getattr(arguments, name) for name in FLAGS})
    lines = read_lines(arguments.text)
    metric = metric_named(arguments.metric, arguments.tokenize)
    languages = languages_of(arguments)
    report = partial(print, file=sys.stderr, flush=True)
    bundle = open_model(arguments.model, arguments.prefix, arguments.labels, languages)
    splits = splits_for(bundle, lines, arguments.sentences or SENTENCES[request.by], report)
    request = fitted(request, bundle.shape)
    refuse_format(bundle, request.format)
    refuse_vocabulary(bundle, request)
    asked = {"model": arguments.model, "text": fingerprint_of(splits), "metric": metric, **request.asked}
    given = {"languages": " ".join(languages).strip(), "labels": arguments.labels}
    asked |= {name: value for name, value in given.items() if value}
    folder = WorkingFolder(arguments.output.with_name(f".{arguments.output.name}.unfinished"), asked)
    # Only once: what holds a GPU would wait for a second one.
    device = pick(arguments.device, arguments.threads)
    splits[STUDIED] = studied(splits["train"])
    texts = AnsweredSplits(bundle.on(device), splits, folder.texts, device, report, arguments.tokenize, metric)
    whole = with_smaller_vocabulary(texts, folder, request)
    pruning = Shrinking(whole, texts, request, folder, arguments.threads)
    shrunk = pruning.shrunk()
    shown = pruned_page(pruning, shrunk.tried, shown_name(arguments.model))
    export_any(shrunk.model.on("cpu"), arguments.output, request.format, **request.options)
    write_text(page_beside(arguments.output), shown)
    for line in report_lines(pruning, shrunk, weights_in(arguments.output)):
        report(line)
    folder.remove()
