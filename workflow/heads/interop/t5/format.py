"""The folder of a T5, mT5 or UMT5 in transformers' format: its files, and what to fetch if it does not exist."""

import json
from pathlib import Path

from heads.base.names import TRANSLATION
from heads.interop import hub
from heads.interop.format import Format, Heads
from heads.interop.hub import ADDED, CONFIG, DESCRIBED, GENERATION, HUB, LICENCES, SPECIAL, TOKENIZER, WEIGHTS

CLASSES = {
    "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration",
    "umt5": "UMT5ForConditionalGeneration",
}
"""The class that transformers saves, by the `model_type` in config.json; FLAN-T5, ByT5 and MADLAD-400 are T5s."""
SEGMENTER = "spiece.model"
DESCRIBING = (CONFIG, GENERATION, TOKENIZER, SEGMENTER, DESCRIBED, ADDED, SPECIAL)
"""All files but the weights; a folder may lack some."""
NAMES = {"t5": "T5", "mt5": "mT5", "umt5": "UMT5"}


def fits(folder: Path) -> bool:
    """Whether a folder holds one of these models, by its config.json."""
    return hub.model_type(folder) in NAMES


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that an import reads, including the weights."""
    return hub.files_of(folder, DESCRIBING)


def heads_of(folder: Path) -> Heads:
    """Layers, and heads per layer, by kind of attention, from a folder's config.json; empty if it does not say."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        layers, heads = int(config["num_layers"]), int(config["num_heads"])
        deep = int(config.get("num_decoder_layers") or layers)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}
    return {"enc_self": (layers, heads), "dec_self": (deep, heads), "dec_enc": (deep, heads)}


def not_there(folder: Path) -> str:
    """The message about a missing folder that may be a name on the hub: what to fetch by hand."""
    files = ", ".join(DESCRIBING)
    return (
        f"{folder} is no folder: fetch {WEIGHTS}, and those of {files} that exist, from "
        f"{HUB}/{folder.as_posix()}/tree/main into it."
    )


T5 = Format(
    "t5",
    TRANSLATION,
    fits,
    files_of,
    heads_of,
    not_there,
    NAMES,
    from_hub=(WEIGHTS,),
    from_hub_if_there=(*DESCRIBING[1:], LICENCES[0]),
)
