"""What is left of a translator that the surgeon cuts down, before any training, and what importance leaves instead.

Run: PYTHONPATH=workflow python benchmarks/surgeon.py MODEL TEXT test.en.gz test.pt.gz --keep encoder=24 encoder=14
--feedforward 67%. TEXT is read in closed form; the model's greedy translations of the test text are scored by BLEU and
chrF against the references. Each size is a model of its own; with --keep and --feedforward there are both kinds. The
same numbers of heads are also masked, those with the least first-order importance in all layers: nothing is refitted.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import sacrebleu
import torch

from heads.analysis.ablation import gates_without
from heads.analysis.importance import importance_rows
from heads.analysis.masking import EncodedText, evaluation_of
from heads.base.files import read_lines
from heads.base.names import ATTENTIONS, SCOPES
from heads.interop.opening import open_model
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.one_model.answered_text import AnsweredSplits, splits_for
from heads.one_model.costs import Costs
from heads.one_model.request import PruningRequest, fitted, request_of
from heads.one_model.surgery import SEARCH, Surgery
from heads.text.encoding import tokens_of

CPU = torch.device("cpu")


def report(line: str) -> None:
    """Say what is being done."""
    print(line, file=sys.stderr, flush=True)


def scored(model: Encoder, text: EncodedText, gates: Gates | None = None) -> tuple[float, float]:
    """BLEU and chrF of a model's greedy translations."""
    answer, references, _ = evaluation_of(model, CPU, text, SEARCH)
    found, wanted = list(answer(gates)), [list(references)]
    return sacrebleu.corpus_bleu(found, wanted).score, sacrebleu.corpus_chrf(found, wanted).score


def rows(texts: AnsweredSplits, requests: list[PruningRequest], text: EncodedText) -> Iterator[tuple[object, ...]]:
    """A row for the whole model and for each request: way, heads of each kind, units in an average layer, scores."""
    surgeries: dict[tuple[str, ...], Surgery] = {}
    for request in requests:
        costs = Costs(texts.model, texts, request)
        surgery = surgeries.setdefault(costs.kinds, Surgery(costs))
        surgery.costs.request = request  # of the same kinds, so that its ladders serve
        if request is requests[0]:
            yield "whole", *size_of(surgery.model), *scored(surgery.model, text)
        small = surgery.as_fast_as_asked(request.keep or 0)
        yield "surgeon", *size_of(small), *scored(small, text)
        if request.keep is not None and request.units is None:
            batches = (batch for _, batch in surgery.studied.pairs(texts.model).in_order(1024))
            measured = importance_rows(surgery.model, batches, label_smoothing=0.0)
            importance = {
                (str(row["attention"]), int(row["layer"]), int(row["head"])): float(row["importance"])
                for row in measured
                if row["form"] == "example" and row["attention"] in SCOPES[request.scope]
            }
            gone = sorted(importance, key=lambda head: importance[head])[: len(importance) - request.keep]
            masked = scored(surgery.model, text, gates_without(surgery.model, gone))
            whole = zip(ATTENTIONS, size_of(surgery.model), strict=False)
            left = [number - sum(head[0] == kind for head in gone) for kind, number in whole]
            yield "importance, masked", *left, size_of(small)[-1], *masked


def size_of(model: Encoder) -> tuple[int, ...]:
    """How many heads of each kind a model has, and units in an average layer."""
    shape = model.shape
    units = [number for stack in ("enc_ffn", "dec_ffn") for number in shape.units(stack)]
    return (*(sum(map(len, of_kind)) for of_kind in shape.live_heads.values()), round(sum(units) / len(units)))


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """The flags that say what is cut down, on which text, and how it is scored."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("text", type=Path, help="text to read in closed form")
    parser.add_argument("source", type=Path, help="test text, plain or gzipped")
    parser.add_argument("reference", type=Path)
    parser.add_argument("--keep", nargs="*", default=[None], help="numbers of heads, such as 24 or encoder=12")
    parser.add_argument("--feedforward", nargs="*", default=[None])
    return parser


def asked_for(arguments: argparse.Namespace, folder: Path) -> tuple[AnsweredSplits, list[PruningRequest], EncodedText]:
    """The text to read with the model's answers, kept in a folder; the sizes; and the text to score."""
    model = open_model(arguments.model)
    splits = splits_for(model, read_lines(arguments.text), 10000, report)
    texts = AnsweredSplits(model, splits, folder / "texts", CPU, report)
    source = tokens_of(read_lines(arguments.source), model.source)
    sizes = [(keep, units) for keep in arguments.keep for units in arguments.feedforward]
    asked = [request_of(keep=keep, feedforward=units, minutes=0.0) for keep, units in sizes]
    text = EncodedText(source, read_lines(arguments.reference), model.target)
    return texts, [fitted(request, model.shape) for request in asked], text


def main() -> None:
    """Print the table."""
    arguments = arguments_of(__doc__).parse_args()
    with TemporaryDirectory() as folder:
        print("way\tenc_self\tdec_self\tdec_enc\tunits\tBLEU\tchrF")
        for way, *size, bleu, chrf in rows(*asked_for(arguments, Path(folder))):
            print(way, *size, f"{bleu:.2f}", f"{chrf:.2f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
