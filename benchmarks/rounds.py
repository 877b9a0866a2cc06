"""Is a model better if the surgeon takes its heads and hidden units in rounds, and layers are compared anew in each?

Run: PYTHONPATH=workflow python benchmarks/rounds.py MODEL TEXT test.en.gz test.pt.gz --keep 65 40 --feedforward 1024
In one round each layer is cut down alone, while all others are whole. The first of R rounds takes 1/R of what is to
go, and layers are compared again on the model that is left: with the outputs of heads and units of the whole model
(old), or read anew from the model that is left (anew). `heads prune` takes the better of one and two rounds (old), by
the sentences on which layers are compared. A row has the divergence from the whole model, in
nats an answer, on the sentences on which layers were compared and on others, and BLEU of greedy translations of the
test text. Nothing is trained.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from surgeon import CPU, report, scored, size_of

from heads.analysis.masking import EncodedText
from heads.base.files import read_lines
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.interop.opening import open_model
from heads.model.encoder import Encoder
from heads.model.shape import Place
from heads.one_model.answered_text import STUDIED, AnsweredSplits, splits_for
from heads.one_model.costs import Costs
from heads.one_model.request import PruningRequest, fitted, request_of
from heads.one_model.surgery import ASKED_SENTENCES, SUBWORDS, Surgery, studied
from heads.pruning.closed_form import (
    BATCH_TOKENS,
    Surgeon,
    gram_matrices,
    output_maps,
    rungs_of,
    without,
)
from heads.pruning.ladders import COMPARED, HeldOut, ladders_below
from heads.pruning.rungs import Limits, picked
from heads.text.batches import Batch
from heads.text.encoding import tokens_of

WAYS = ((1, "old"), (2, "old"), (3, "old"), (2, "anew"))


def limits_of(surgery: Surgery, share: float) -> list[Limits]:
    """Limits of a model without this share of what is to go."""
    request, limits = surgery.request, []
    if request.keep is not None:
        heads = sum(surgery.full(ATTENTIONS))
        limits.append(surgery.of_heads(heads - round(share * (heads - request.keep))))
    if request.units is not None:
        units = surgery.full(FEEDFORWARDS)
        average = sum(units) / len(units)
        limits.append(surgery.of_units(round(average - share * (average - request.units))))
    return limits


def in_rounds(surgery: Surgery, whole: HeldOut, batches: Sequence[Batch], rounds: int, statistics: str) -> Encoder:
    """The model that is left after so many rounds. batches: what the surgeon reads."""
    surgeon, losses, kept = surgery.surgeon, surgery.rungs, dict[Place, list[int]]()
    for number in range(1, rounds + 1):
        left = {place: len(stays) for place, stays in kept.items()}
        if number > 1 and statistics == "anew":
            model = without(surgeon.model, surgeon.maps, kept)
            surgeon = Surgeon(model, output_maps(model, gram_matrices(model, batches, surgery.costs.kinds)))
        if number > 1:
            losses = surgery.in_steps(ladders_below(surgeon, whole, rungs_of, left))
        found = picked(losses, limits_of(surgery, number / rounds))
        assert found is not None
        kept = {place: surgeon.kept(place, left) for place, left in found.items()}
    return without(surgeon.model, surgeon.maps, kept)


def batches_of(texts: AnsweredSplits, split: str, most: int | None) -> list[Batch]:
    """The first sentences of a split, in the batches in which answers are compared."""
    pairs = texts[split].pairs(texts.model)
    return [batch for _, batch in pairs.only(pairs.index[:most]).in_order(COMPARED)]


def rows(texts: AnsweredSplits, requests: Sequence[PruningRequest], text: EncodedText) -> Iterator[list[object]]:
    """A row for each size and way."""
    model, surgeries = texts.model.model, dict[tuple[str, ...], Surgery]()
    asked, others = (HeldOut(model, batches_of(texts, *split)) for split in (("dev", ASKED_SENTENCES), ("test", None)))
    pairs = texts[STUDIED].pairs(texts.model).first(SUBWORDS)
    batches = [batch for _, batch in pairs.in_order(BATCH_TOKENS)]
    for request in requests:
        costs = Costs(texts.model, texts, request)
        surgery = surgeries.setdefault(costs.kinds, Surgery(costs))
        surgery.costs.request = request  # of the same kinds, so that its ladders serve
        for rounds, statistics in WAYS:
            small = in_rounds(surgery, asked, batches, rounds, statistics)
            moved = (HeldOut(small, held_out.batches, held_out).divergence(None) for held_out in (asked, others))
            yield [rounds, statistics, *size_of(small), *moved, scored(small, text)[0]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("text", type=Path, help="text to read in closed form")
    parser.add_argument("source", type=Path, help="test text, plain or gzipped")
    parser.add_argument("reference", type=Path)
    parser.add_argument("--keep", nargs="*", default=[None], help="numbers of heads, such as 24 or encoder=12")
    parser.add_argument("--feedforward", nargs="*", default=[None])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = open_model(arguments.model)
    with TemporaryDirectory() as folder:
        splits = splits_for(model, read_lines(arguments.text), 10000, report)
        splits[STUDIED] = studied(splits["train"])
        texts = AnsweredSplits(model, splits, Path(folder) / "texts", CPU, report)
        text = EncodedText(
            tokens_of(read_lines(arguments.source), model.source), read_lines(arguments.reference), model.target
        )
        sizes = [(keep, units) for keep in arguments.keep for units in arguments.feedforward]
        asked = [request_of(keep=keep, feedforward=units, minutes=0.0) for keep, units in sizes]
        print("rounds\tstatistics\tenc_self\tdec_self\tdec_enc\tunits\tdivergence_compared\tdivergence\tBLEU")
        for *size, compared, others, bleu in rows(texts, [fitted(one, model.shape) for one in asked], text):
            print(*size, f"{compared:.4f}", f"{others:.4f}", f"{bleu:.2f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
