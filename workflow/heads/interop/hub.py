"""Files of a folder that transformers' save_pretrained writes, whatever the model, and where its hub has them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heads.interop.format import Format, Heads

CONFIG, GENERATION, TOKENIZER, VOCAB = "config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"
DESCRIBED, ADDED, SPECIAL = "tokenizer.json", "added_tokens.json", "special_tokens_map.json"
"""A tokeniser in one file, which may stand for all others, and the files that add subwords to it."""
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LICENCES = ("README.md", "LICENSE", "LICENSE.txt", "NOTICE")
HUB = "https://huggingface.co"


def saved_files(folder: Path, describing: Sequence[str]) -> list[Path]:
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


def to_fetch(folder: Path, describing: Sequence[str]) -> str:
    """What to fetch by hand into a missing folder that may be a name on the hub: a sentence without its full stop."""
    return (
        f"{folder} is no folder: fetch {WEIGHTS}, and those of {', '.join(describing)} that exist, from "
        f"{HUB}/{folder.as_posix()}/tree/main into it"
    )


def saved_format(
    name: str,
    task: str,
    model_types: Mapping[str, str],
    describing: Sequence[str],
    heads: Callable[[Path], Heads],
    not_there: Callable[[Path], str],
    needed: int = 1,
) -> Format:
    """A format that transformers saves, known by config.json; all but `model_types` and `describing` as in `Format`.

    describing: names of all files but the weights, config.json first; needed: of so many, no folder lacks any.
    """
    return Format(
        name,
        task,
        lambda _, kind: kind in model_types,
        lambda folder: saved_files(folder, describing),
        heads,
        not_there,
        model_types,
        from_hub=(*describing[1:needed], WEIGHTS),
        from_hub_if_there=(*describing[needed:], LICENCES[0]),
    )
