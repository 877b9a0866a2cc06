"""The weights of a folder that transformers wrote: safetensors, in one file or several, never pickle.

A weight is read as float32 when it is asked for. Numbers that are not finite, or that only stand for weights, as in
quantised models, are refused then; what a model has besides is not read.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from heads.base.files import UserError
from heads.base.stand_ins import refuse_pointers, way_to
from heads.interop import hub

FLOATS = ("F64", "F32", "F16", "BF16")
"""Types of weights, as files call them."""
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""Parts of names that DDP, torch.compile, FSDP and checkpointing of activations add; they name nothing of a model."""
ADAPTER = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
ADDED = ("lora_", "ia3_", "adapter", "base_layer")
"""Beginnings of the parts of names that adapters beside or inside a model's weights have."""
MERGE = (
    "load its base model, put the adapter on it with peft, call merge_and_unload(), and write the result with "
    "save_pretrained"
)
PLAIN = (
    "only float32, float16, bfloat16 and float64 are read, so load it with transformers, call model.dequantize(), and "
    "write it with save_pretrained"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a weight is."""

    path: Path
    file: Any
    """The same, opened once for all of its weights."""
    name: str
    """Its name in the file."""
    kind: str
    """Its type, as the file calls it."""


class SavedWeights(Mapping[str, Tensor]):
    """The weights of a folder by name."""

    def __init__(self, folder: Path, saved_by: str, named: Callable[[str], str] = str) -> None:
        """List the weights. saved_by: the class that can write them. named: the name to give each weight.

        Raises UserError if they are missing, damaged or pickled, or have an adapter among them.
        """
        self.places: dict[str, Place] = {}
        self.read: dict[str, Tensor] = {}
        for path in _files(folder, saved_by):
            file = _opened(path)
            for name in file.keys():  # noqa: SIM118 - no mapping
                plain = ".".join(part for part in name.split(".") if part not in WRAPPERS)
                if any(part.startswith(ADDED) for part in plain.split(".")):
                    raise UserError(f"{path} has {name}, which is of an adapter: {MERGE}.")
                self.places[named(plain)] = Place(path, file, name, file.get_slice(name).get_dtype())

    def __getitem__(self, name: str) -> Tensor:
        """The weight in float32. Raises UserError if its numbers are not finite or only stand for a weight."""
        if name not in self.read:
            place = self.places[name]
            if place.kind not in FLOATS:
                raise UserError(_quantised(place))
            weight: Tensor = place.file.get_tensor(place.name).float()
            if not bool(weight.isfinite().all()):
                raise UserError(
                    f"{place.path}: {place.name} holds numbers that are not finite, or too large for float32: copy "
                    "it again, or give a model whose training did not diverge."
                )
            self.read[name] = weight
        return self.read[name]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def why_missing(self, name: str) -> str | None:
        """One sentence on why there is no weight of this name, if that is known."""
        module, (first, _, inner) = f"{name.rpartition('.')[0]}.", name.partition(".")
        for other, place in self.places.items():
            if other.startswith(module) and place.kind not in FLOATS:
                return _quantised(place)
        if any(other.startswith(f"{first}.") for other in self.places):
            return None
        for other, place in self.places.items():
            if f".{first}." in other or other.endswith(f".{inner}"):
                return (
                    f"{place.path} has {place.name} in the place of {name}: write the model itself, without what is "
                    "around it, with transformers' save_pretrained."
                )
        return None


def refuse_adapter(folder: Path) -> None:
    """Raise UserError if a folder holds an adapter, such as LoRA's, which is no model by itself."""
    found = next((folder / name for name in ADAPTER if (folder / name).is_file()), None)
    if found:
        raise UserError(f"{found} is of an adapter, not of a whole model: {MERGE}.")


def refuse_quantised(path: Path, config: Mapping[str, Any]) -> None:
    """Raise UserError if the config.json at `path` describes weights that are quantised."""
    for key in ("quantization_config", "compression_config"):
        if scheme := config.get(key):
            method = scheme.get("quant_method") if isinstance(scheme, dict) else scheme
            raise UserError(f"{path} has a {key} ({method or 'of an unknown method'}): {PLAIN}.")


def _quantised(place: Place) -> str:
    kind = re.sub("^[FIU](?=[0-9])", lambda letter: {"F": "float", "I": "int", "U": "uint"}[letter[0]], place.kind)
    return f"{place.path}: {place.name} is stored as {kind}, as in a quantised model: {PLAIN}."


def _files(folder: Path, saved_by: str) -> Sequence[Path]:
    """The files with the weights. Raises UserError if there are none, or only pickled ones."""
    index, weights = folder / hub.INDEX, folder / hub.WEIGHTS
    if index.is_file():
        refuse_pointers([index])
        try:
            shards = sorted({*json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
        except (ValueError, LookupError, TypeError, AttributeError):
            shards = []
        if not shards or any(not isinstance(name, str) or Path(name).name != name for name in shards):
            raise UserError(f"{index} names no files beside it: copy it again.")
        return [folder / name for name in shards]
    if weights.is_file():
        return [weights]
    if any(folder.glob(f"{Path(hub.PICKLED).stem}*")):
        raise UserError(
            f"{folder} has pickled weights, which may run code and are not opened: write {hub.WEIGHTS} with "
            f"transformers, {saved_by}.from_pretrained(FOLDER).save_pretrained(FOLDER)."
        )
    raise UserError(f"{folder} has no {hub.WEIGHTS}: {way_to(folder, hub.WEIGHTS)}.")


def _opened(path: Path) -> Any:
    """A file of weights. Raises UserError if it is missing or damaged, or a pointer."""
    try:
        refuse_pointers([path])
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        way = "copy it again" if path.exists() else way_to(path.parent, path.name)
        raise UserError(f"{path} is missing or damaged ({error}): {way}.") from None


def weight_called(folder: Path, tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """The weight of this name among those of a folder. Raises UserError if it is missing or cannot be read."""
    if name not in tensors:
        why = tensors.why_missing(name) if isinstance(tensors, SavedWeights) else None
        raise UserError(why or f"{folder} has no weights called {name}: copy model.safetensors again.")
    return tensors[name]
