"""How many operations an update of Transformer-base gives a GPU to do, and how much of a batch is padding, without one.

Run: PYTHONPATH=workflow:benchmarks:tests/devices python benchmarks/gpu/operations.py [--small]. Each operation is at
least one kernel that Python has to start. Nothing is computed: tensors have shapes alone, on a device that only has a
name. So whatever would make the CPU wait for a result ends the script with an error. Views and empty memory do not
count, and attention is one operation, as it is on a GPU.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import standin
import torch
from measuring import FULL, SMALL, Sizes, new_training, random_pairs, share_of_padding
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from heads.analysis.lrp import steps
from heads.model import attention
from heads.text.batches import Pairs
from heads.text.packed import Packed, Spans
from heads.training import cross_entropy, devices

standin.register()
DEVICE = torch.device(standin.NAME, 0)
NO_WORK = ("empty", "detach", "device", "profiler", "record_function")
FAMILIES = {
    "products": ("mm", "addmm", "bmm", "baddbmm", "dot", "mv"),
    "attention": ("_flash_attention_forward", "_flash_attention_backward"),
    "norms": ("native_layer_norm", "native_layer_norm_backward"),
    "dropout": ("native_dropout", "native_dropout_backward", "mul_"),
    "copies": ("_to_copy", "copy_", "clone", "cat", "stack", "_foreach_copy_", "index_select"),
    "sums": ("add", "add_", "sum", "sub_"),
}
"""Operations by what they are for; all others are the rest."""
SAMPLE_UPDATES = 64


class Counted(TorchDispatchMode):
    """Counts operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one operation, unless it only looks at memory or reserves it."""
        views = [one.alias_info is not None and not one.alias_info.is_write for one in operation._schema.returns]
        name = operation._schema.name.rpartition("::")[2]
        if not (views and all(views)) and not any(word in str(operation) for word in NO_WORK):
            self.names[name] += 1
        return operation(*args, **(kwargs or {}))


@contextmanager
def on_no_device() -> Iterator[FakeTensorMode]:
    """Within the block, `DEVICE` is treated as a GPU, and what moves there has no content."""

    def there(module: nn.Module, device: torch.device) -> nn.Module:
        """Give a module parameters and buffers without content, on the device."""
        with mode:
            for part in module.modules():
                for name, value in part.named_parameters(recurse=False):
                    moved = mode.from_tensor(value.detach()).to(device)
                    part.register_parameter(name, nn.Parameter(moved, value.requires_grad))
                for name, buffer in part.named_buffers(recurse=False):
                    part.register_buffer(name, mode.from_tensor(buffer).to(device))
        return module

    tables = (cross_entropy.CHUNK, devices.SUBWORDS_MULTIPLE, steps.CHUNK_ELEMENTS)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with (
        torch.autograd.set_multithreading_enabled(False),
        patch.object(nn.Module, "to", there),  # torch's own cannot exchange tensors without content
        patch.object(torch, "Generator", standin.Generator),
        patch.object(attention, "taken_by_flash", lambda *_: True),
        patch.dict(tables[0], {standin.NAME: tables[0]["cuda"]}),
        patch.dict(tables[1], {standin.NAME: tables[1]["cuda"]}),
        patch.dict(tables[2], {standin.NAME: tables[2]["cuda"]}),
    ):
        yield mode


def shapes_of(batch: Packed, mode: FakeTensorMode) -> Packed:
    """A batch without its content."""

    def empty(spans: Spans) -> Spans:
        parts = (spans.starts, spans.sentences, spans.places, spans.grid)
        return Spans(*map(mode.from_tensor, parts), mask=None if spans.mask is None else mode.from_tensor(spans.mask))

    source, given, wanted = map(mode.from_tensor, (batch.source, batch.target_input, batch.target_output))
    return Packed(source, empty(batch.source_spans), given, wanted, empty(batch.target_spans), real=batch.real)


def counted(sizes: Sizes, pairs: Pairs, scope: str, optimizer: str) -> Counter[str]:
    """The operations of an update, the second of a training, by name."""
    updates = pairs.epoch(sizes.batch_tokens[0], 1, 0)[:2]
    batches = [pairs.unpadded(update, devices.SUBWORDS_MULTIPLE["cuda"]) for update in updates]
    members = pairs.index[:9]
    with on_no_device() as mode:
        training = new_training(sizes, pairs, DEVICE, sizes.batch_tokens[0], scope, optimizer)
        first, second = (shapes_of(batch, mode) for batch in batches if isinstance(batch, Packed))
        with mode:
            training.step(members, [first])
            with Counted() as found:
                training.step(members, [second])
    names: Counter[str] = found.names
    return names


def by_family(names: Mapping[str, int]) -> dict[str, int]:
    """Operations by what they are for."""
    found = {family: sum(names.get(name, 0) for name in of_it) for family, of_it in FAMILIES.items()}
    return found | {"rest": sum(names.values()) - sum(found.values())}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tiny model")
    sizes = SMALL if parser.parse_args().small else FULL
    with tempfile.TemporaryDirectory() as place:
        pairs = random_pairs(sizes, Path(place))
        print("\t".join(["optimizer", "gates", "operations", *FAMILIES, "rest"]))
        for optimizer in ("adam", "muon"):
            for scope in ("", "all"):
                found = counted(sizes, pairs, scope, optimizer)
                row = [optimizer, scope or "none", sum(found.values()), *by_family(found).values()]
                print("\t".join(map(str, row)), flush=True)
        updates = pairs.epoch(sizes.batch_tokens[0], 1, 0)[:SAMPLE_UPDATES]
        filled = share_of_padding(pairs.unpadded(one, devices.SUBWORDS_MULTIPLE["cuda"]) for one in updates)
        print(f"padding\t{100 * filled:.2f} %")


if __name__ == "__main__":
    main()
