"""A Marian model's folder as transformers writes it: names of its files, and what to fetch where there is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

from heads.base.names import ATTENTIONS

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB = "source.spm", "target.spm", "vocab.json", "target_vocab.json"
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
NEEDED = (CONFIG, VOCAB, SOURCE_SPM, TARGET_SPM)
DESCRIBING = (*NEEDED, GENERATION, TOKENIZER, TARGET_VOCAB)
"""All but the weights: what such a folder has besides, as far as it is there."""
LICENCES = ("README.md", "LICENSE", "LICENSE.txt", "NOTICE")
HUB = "https://huggingface.co"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
"""What a model is called on the hub, such as Helsinki-NLP/opus-mt-en-de."""


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that an import reads, those of the weights among them."""
    names = [*DESCRIBING, *LICENCES, WEIGHTS, INDEX]
    shards = sorted(folder.glob("model-*.safetensors"))
    return [path for path in (*(folder / name for name in names), *shards) if path.is_file()]


def heads_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Layers and heads of a layer by kind of attention, as a folder's config.json says.

    Empty where it says none: what is wrong with such a file is told by the import, which reads all of it.
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


def by_import(name: str) -> str:
    """How a model of the hub comes to this machine, where there is a network."""
    return f'where there is a network run "heads import {name}" once'


def not_there(folder: Path) -> str:
    """What to say where a folder is none; of what may be a name on the hub, what to fetch by hand."""
    name = folder.as_posix()
    if not HUB_NAME.fullmatch(name):
        return f"{folder} is no folder: give one as save_pretrained writes it of a MarianMTModel."
    files = ", ".join((*NEEDED, GENERATION, TOKENIZER))
    return (
        f"{folder} is no folder: {by_import(name)}, or fetch {files} and {WEIGHTS} from {HUB}/{name}/tree/main into it."
    )
