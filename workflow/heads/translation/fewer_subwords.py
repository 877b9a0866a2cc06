"""Write the folder of a model with fewer subwords: its rows, its vocabularies, and the original files of an import."""

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from heads.formats.marian_parts import is_marian
from heads.model.folder import load_model, save_folder
from heads.model.shape import facts_of
from heads.text.encoding import opened
from heads.text.fewer_subwords import names_of, staying, write_fewer
from heads.text.vocabulary import Vocabulary
from heads.translation.fewer_in_files import take_from_files
from heads.translation.fewer_in_firefox import filled_up
from heads.translation.fewer_rows import with_subwords
from heads.translation.model_folder import PRETRAINED, VOCABULARIES, vocabulary_folder

Ids = tuple[list[int], list[int]]
"""Those of source and target, in order."""


def staying_in(folder: Path, used: Sequence[Collection[int]], lines: Sequence[Sequence[str]]) -> Ids:
    """The ids of source and target that the model of a folder needs for a text; labels all stay.

    used: those that the text and its translations have. lines: the text itself and its translations. Sides with the
    same subwords keep the same.
    """
    place = vocabulary_folder(folder)
    sides = [opened(place / name) for name in VOCABULARIES]
    both = [one for one in sides if isinstance(one, Vocabulary)]
    found = [staying(one, of, text) for one, of, text in zip(both, used, lines, strict=False)]
    names = [names_of(one) for one in both]
    if len(both) == 2 and {*names[0]} == {*names[1]}:
        of_any = {own[number] for own, ids in zip(names, found, strict=True) for number in ids}
        found = [[number for number, name in enumerate(own) if name in of_any] for own in names]
    if is_marian(place / PRETRAINED):
        found = [filled_up(ids, len(one)) for ids, one in zip(found, both, strict=True)]
    if len(both) < 2:
        found.append([*range(len(sides[1]))])
    return found[0], found[1]


def write_with_fewer(folder: Path, kept: Ids, out: Path) -> None:
    """Write the model of a folder, with these ids of source and target alone, into the folder `out`."""
    place, model, facts = vocabulary_folder(folder), load_model(folder), facts_of(folder)
    out.mkdir(parents=True)
    for name, ids in zip(VOCABULARIES, kept, strict=True):
        vocabulary = opened(place / name)
        if isinstance(vocabulary, Vocabulary):
            write_fewer(vocabulary, ids, out / name)
        else:
            shutil.copyfile(place / name, out / name)
            shutil.copyfile((place / name).with_suffix(".json"), (out / name).with_suffix(".json"))
    if (place / PRETRAINED).is_dir():
        shutil.copytree(place / PRETRAINED, out / PRETRAINED)
    take_from_files(out / PRETRAINED, model.shape, kept)
    save_folder(with_subwords(model, *kept), out, facts, facts["provenance"])
