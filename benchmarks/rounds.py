"""Is a model better if the surgeon takes its heads and hidden units in rounds, and layers are compared anew in each?

Run: PYTHONPATH=workflow python benchmarks/rounds.py MODEL TEXT test.en.gz test.pt.gz --keep 65 40 --feedforward 1024
In one round each layer is cut down alone, while all others are whole. The first of R rounds takes 1/R of what is to
go, and layers are compared again on the model that is left: with the outputs of heads and units of the whole model
(old), or read anew from the model that is left (anew). `heads prune` takes the better of one and two rounds (old), by
the sentences on which layers are compared. A row has the divergence from the whole model, in nats an answer, on these
sentences and on others, and BLEU of greedy translations of the test text. Nothing is trained.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from surgeon import arguments_of, asked_for, scored, size_of

from heads.analysis.masking import EncodedText
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.model.encoder import Encoder
from heads.model.shape import Place
from heads.one_model.answered_text import AnsweredSplits
from heads.one_model.costs import Costs
from heads.one_model.request import PruningRequest
from heads.one_model.surgery import Surgery, in_steps
from heads.pruning.closed_form import (
    BATCH_TOKENS,
    Surgeon,
    gram_matrices,
    output_maps,
    rungs_of,
    without,
)
from heads.pruning.ladders import HeldOut, compared_on, ladders_below
from heads.pruning.rungs import Limits, picked
from heads.text.batches import Batch

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


def in_rounds(surgery: Surgery, batches: Sequence[Batch], rounds: int, statistics: str) -> Encoder:
    """The model that is left after so many rounds. batches: what the surgeon reads."""
    surgeon, losses, kept = surgery.surgeon, surgery.rungs, dict[Place, list[int]]()
    for number in range(1, rounds + 1):
        left = {place: len(stays) for place, stays in kept.items()}
        if number > 1 and statistics == "anew":
            model = without(surgeon.model, surgeon.maps, kept)
            surgeon = Surgeon(model, output_maps(model, gram_matrices(model, batches, surgery.costs.kinds)))
        if number > 1:
            losses = in_steps(surgeon, ladders_below(surgeon, surgery.held_out, rungs_of, left))
        found = picked(losses, limits_of(surgery, number / rounds))
        assert found is not None
        kept = {place: surgeon.kept(place, left) for place, left in found.items()}
    return without(surgeon.model, surgeon.maps, kept)


def rows(texts: AnsweredSplits, requests: Sequence[PruningRequest], text: EncodedText) -> Iterator[list[object]]:
    """A row for each size and way."""
    model, surgeries = texts.model.model, dict[tuple[str, ...], Surgery]()
    pairs = texts["test"].pairs(texts.model)
    others = HeldOut(model, compared_on(pairs, torch.device("cpu")))
    for request in requests:
        costs = Costs(texts.model, texts, request)
        surgery = surgeries.setdefault(costs.kinds, Surgery(costs))
        surgery.costs.request = request  # of the same kinds, so that its ladders serve
        batches = [batch for _, batch in surgery.studied.pairs(texts.model).in_order(BATCH_TOKENS)]
        for rounds, statistics in WAYS:
            small = in_rounds(surgery, batches, rounds, statistics)
            on = (surgery.held_out, others)
            moved = (HeldOut(small, held_out.batches, held_out).divergence(None) for held_out in on)
            yield [rounds, statistics, *size_of(small), *moved, scored(small, text)[0]]


def main() -> None:
    """Print the table."""
    parser = arguments_of(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with TemporaryDirectory() as folder:
        print("rounds\tstatistics\tenc_self\tdec_self\tdec_enc\tunits\tdivergence_compared\tdivergence\tBLEU")
        for *size, compared, others, bleu in rows(*asked_for(arguments, Path(folder))):
            print(*size, f"{compared:.4f}", f"{others:.4f}", f"{bleu:.2f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
