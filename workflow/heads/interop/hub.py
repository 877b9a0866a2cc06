"""Files of a folder that transformers' save_pretrained writes, whatever the model, and where its hub has them."""

import json
from collections.abc import Sequence
from pathlib import Path

CONFIG, GENERATION, TOKENIZER, VOCAB = "config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"
DESCRIBED, ADDED, SPECIAL = "tokenizer.json", "added_tokens.json", "special_tokens_map.json"
"""A tokeniser in one file, which may stand for all others, and the files that add subwords to it."""
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LICENCES = ("README.md", "LICENSE", "LICENSE.txt", "NOTICE")
HUB = "https://huggingface.co"


def files_of(folder: Path, describing: Sequence[str]) -> list[Path]:
    """The files of a folder that an import reads, including the weights. describing: names of all but these."""
    names = [*describing, *LICENCES, WEIGHTS, INDEX]
    shards = sorted(folder.glob("model-*.safetensors"))
    return [path for path in (*(folder / name for name in names), *shards) if path.is_file()]


def model_type(folder: Path) -> str:
    """What kind of model a folder's config.json says it is, such as marian or bert; "" if it does not."""
    try:
        return str(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_type"])
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def by_import(name: str) -> str:
    """How to import a model from the hub, if there is a network."""
    return f'where there is a network run "heads import {name}" once'
