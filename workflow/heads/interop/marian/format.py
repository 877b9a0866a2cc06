"""The folder of a Marian model in transformers' format: its files, and what to fetch if it does not exist."""

import json
from pathlib import Path

from heads.base.names import ATTENTIONS, TRANSLATION
from heads.base.packaged import HUB_NAME
from heads.interop.format import Heads
from heads.interop.hub import (
    ADDED,
    CONFIG,
    DESCRIBED,
    GENERATION,
    HUB,
    SPECIAL,
    TOKENIZER,
    VOCAB,
    WEIGHTS,
    by_import,
    saved_format,
)

SOURCE_SPM, TARGET_SPM, TARGET_VOCAB = "source.spm", "target.spm", "target_vocab.json"
NEEDED = (CONFIG, VOCAB, SOURCE_SPM, TARGET_SPM)
DESCRIBING = (*NEEDED, GENERATION, TOKENIZER, TARGET_VOCAB, DESCRIBED, ADDED, SPECIAL)
"""All files but the weights; a folder may lack some."""
NAMES = {"marian": "Marian"}


def heads_of(folder: Path) -> Heads:
    """Layers, and heads per layer, by kind of attention, from a folder's config.json.

    Empty if it does not have them: the import, which reads all of the file, says what is wrong with it.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        stacks = {
            stack: (int(config[f"{stack}_layers"]), int(config[f"{stack}_attention_heads"]))
            for stack in ("encoder", "decoder")
        }
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {kind: stacks["encoder" if kind.startswith("enc") else "decoder"] for kind in ATTENTIONS}


def not_there(folder: Path) -> str:
    """The message about a folder that does not exist; for a possible name on the hub, what to fetch by hand."""
    name = folder.as_posix()
    if not HUB_NAME.fullmatch(name):
        return f"{folder} is no folder: give one as save_pretrained writes it of a MarianMTModel."
    files = ", ".join((*NEEDED, GENERATION, TOKENIZER))
    return (
        f"{folder} is no folder: {by_import(name)}, or fetch {files} and {WEIGHTS} from {HUB}/{name}/tree/main into it."
    )


MARIAN = saved_format("marian", TRANSLATION, NAMES, DESCRIBING, heads_of, not_there, needed=len(NEEDED))
