"""Make a model's vocabulary smaller before anything else goes: what a text and the model's outputs for it use stays.

Their logits do not change, so that greedy search finds the same outputs for the text.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch

from heads.base.files import UserError, read_lines
from heads.base.names import SIDES
from heads.interop.bundle import Bundle, saved_bundle
from heads.interop.fewer_subwords import staying_in, write_with_fewer
from heads.model.shape import FACTS, shape_of
from heads.one_model.request import PruningRequest
from heads.one_model.workplace import STUDIED, Workplace
from heads.syntax.tokenising import words_of_text
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.model_folder import VOCABULARIES
from heads.translation.stream import Report, Translator

WRITTEN = "written.jsonl"
"""The file of the target ids that the model wrote, one list for each batch."""
FEWER = "fewer"
"""The folder of the pruning that goes on with the smaller vocabulary."""


@dataclass(frozen=True, slots=True)
class Noting:
    """A vocabulary that notes in a file which ids it decodes, so that they are known even after an interruption."""

    vocabulary: Vocabulary
    notes: Path

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of each sequence of ids."""
        sequences = [[int(number) for number in sequence] for sequence in ids]
        with self.notes.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(sorted({*chain.from_iterable(sequences)}))}\n")
        return self.vocabulary.decode(sequences)


def noting(notes: Path) -> Callable[[Translator], Translator]:
    """A function that makes a Translator note in a file which target ids it writes."""

    def noted(translator: Translator) -> Translator:
        return replace(translator, target=Noting(translator.target, notes))  # type: ignore[arg-type]

    return noted


def refuse_vocabulary(model: Bundle, request: PruningRequest) -> None:
    """Raise UserError if subwords are to go and a model's vocabulary has none that could."""
    if not request.vocabulary:
        return
    shape = model.shape
    least = [len(ids) for ids in staying_in(model, ((), ()), ((), ()))]
    if least == [shape.source_subwords, shape.target_subwords]:
        raise UserError(
            f"{model.place} has nothing but bytes or single characters, and special tokens: leave --vocabulary out."
        )


def with_smaller_vocabulary(
    place: Workplace, request: PruningRequest, splits: Mapping[str, list[str]], device: torch.device, report: Report
) -> Workplace:
    """The folder in which the pruning goes on: its model has the subwords that the training part of the text needs.

    splits: the text. All of it is answered by the whole model. If no subwords are to go, nothing is done.
    """
    if not request.vocabulary:
        return place
    notes = place.folder / WRITTEN
    # What was written for held-out sentences does not count, so these show what is lost.
    place.answer({"train": splits["train"]}, device, report, noting(notes))
    place.answer({name: splits[name] for name in ("dev", "test")}, device, report)
    fewer = Workplace(place.folder / FEWER, {}, place.named, place.metric, place)
    if (fewer.baseline / FACTS).is_file():
        return fewer
    smaller = place.folder / f"{FEWER}.unfinished"
    shutil.rmtree(smaller, ignore_errors=True)
    model = saved_bundle(place.baseline)
    used = [{*Tokens(place.tokens("train", side)).ids.tolist()} for side in SIDES]
    if not model.shape.encoder_only:
        used[1] |= {*chain.from_iterable(map(json.loads, read_lines(notes)))}
    lines = [read_lines(place.text("train", side)) for side in SIDES]
    write_with_fewer(model, staying_in(model, used, lines), smaller)
    _copy_texts(place, fewer, splits)
    fewer.lay_out(saved_bundle(smaller))
    shutil.rmtree(smaller)
    return fewer


def _copy_texts(place: Workplace, fewer: Workplace, splits: Mapping[str, list[str]]) -> None:
    """Copy the text of all splits with the whole model's outputs; STUDIED is a part of the text to train on."""
    fewer.bpe.mkdir(parents=True, exist_ok=True)
    sides = [read_lines(place.text("train", side)) for side in SIDES]
    outputs = dict(zip(*sides, strict=True))
    studied = [line for line in splits[STUDIED] if line in outputs]
    for side, lines in zip(SIDES, (studied, [outputs[line] for line in studied]), strict=True):
        fewer.text(STUDIED, side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        for split in ("train", "dev", "test"):
            shutil.copyfile(place.text(split, side), fewer.text(split, side))


def vocabulary_line(place: Workplace) -> str:
    """How many subwords are left, and the share of words that held-out sentences and their outputs now split otherwise.

    place: of the smaller model.
    """
    counts, shares = list[str](), list[str]()
    for number, side in enumerate(SIDES):
        if side == SIDES[1] and shape_of(place.baseline).encoder_only:
            break
        before, after = (vocabulary_of(one.bpe / VOCABULARIES[number]) for one in (place.original, place))
        lines = [line for split in ("dev", "test") for line in read_lines(place.text(split, side))]
        counts.append(f"{len(after):,} of {len(before):,} {side} subwords")
        shares.append(f"{100 * split_otherwise(before, after, lines):.1f} %")
    of_outputs = f", and {shares[1]} of those in their translations" if len(shares) > 1 else ""
    return (
        f"{' and '.join(counts)} are left. Of the words in {len(lines)} held-out sentences {shares[0]} are now split "
        f"otherwise{of_outputs}."
    )


def split_otherwise(before: Vocabulary, after: Vocabulary, lines: Sequence[str]) -> float:
    """The share of words in a text that two vocabularies do not cut into the same subwords."""
    changed = words = 0
    for line in lines:
        for text in line.split("\t"):
            plain = " ".join(text.split())
            both = zip(cut_words(before, plain), cut_words(after, plain), strict=True)
            same = [one == other for one, other in both]
            changed, words = changed + len(same) - sum(same), words + len(same)
    return changed / max(1, words)


def cut_words(vocabulary: Vocabulary, text: str) -> Iterator[list[tuple[str, int, int]]]:
    """For each word of a text, the subwords that overlap it, with their characters."""
    ids, spans = vocabulary.spans(text)
    found = [(vocabulary.subword(number), *span) for number, span in zip(ids, spans, strict=True)]
    for word in words_of_text(text):
        yield [one for one in found if one[1] < word.end and one[2] > word.start]
