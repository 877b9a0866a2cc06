"""The folder of a T5, mT5 or UMT5 in transformers' format: its files, and what to fetch if it does not exist."""

import json
from pathlib import Path

from heads.base.names import TRANSLATION
from heads.interop.format import Heads
from heads.interop.hub import ADDED, CONFIG, DESCRIBED, GENERATION, SPECIAL, TOKENIZER, saved_format, to_fetch

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


def heads_of(folder: Path) -> Heads:
    """Layers, and heads per layer, by kind of attention, from a folder's config.json; empty if it does not say."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        layers, heads = int(config["num_layers"]), int(config["num_heads"])
        deep = int(config.get("num_decoder_layers") or layers)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}
    return {"enc_self": (layers, heads), "dec_self": (deep, heads), "dec_enc": (deep, heads)}


T5 = saved_format("t5", TRANSLATION, NAMES, DESCRIBING, heads_of, lambda folder: f"{to_fetch(folder, DESCRIBING)}.")
