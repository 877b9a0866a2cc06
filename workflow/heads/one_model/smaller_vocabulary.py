"""Make a model's vocabulary smaller before anything else goes: what a text and the model's outputs for it use stays.

Their logits do not change, so that greedy search finds the same outputs for the text.
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.bundle import Bundle, saved_bundle
from heads.interop.firefox.family import FAMILY as FIREFOX
from heads.interop.firefox.fewer import filled_up
from heads.model.fewer_rows import with_subwords
from heads.model.folder import save_folder
from heads.one_model.answered_text import AnsweredSplits
from heads.one_model.request import PruningRequest
from heads.one_model.working_folder import WorkingFolder
from heads.syntax.tokenising import words_of_text
from heads.text.fewer_subwords import all_subwords, fewer_of, staying
from heads.text.vocabulary import Vocabulary
from heads.translation.model_folder import PRETRAINED

Ids = tuple[list[int], list[int]]
"""Those of source and target, in order."""


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


def with_smaller_vocabulary(texts: AnsweredSplits, folder: WorkingFolder, request: PruningRequest) -> Bundle:
    """The model that answers a text, with the subwords that the training part of the text needs.

    It has a folder of its own, as the original files of an imported model need fewer subwords too. If no subwords are
    to go, it is the model itself.
    """
    whole = texts.model
    if not request.vocabulary:
        return whole
    out = folder.smaller_vocabulary
    if not out.is_dir():
        # What was written for held-out sentences does not count, so these show what is lost.
        text, unfinished = texts["train"], out.with_name(f"{out.name}.unfinished")
        used = [{*tokens.ids.tolist()} for tokens in text.tokens(whole)]
        if not whole.shape.encoder_only:
            used[1] |= texts.written_ids("train")
        shutil.rmtree(unfinished, ignore_errors=True)
        kept = staying_in(whole, used, [text.sentences, text.answers])
        write_with_fewer(whole.on("cpu"), kept, unfinished)
        unfinished.rename(out)
    return saved_bundle(out).on(texts.device)


def staying_in(model: Bundle, used: Sequence[Collection[int]], lines: Sequence[Sequence[str]]) -> Ids:
    """The ids of source and target that a model needs for a text; labels all stay.

    used: those that the text and its translations have. lines: the text itself and its translations. Sides with the
    same subwords keep the same.
    """
    sides = model.source, model.target
    both = [one for one in sides if isinstance(one, Vocabulary)]
    found = [staying(one, of, text) for one, of, text in zip(both, used, lines, strict=False)]
    names = [all_subwords(one) for one in both]
    if len(both) == 2 and {*names[0]} == {*names[1]}:
        of_any = {own[number] for own, ids in zip(names, found, strict=True) for number in ids}
        found = [[number for number, name in enumerate(own) if name in of_any] for own in names]
    if model.family is FIREFOX:
        found = [filled_up(ids, len(one)) for ids, one in zip(found, both, strict=True)]
    if len(both) < 2:
        found.append([*range(len(sides[1]))])
    return found[0], found[1]


def write_with_fewer(model: Bundle, kept: Ids, out: Path) -> None:
    """Write a model, with these ids of source and target alone, into the new folder `out`."""
    out.mkdir(parents=True)
    for side, one, ids in zip(SIDES, (model.source, model.target), kept, strict=True):
        stored = fewer_of(one, ids) if isinstance(one, Vocabulary) else one.stored
        stored.write(out / f"{side}.model")
    model.write_origin(out)
    if model.family:
        model.family.take_subwords(out / PRETRAINED, model.shape, kept)
    save_folder(with_subwords(model.model, *kept), out, model.facts, model.facts["provenance"])


def vocabulary_line(whole: Bundle, texts: AnsweredSplits) -> str:
    """How many subwords are left, and the share of words that held-out sentences and their outputs now split otherwise.

    whole: the model with fewer subwords.
    """
    held_out = [texts[split] for split in ("dev", "test")]
    lines = [line for text in held_out for line in text.sentences], [line for text in held_out for line in text.answers]
    sides = zip(SIDES, (texts.model.source, texts.model.target), (whole.source, whole.target), lines, strict=True)
    counts, shares = list[str](), list[str]()
    for side, before, after, text in sides:
        if isinstance(before, Vocabulary) and isinstance(after, Vocabulary):
            counts.append(f"{len(after):,} of {len(before):,} {side} subwords")
            shares.append(f"{100 * split_otherwise(before, after, text):.1f} %")
    of_outputs = f", and {shares[1]} of those in their translations" if len(shares) > 1 else ""
    return (
        f"{' and '.join(counts)} are left. Of the words in {len(lines[0])} held-out sentences {shares[0]} are now "
        f"split otherwise{of_outputs}."
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
