"""Write translators with equally many heads in all attention of the decoder, and fewer units, for CTranslate2 in int8.

Run: PYTHONPATH=workflow python benchmarks/equal_heads.py MODEL text.en text.pt OUT 6:1536 5:1536:vocabulary
CTranslate2 has one number of heads for the decoder's self- and cross-attention in all layers, so only heads that go
everywhere save time. A size has that number, the hidden units of an average layer, and, if only those target subwords
are to stay that occur in the whole text, the word `vocabulary`. The surgeon reads the first subwords of the text, with
translations like the model's own, such as its training text; each layer's units are compared on the last sentences.
What stays is written to OUT/heads-6-units-1536-int8 and so on. Nothing is trained.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from heads.base.files import read_lines
from heads.base.names import FEEDFORWARDS
from heads.interop.bundle import Bundle, saved_bundle
from heads.interop.export import export
from heads.interop.opening import open_model
from heads.model.shape import Place
from heads.one_model.answered_text import AnsweredText
from heads.one_model.request import total_of_units
from heads.one_model.smaller_vocabulary import Ids, staying_in, write_with_fewer
from heads.one_model.surgery import in_steps
from heads.pruning.closed_form import BATCH_TOKENS, Surgeon, gram_matrices, output_maps, rungs_of, without
from heads.pruning.ladders import HeldOut, compared_on, ladders_of
from heads.pruning.rungs import Ladder, Limits, picked

DECODER = ("dec_self", "dec_enc")


def units_of(losses: dict[Place, Ladder], average: int) -> dict[Place, int]:
    """How many units each layer keeps."""
    full = [max(ladder) for ladder in losses.values()]
    if average >= sum(full) / len(full):
        return {place: max(ladder) for place, ladder in losses.items()}
    total = total_of_units(full, average)
    found = picked(losses, [Limits(lambda _: 1.0, total, total)])
    assert found is not None
    return found


def written(model: Bundle, kept: Ids | None, out: Path) -> None:
    """Export a model, with these subwords alone if any are given."""
    with tempfile.TemporaryDirectory() as folder:
        if kept is not None:
            write_with_fewer(model, kept, Path(folder) / "fewer")
            model = saved_bundle(Path(folder) / "fewer")
        export(model, out, "ctranslate2", quantization="int8")


def main() -> None:
    """Write all sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sizes", nargs="+")
    parser.add_argument("--subwords", type=int, default=12_000, help="of the source that the surgeon reads")
    parser.add_argument("--compared", type=int, default=40, help="sentences on which layers are compared")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    whole = open_model(arguments.model)
    text = AnsweredText(read_lines(arguments.source), read_lines(arguments.target))
    pairs = text.pairs(whole)
    asked = compared_on(pairs.only(pairs.index[-arguments.compared :]), torch.device("cpu"))
    held_out = HeldOut(whole.model, asked)
    studied = (batch for _, batch in pairs.first(arguments.subwords).in_order(BATCH_TOKENS))
    grams = gram_matrices(whole.model, studied, (*DECODER, *FEEDFORWARDS))
    surgeon = Surgeon(whole.model, output_maps(whole.model, grams))
    units = Surgeon(whole.model, {place: what for place, what in surgeon.maps.items() if place[0] in FEEDFORWARDS})
    losses = in_steps(units, ladders_of(units, held_out, rungs_of))
    used = [{*tokens.ids.tolist()} for tokens in text.tokens(whole)]
    everything = [*range(whole.shape.source_subwords)]
    for size in arguments.sizes:
        heads, units, *fewer = size.split(":")
        numbers = units_of(losses, int(units)) | {place: int(heads) for place in surgeon.maps if place[0] in DECODER}
        stay = {place: surgeon.kept(place, number) for place, number in numbers.items()}
        smaller = replace(whole, model=without(whole.model, surgeon.maps, stay))
        kept = (everything, staying_in(whole, used, (text.sentences, text.answers))[1]) if fewer else None
        name = f"heads-{heads}-units-{units}{''.join(f'-{len(kept[1])}' for _ in fewer if kept)}-int8"
        written(smaller, kept, arguments.out / name)
        print(name, *(f"{kind}{layer}:{number}" for (kind, layer), number in numbers.items()), flush=True)


if __name__ == "__main__":
    main()
