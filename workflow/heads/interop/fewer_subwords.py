"""Write the folder of a model with fewer subwords: its rows, its vocabularies, and the original files of an import."""

from collections.abc import Collection, Sequence
from pathlib import Path

from heads.base.names import SIDES
from heads.interop.bundle import Bundle
from heads.interop.firefox.family import FIREFOX
from heads.interop.firefox.fewer import filled_up
from heads.model.fewer_rows import with_subwords
from heads.model.folder import save_folder
from heads.text.fewer_subwords import all_subwords, fewer_of, staying
from heads.text.vocabulary import Vocabulary
from heads.translation.model_folder import PRETRAINED

Ids = tuple[list[int], list[int]]
"""Those of source and target, in order."""


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
