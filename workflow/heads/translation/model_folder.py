"""Vocabularies and search settings that go with the model of a folder, whether under results/ or exported."""

import math
from pathlib import Path
from typing import Any

from heads.base.files import UserError, read_json
from heads.base.names import BLEU, SCORES, SIDES
from heads.model.shape import ModelShape
from heads.text.vocabulary import Vocabulary

SCORE = SCORES[BLEU]
VOCABULARIES = tuple(f"{side}.model" for side in SIDES)
PRETRAINED, ABOUT = "pretrained", "about.json"
"""Folder of an imported model's original files, beside its vocabularies, and the file in it with their origin."""
EARLY_STOPPING, DESCRIBED = "early_stopping", "described"
"""Keys in that file: when a search ends, and whether `tokenizers` cuts texts, as the model's tokenizer.json says."""
PREFIX_SUBWORDS = "prefix_subwords"
"""The key of the subwords of a prefix that is a text; other prefixes are one subword, or transformers puts them."""
ANY_TEXT = ("bart", "t5", "mt5", "umt5")
"""transformers' `model_type` of models that are trained for other tasks than translation too."""
SCORE_TEXTS = {"split", "sentences", "signature"}


def vocabulary_folder(folder: Path) -> Path:
    """Folder of the two SentencePiece models: an exported folder itself, or the `bpe` folder of its experiment."""
    whole = folder.resolve()
    places = [whole, *(above / "bpe" for above in whole.parents)]
    for place in places:
        if all((place / name).is_file() for name in VOCABULARIES):
            return place
    raise UserError(
        f"{folder} has no {' and '.join(VOCABULARIES)}, neither inside nor in the bpe folder of an experiment above: "
        "leave the run in its results/EXPERIMENT, or export it from there."
    )


def refuse_other_sizes(folder: Path, shape: ModelShape, source: Vocabulary, target: Vocabulary) -> None:
    """Raise UserError if the sizes of vocabularies are not those of a model, which is from a folder."""
    expected = shape.source_subwords, shape.target_subwords
    if (len(source), len(target)) != expected:
        raise UserError(
            f"{source.path.parent} has vocabularies of {len(source)} and {len(target)} subwords, but {folder} was "
            f"trained with {expected[0]} and {expected[1]}: restore those it was trained with."
        )


def score_of(folder: Path) -> dict[str, Any] | None:
    """Score of the folder's model and the search it was made with; None if it was never scored."""
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
    """Facts about the model that the vocabularies were imported with; None if they were learnt here."""
    path = place / PRETRAINED / ABOUT
    return dict(read_json(path)) if path.exists() else None
