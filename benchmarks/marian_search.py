"""How often our beam search and that of transformers find different translations with a Marian model, and why.

Run: PYTHONPATH=workflow python benchmarks/marian_search.py MODEL test.en.gz on a folder that `save_pretrained` wrote.
Both models compute the same function, so only the search differs. Theirs may reach the length limit without an
end-of-sentence token, where ours has to end. Theirs divides by length ** penalty, as `heads translate` does with
imported models; experiments divide by ((5 + length) / 6) ** penalty. Experiments search until the best translation
cannot be beaten; theirs may stop earlier, and so does `heads translate` with imported models.
"""

import argparse
import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import MarianMTModel, logging

from heads.interop.bundle import saved_bundle
from heads.interop.marian.importing import numberings_of
from heads.interop.marian.reading import read_marian
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS
from heads.translation.beam_search import LENGTH_OFFSET, NEVER, beam_search, length_limit, penalty

Rows = tuple[tuple[int, ...], tuple[int, ...]]
Hypotheses = list[list[int]]


def theirs(
    model: MarianMTModel, rows: tuple[tuple[int, ...], tuple[int, ...]], ids: list[int], **how: Any
) -> list[int]:
    """The translation that transformers finds for a source sentence, both in our ids."""
    source, target = rows
    ours = {number: place for place, number in enumerate(target) if place != BOS}
    subwords = torch.tensor([[source[place] for place in ids]])
    found = model.generate(input_ids=subwords, max_new_tokens=length_limit(len(ids)), **how)[0, 1:].tolist()
    kept = found[: found.index(target[EOS])] if target[EOS] in found else found
    return [ours[number] for number in kept]


@torch.inference_mode()
def log_probability(model: Transformer, ids: list[int], found: list[int]) -> float:
    """Log-probability of a whole translation with its end-of-sentence token, in nats."""
    source = torch.tensor([ids])
    states = model(source, torch.ones_like(source, dtype=torch.bool), torch.tensor([[BOS, *found]]))
    by_subword = model.projection(states)[0].log_softmax(-1)
    return float(by_subword[torch.arange(len(found) + 1), torch.tensor([*found, EOS])].sum())


def each_is_better(model: Transformer, alpha: float, ids: list[int], one: list[int], other: list[int]) -> bool:
    """Whether `one` scores higher than `other` divided by the length itself, and lower by Wu et al.'s formula."""
    totals = [(log_probability(model, ids, found), len(found) + 1) for found in (one, other)]
    (by_length, beside), (by_wu, before) = (
        [total / penalty(length, alpha, offset) for total, length in totals] for offset in (0, LENGTH_OFFSET)
    )
    return bool(by_length > beside and by_wu < before)


def main() -> None:
    """Print how many translations differ by the settings of the search and, for the model's own settings, why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path, help="gzipped text")
    parser.add_argument("--sentences", type=int, default=200)
    logging.set_verbosity_error()  # it would warn about our length limit once per sentence
    arguments = parser.parse_args()
    with gzip.open(arguments.source, "rt", encoding="utf-8") as text:
        lines = [line.strip() for line in text][: arguments.sentences]
    with TemporaryDirectory() as place:
        import_any(str(arguments.model), Path(place) / "ours")
        bundle = saved_bundle(Path(place) / "ours")
        ours, (vocabulary, _) = bundle.translates()
        (beam, alpha), (_, stopping) = bundle.search, bundle.offset_and_stopping
    source, target = numberings_of(read_marian(OriginalFiles(arguments.model)))
    other = MarianMTModel.from_pretrained(arguments.model).eval()
    sentences = [[*ids, EOS] for ids in vocabulary.encode(lines)]

    def by_ours(offset: int, early_stopping: bool | str = NEVER) -> Hypotheses:  # noqa: FBT001 - as transformers has it
        """Our translations, with scores divided by lengths with this offset."""
        found = []
        for ids in sentences:
            subwords = torch.tensor([ids])
            mask = torch.ones_like(subwords, dtype=torch.bool)
            how: dict[str, Any] = {"length_penalty": alpha, "length_offset": offset, "early_stopping": early_stopping}
            found += beam_search(ours, subwords, mask, beam=beam, **how)
        return found

    def by_theirs(**how: Any) -> Hypotheses:
        return [theirs(other, (source.rows, target.rows), ids, **how) for ids in sentences]

    def differing(some: Hypotheses, others: Hypotheses) -> list[int]:
        return [number for number, (one, two) in enumerate(zip(some, others, strict=True)) if one != two]

    own, never = by_theirs(), by_theirs(early_stopping="never")
    mine, longest, by_wu = by_ours(0, stopping), by_ours(0), by_ours(LENGTH_OFFSET)
    print(f"{len(sentences)} sentences, beam {beam}, length penalty {alpha}; translations that differ:")
    print(f"the model's own settings, as `heads translate` takes them: {len(differing(own, mine))}")
    for number in differing(own, mine):
        limit = length_limit(len(sentences[number]))
        print(f"  subwords of theirs and of ours: {len(own[number])} and {len(mine[number])}, at most {limit}")
    print(f"the same, neither stopping early: {len(differing(never, longest))}")
    print(f"ours dividing by Wu et al.'s formula: {len(differing(own, by_wu))}")
    better = sum(
        each_is_better(ours, alpha, sentences[number], own[number], by_wu[number]) for number in differing(own, by_wu)
    )
    print(f"of those, each the better one by its own formula: {better}")


if __name__ == "__main__":
    main()
