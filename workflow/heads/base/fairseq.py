"""A folder of transformers with a model that fairseq trained: M2M100, NLLB, BART or mBART; names of its files."""

from __future__ import annotations

import json
from pathlib import Path

from heads.base import marian
from heads.base.marian import CONFIG, GENERATION, HUB, PICKLED, TOKENIZER, VOCAB, WEIGHTS

CLASSES = {
    "m2m_100": "M2M100ForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
}
"""By the `model_type` of a config.json what transformers saves there; NLLB is an M2M100 with subwords of its own."""
SEGMENTER, MERGES = "sentencepiece.bpe.model", "merges.txt"
LISTS = ("tokenizer.json", "added_tokens.json", "special_tokens_map.json")
"""Where subwords are told of that stand in no vocabulary, such as languages, besides tokenizer_config.json."""
DESCRIBING = (CONFIG, GENERATION, TOKENIZER, VOCAB, SEGMENTER, MERGES, *LISTS)
"""All but the weights, as far as it is there."""


def model_type_of(folder: Path) -> str:
    """What a folder's config.json calls its model; empty where there is none that can be read."""
    try:
        return str(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_type"])
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def fits(folder: Path) -> bool:
    """Whether a folder is of one of these models."""
    return model_type_of(folder) in CLASSES


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that an import reads, those of the weights among them."""
    own = [path for name in (SEGMENTER, MERGES, *LISTS) if (path := folder / name).is_file()]
    return [*marian.files_of(folder), *own]


def not_there(folder: Path) -> str:
    """What to say of what may be a name on the hub: what to fetch by hand."""
    files = ", ".join(DESCRIBING)
    return (
        f"{folder} is no folder: fetch {WEIGHTS}, and of {files} what there is, from "
        f"{HUB}/{folder.as_posix()}/tree/main into it; a {PICKLED} has to be saved as {WEIGHTS} by transformers first."
    )
