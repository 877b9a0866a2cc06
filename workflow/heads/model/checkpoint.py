"""Models and unfinished trainings on disk: safetensors for tensors, JSON for the rest, never pickle.

Each file holds a checksum of its tensors and notes, so that even a single wrong bit is detected.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heads.base.checksums import Part, verified, with_checksum
from heads.base.files import UserError, atomic_path, current_names


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Write tensors and JSON-serialisable notes to one safetensors file, completely or not at all."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # As one entry: safetensors writes several in any order, and equal models should give equal files.
    metadata = {"notes": json.dumps(with_checksum(notes, _parts(whole)))}
    with atomic_path(path) as temporary:
        try:
            save_file(whole, temporary, metadata=metadata)
        except SafetensorError as error:
            raise UserError(f"{path} cannot be written ({error}): make room and run again.") from error


def _parts(tensors: Mapping[str, Tensor]) -> Iterator[Part]:
    """Names, dtypes, shapes and values of CPU tensors, in the order in which the checksum covers them."""
    for name, tensor in sorted(tensors.items()):
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()
        yield tensor.reshape(-1).view(torch.uint8).numpy().data


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on the CPU, and the notes of a file written by `save_tensors`."""
    try:
        with safe_open(path, framework="pt") as stream:
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 - no mapping
            notes = verified(json.loads(stream.metadata()["notes"]), _parts(tensors))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is missing or damaged ({error}): delete it and run its stage again.") from error
    return current_names(tensors), notes
