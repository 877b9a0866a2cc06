"""The folder of a BERT in transformers' format: names of its files, and what to fetch if it does not exist."""

import json
from pathlib import Path

from heads.base.names import CLASSIFICATION
from heads.base.packaged import HUB_NAME
from heads.interop.format import Heads
from heads.interop.hub import ADDED, CONFIG, DESCRIBED, HUB, SPECIAL, TOKENIZER, WEIGHTS, by_import, saved_format

WORD_PIECES, VOCAB = DESCRIBED, "vocab.txt"
"""Either holds the vocabulary; the first one also says how text is split."""
MODULES, POOLING = "modules.json", "1_Pooling/config.json"
"""How a sentence encoder of sentence-transformers makes one vector of a sentence: its parts, and how it pools."""
ENCODERS = (MODULES, POOLING, "sentence_bert_config.json", "config_sentence_transformers.json")
DESCRIBING = (CONFIG, TOKENIZER, WORD_PIECES, VOCAB, ADDED, SPECIAL, *ENCODERS)
"""All files but the weights; a folder may lack some."""
NAMES = {"bert": "BERT"}


def heads_of(folder: Path) -> Heads:
    """Layers, and heads per layer, by kind of attention, from a folder's config.json; empty if it has no such number.

    So it is in a BERT whose layers came with different numbers of heads.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        layers, heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        return {} if config.get("pruned_heads") else {"enc_self": (layers, heads)}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def not_there(folder: Path) -> str:
    """The message about a folder that does not exist; for a possible name on the hub, what to fetch by hand."""
    name = folder.as_posix()
    if not HUB_NAME.fullmatch(name):
        return f"{folder} is no folder: give one as save_pretrained writes it of a BertForSequenceClassification."
    return (
        f"{folder} is no folder: {by_import(name)}, or fetch {CONFIG}, {TOKENIZER}, {VOCAB} or {WORD_PIECES}, and "
        f"{WEIGHTS} from {HUB}/{name}/tree/main into it."
    )


BERT = saved_format("bert", CLASSIFICATION, NAMES, DESCRIBING, heads_of, not_there)
