"""Models and unfinished trainings on disk: safetensors for tensors, JSON for the rest, never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heads.files import UserError, atomic_path, read_json, write_json
from heads.provenance import provenance
from heads.transformer import ModelShape, Transformer


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-able note as one safetensors file, whole or not at all."""
    with atomic_path(path) as temporary:
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(whole, temporary, metadata={"notes": json.dumps(notes)})


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on the CPU, and the note of a file written by `save_tensors`."""
    try:
        with safe_open(path, framework="pt") as stream:
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 - no mapping
            return tensors, json.loads(stream.metadata()["notes"])
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise UserError(f"{path} is missing or damaged ({error}): delete it and run its stage again.") from error


def save_model(model: Transformer, tensors: Path, shape: Path, facts: Mapping[str, Any]) -> None:
    """Write a model's weights, and beside them its shape with facts about how it came to be."""
    save_tensors(tensors, model.state_dict(), {})
    write_json(shape, {"shape": model.shape.as_dict(), **facts, "provenance": provenance()})


def load_model(tensors: Path, shape: Path) -> Transformer:
    """Rebuild a model from its two files, on the CPU and in evaluation mode."""
    model = Transformer(ModelShape.from_dict(read_json(shape)["shape"]))
    try:
        model.load_state_dict(load_tensors(tensors)[0])
    except RuntimeError as error:
        raise UserError(f"{tensors} does not fit {shape}: delete both and run their stage again.") from error
    return model.eval()
