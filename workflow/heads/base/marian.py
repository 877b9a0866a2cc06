"""The folder of a Marian model in transformers' format: its files, and what to fetch if it does not exist."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from heads.base.names import ATTENTIONS

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB = "source.spm", "target.spm", "vocab.json", "target_vocab.json"
DESCRIBED, ADDED, SPECIAL = "tokenizer.json", "added_tokens.json", "special_tokens_map.json"
"""A tokeniser in one file, which may stand for all others, and the files that add subwords to it."""
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
NEEDED = (CONFIG, VOCAB, SOURCE_SPM, TARGET_SPM)
DESCRIBING = (*NEEDED, GENERATION, TOKENIZER, TARGET_VOCAB, DESCRIBED, ADDED, SPECIAL)
"""All files but the weights; a folder may lack some."""
LICENCES = ("README.md", "LICENSE", "LICENSE.txt", "NOTICE")
FROM_HUB, FROM_HUB_IF_THERE = (*NEEDED[1:], WEIGHTS), (*DESCRIBING[len(NEEDED) :], LICENCES[0])
"""What is downloaded besides config.json; the latter are optional."""
HUB = "https://huggingface.co"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
"""The name of a model on the hub, such as Helsinki-NLP/opus-mt-en-de."""


def files_of(folder: Path, describing: Sequence[str] = DESCRIBING) -> list[Path]:
    """The files of a folder that an import reads, including the weights."""
    names = [*describing, *LICENCES, WEIGHTS, INDEX]
    shards = sorted(folder.glob("model-*.safetensors"))
    return [path for path in (*(folder / name for name in names), *shards) if path.is_file()]


def heads_of(folder: Path) -> dict[str, tuple[int, int]]:
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


def model_type(folder: Path) -> str:
    """What kind of model a folder's config.json says it is, such as marian or bert; "" if it does not."""
    try:
        return str(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_type"])
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def by_import(name: str) -> str:
    """How to import a model from the hub, if there is a network."""
    return f'where there is a network run "heads import {name}" once'


def not_there(folder: Path) -> str:
    """The message about a folder that does not exist; for a possible name on the hub, what to fetch by hand."""
    name = folder.as_posix()
    if not HUB_NAME.fullmatch(name):
        return f"{folder} is no folder: give one as save_pretrained writes it of a MarianMTModel."
    files = ", ".join((*NEEDED, GENERATION, TOKENIZER))
    return (
        f"{folder} is no folder: {by_import(name)}, or fetch {files} and {WEIGHTS} from {HUB}/{name}/tree/main into it."
    )
