"""Read a folder that transformers' save_pretrained wrote, whatever the model: its config, tokeniser and numbers."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from heads.base.files import UserError
from heads.base.stand_ins import packed_files, refuse_pointers, way_to
from heads.interop import hub
from heads.interop.original import OriginalFiles
from heads.interop.saved_weights import refuse_adapter, refuse_quantised
from heads.model.encoder import Encoder
from heads.text.added import Added, added_in
from heads.text.wordpieces import numbered_by

Model = TypeVar("Model", bound=Encoder)


def added_to(folder: Path, *more: str) -> dict[str, Added]:
    """The subwords that a tokeniser's files add to its vocabulary, and those in it that they describe, by name.

    more: names of further files.
    """
    files = (hub.TOKENIZER, *more, hub.ADDED, hub.SPECIAL)
    return added_in(folder, {name: read_object(folder / name, {}) for name in files})


def config_in(files: OriginalFiles) -> dict[str, Any]:
    """The config.json of a model as it stands. Raises UserError if it is missing or damaged."""
    return read_object(files.place / hub.CONFIG)


def read_config(files: OriginalFiles, names: Sequence[str], *, pruned: bool = False) -> Mapping[str, Any]:
    """The config.json of a folder that transformers wrote, of which an import reads the files of these names.

    pruned: whether a model may come with heads that were removed. Raises UserError for an adapter, a quantised model,
    heads that were removed, and files that are packed or pointers of Git LFS.
    """
    folder = files.place
    refuse_adapter(folder)
    refuse_pointers(folder / name for name in names)
    for name in names:
        if packed := packed_files((folder / name).parent, Path(name).name):
            raise UserError(f"{folder} has no {name}: unpack {packed[0].name}.")
    path, config = folder / hub.CONFIG, files.once(config_in)
    refuse_quantised(path, config)
    if not pruned and config.get("pruned_heads"):
        raise UserError(f"{path} has pruned_heads, which only a BERT can have: give the model with all its heads.")
    return config


def check_numbers(path: Path, config: Mapping[str, Any], whole: Sequence[str], shares: Sequence[str]) -> None:
    """Raise UserError unless the keys `whole` are positive integers and the keys `shares` at least 0 and below 1."""
    for key in whole:
        if not isinstance(config[key], int) or isinstance(config[key], bool) or config[key] < 1:
            raise UserError(f"{path}: {key} is {config[key]!r}: it must be a positive integer.")
    for key in shares:
        if not isinstance(config[key], int | float) or isinstance(config[key], bool) or not 0 <= config[key] < 1:
            raise UserError(f"{path}: {key} is {config[key]!r}: it must be at least 0 and below 1.")


def read_object(path: Path, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object in a JSON file. Raises UserError if it is damaged, or is missing and nothing is given `otherwise`."""
    if otherwise is not None and not path.is_file():
        return otherwise
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UserError(f"{path.parent} has no {path.name}: {way_to(path.parent, path.name)}.") from None
    except ValueError as error:
        refuse_pointers([path])
        raise UserError(f"{path} is not valid JSON ({error}): copy it again.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} does not hold a JSON object: copy it again.")
    return content


def read_vocabulary(path: Path) -> dict[str, int]:
    """Ids of subwords by name; some may be left out."""
    ids = read_object(path)
    check_ids(path, ids.values())
    return ids


def check_ids(path: Path, ids: Collection[Any]) -> None:
    """Raise UserError unless the subwords in a file have whole numbers from 0 on, each its own."""
    whole = all(isinstance(number, int) and number >= 0 for number in ids)
    if not whole or len({*ids}) < len(ids):
        raise UserError(f"{path} does not number its subwords from 0 on, each once: copy it again.")


def filled(model: Model, folder: Path, weights: Mapping[str, Tensor]) -> Model:
    """The model with weights from a folder, in evaluation mode. Raises UserError if one has another shape."""
    expected = model.state_dict()
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            sizes = " and not ".join(" x ".join(map(str, part.shape)) for part in (weights[name], value))
            raise UserError(f"{folder}: the weights of {name} are {sizes}, as {hub.CONFIG} says: copy both again.")
    model.load_state_dict({name: weights[name] for name in expected})
    return model.eval()


def contradicts(described: Mapping[str, Any], subwords: Mapping[str, int]) -> bool:
    """Whether a tokenizer.json gives a subword another id, or an id another subword."""
    try:
        theirs = numbered_by(described)
    except (LookupError, TypeError, ValueError):
        return False
    names = {number: name for name, number in theirs.items()}
    return any(
        theirs.get(name, number) != number or names.get(number, name) != name for name, number in subwords.items()
    )
