"""What translating takes besides the model of a folder, below results/ or exported: its vocabularies and its search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heads.base.files import UserError, read_json
from heads.base.names import SIDES
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import LENGTH_OFFSET, NEVER

SCORE = "bleu.json"
VOCABULARIES = tuple(f"{side}.model" for side in SIDES)
PRETRAINED, ABOUT = "pretrained", "about.json"
"""Beside imported vocabularies: a folder of what the model came with, and in it where that is from."""
EARLY_STOPPING = "early_stopping"
"""The key there that says when a search ends."""
SCORE_TEXTS = {"split", "sentences", "signature"}


def vocabulary_folder(folder: Path) -> Path:
    """Where the two SentencePiece models lie: in an exported folder itself, or in the `bpe` of its experiment."""
    whole = folder.resolve()
    places = [whole, *(above / "bpe" for above in whole.parents)]
    for place in places:
        if all((place / name).is_file() for name in VOCABULARIES):
            return place
    raise UserError(
        f"{folder} has no {' and '.join(VOCABULARIES)}, neither inside nor in the bpe folder of an experiment above: "
        "leave the run in its results/EXPERIMENT, or export it from there."
    )


def load_vocabularies(folder: Path, model: Transformer) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies of source and target, which must have as many subwords as the folder's model knows."""
    place = vocabulary_folder(folder)
    source, target = (vocabulary_of(place / name) for name in VOCABULARIES)
    expected = model.shape.source_subwords, model.shape.target_subwords
    if (len(source), len(target)) != expected:
        raise UserError(
            f"{place} has vocabularies of {len(source)} and {len(target)} subwords, but {folder} was trained with "
            f"{expected[0]} and {expected[1]}: give back the ones it was trained with."
        )
    return source, target


def search_of(folder: Path) -> tuple[int, float]:
    """Beam and length penalty with which the folder's model was scored, or else an imported one is used."""
    score = score_of(folder)
    if score is None and (about := about_of(vocabulary_folder(folder))) is not None:
        return about["num_beams"], about["length_penalty"]
    if score is None:
        raise UserError(f"{folder} was never scored, so that its beam is unknown: give --beam and --length-penalty.")
    return score["beam"], score["length_penalty"]


def length_offset_of(folder: Path) -> int:
    """What is added to lengths that divide scores: nothing for an imported model that no experiment scored."""
    return LENGTH_OFFSET if _authors_search(folder) is None else 0


def early_stopping_of(folder: Path) -> bool | str:
    """When a search with the folder's model ends: sooner than need be only as authors of imported models have it."""
    theirs = _authors_search(folder)
    return NEVER if theirs is None else theirs.get(EARLY_STOPPING, False)


def _authors_search(folder: Path) -> Mapping[str, Any] | None:
    """What is known of an imported model that no experiment scored, which is searched as its authors do."""
    return None if (folder / SCORE).exists() else about_of(vocabulary_folder(folder))


def score_of(folder: Path) -> dict[str, Any] | None:
    """What the folder's model scored, and by which search; None where it was never scored."""
    path = folder / SCORE
    if not path.exists():
        return None
    score = read_json(path)
    try:
        numbers = math.isfinite(score["bleu"]) and math.isfinite(score["length_penalty"])
        whole = numbers and isinstance(score["beam"], int) and score["beam"] > 0 and score.keys() >= SCORE_TEXTS
    except (LookupError, TypeError):
        whole = False
    if not whole:
        raise UserError(
            f"{path} is damaged: delete it, and score the model again or translate with --beam and --length-penalty."
        )
    return dict(score)


def about_of(place: Path) -> dict[str, Any] | None:
    """What is told beside vocabularies of the model that they were imported with; None where they were learnt here."""
    path = place / PRETRAINED / ABOUT
    return dict(read_json(path)) if path.exists() else None
