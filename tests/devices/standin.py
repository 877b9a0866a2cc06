"""A device that is not the CPU, without a GPU: its tensors live on the CPU and carry another device's name.

torch has room for one backend from outside, `PrivateUse1`. Here that is a device called `standin`: every operation on
it is checked against what CUDA allows, and is then computed on the CPU. So tensors of two devices do not mix, no value
is read without being fetched, and what torch makes without a device is on the CPU.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "standin"
CPU = torch.device("cpu")
ops = torch.ops.aten
COPIES = (ops.copy_.default, ops._to_copy.default, ops._foreach_copy_.default)
"""The operations that go from one device to another."""
INDEXING = (ops.index.Tensor, ops.index_put.default, ops.index_put_.default, ops._index_put_impl_.default)
"""CUDA accepts indices from the CPU here, and waits until it has them."""
WAITING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""torch's marks of operations whose result, or its size, depends on values: the CPU waits for them."""
AT_ONCE = ("copy_", "arange", "arange.start", "arange.start_step", "eye", "eye.m")
"""Operations that torch would otherwise make of others where Python cannot follow."""
IN_BF16 = ("linear", "matmul", "scaled_dot_product_attention")
"""Operations that mixed precision computes in bf16."""


class Waited(RuntimeError):
    """The CPU waited for the device where it must not."""


class Away(Tensor):
    """A tensor on the stand-in; `content` has its values."""

    content: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Away":
        """The tensor with these values and this layout, on the stand-in."""
        # A view of what was made outside inference mode is no inference tensor either.
        if torch.is_inference_mode_enabled() and not inner.is_inference():
            with torch.inference_mode(mode=False):
                return _wrapped(inner)
        return _wrapped(inner)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """With this and the next method, a module that moves here keeps its parameters, as on a GPU."""
        return ["content"], None

    @staticmethod
    def __tensor_unflatten__(parts: Mapping[str, Tensor], *_: Any) -> "Away":
        """The tensor of these parts."""
        return Away(parts["content"])

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        """Do any operation that has such a tensor."""
        return performed(operation, *arguments, **(options or {}))

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def numpy(self, *, force: bool = False) -> Any:
        """Raise the error of every device but the CPU."""
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")

    def tolist(self) -> Any:
        """The values, which are fetched."""
        return self.cpu().tolist()

    def __format__(self, form: str) -> str:
        """A single number, which is fetched, in this form."""
        return format(self.item(), form)

    def __repr__(self) -> str:  # type: ignore[override]
        """The values and the device."""
        return f"{self.content!r} on {NAME}"


def _wrapped(inner: Tensor) -> Away:
    made = Tensor._make_wrapper_subclass(
        Away, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
        device=torch.device(NAME, 0),
    )  # fmt: skip
    made.content = inner
    return made


class Generator(torch.Generator):
    """`torch.Generator`, which makes one for the stand-in too."""

    def __new__(cls, device: torch.device | str = CPU) -> Any:
        """A generator; operations are given a copy of it, which is known by its address alone."""
        if torch.device(device).type != NAME:
            return torch._C.Generator(device)
        made: Any = super().__new__(cls, CPU)  # type: ignore[call-arg]
        return _generators.setdefault(made._cdata, made)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The stand-in."""
        return torch.device(NAME, 0)


_generators: dict[int, Generator] = {}
"""All of the stand-in's, by their addresses."""


@dataclass(frozen=True)
class Facts:
    """What matters here about an operation."""

    copies: bool
    indexes: bool
    pointwise: bool
    waits: bool
    names: tuple[str, ...]
    """Of its arguments."""
    written: frozenset[str]
    """Those that it overwrites."""


@cache
def facts_of(operation: Any) -> Facts:
    """The facts about an operation, by its schema and torch's marks."""
    arguments = operation._schema.arguments
    return Facts(
        operation in COPIES,
        operation in INDEXING,
        torch.Tag.pointwise in operation.tags,
        bool(WAITING.intersection(operation.tags)),
        tuple(one.name for one in arguments),
        frozenset(one.name for one in arguments if one.alias_info is not None and one.alias_info.is_write),
    )


@dataclass(slots=True)
class Call:
    """The tensors that an operation is given: those of the stand-in, and others."""

    away: list[Away] = field(default_factory=list)
    here: list[Tensor] = field(default_factory=list)

    def inside(self, value: Any) -> Any:
        """A value with the CPU's tensors in place of the stand-in's."""
        kind = type(value)
        if kind is Away:
            self.away.append(value)
            return value.content
        if kind is list or kind is tuple:
            return kind([self.inside(one) for one in value])
        if isinstance(value, Tensor):
            self.here.append(value)
        return value

    def outside(self, value: Any) -> Any:
        """A result as a tensor of the stand-in: itself where an argument was overwritten."""
        if isinstance(value, Tensor):
            itself = [one for one in self.away if one.content is value]
            return itself[0] if itself else Away(value)
        return type(value)(map(self.outside, value)) if isinstance(value, (list, tuple)) else value


operations = 0
"""The number of operations so far."""
_never_waiting = 0


def performed(operation: Any, *arguments: Any, **options: Any) -> Any:
    """Check an operation and compute it on the CPU; raises RuntimeError where CUDA would."""
    global operations
    operations += 1
    call, facts = Call(), facts_of(operation)
    given = [call.inside(one) for one in arguments]
    named = {name: call.inside(value) for name, value in options.items()}
    noise, target = options.get("generator"), options.get("device")
    if call.away and call.here and not facts.copies:
        check_together(operation, facts, arguments, options)
    if noise is not None and noise._cdata not in _generators:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{noise.device}'")
    if _never_waiting and waits(facts, arguments, options, call):
        raise Waited(f"{operation} makes the CPU wait for the device")
    if target is not None:
        named["device"] = CPU
    found = operation(*given, **named)
    if facts.written and any((one.shape, one.dtype) != (one.content.shape, one.content.dtype) for one in call.away):
        raise NotImplementedError(f"{operation} makes something else of a tensor of the stand-in, in place")
    fetched = torch.device(target).type != NAME if target is not None else type(arguments[0]) is not Away
    return found if fetched and (target is not None or facts.copies) else call.outside(found)


def check_together(operation: Any, facts: Facts, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise RuntimeError unless CUDA takes the tensors of both devices together.

    Single numbers on the CPU may take part in what is done number by number, but not be overwritten.
    """
    named = {**dict(zip(facts.names, arguments, strict=False)), **options}
    if facts.indexes:
        known = type(arguments[0]) is Away
        free = known and all(type(one) is Away or not one.ndim for one in arguments[2:] if isinstance(one, Tensor))
    else:
        strange = {name: one for name, one in named.items() if isinstance(one, Tensor) and type(one) is not Away}
        free = facts.pointwise and all(not one.ndim and name not in facts.written for name, one in strange.items())
    if not free:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {NAME}:0 and cpu, in {operation}")


def waits(facts: Facts, arguments: Sequence[Any], options: Mapping[str, Any], call: Call) -> bool:
    """Whether the CPU waits for a GPU in this operation."""
    if facts.indexes:
        indices = [one for one in arguments[1] if one is not None]
        return any(type(one) is not Away or one.dtype in (torch.bool, torch.uint8) for one in indices)
    if facts.copies:
        target = options.get("device")
        to_away = not call.here if target is None else torch.device(target).type == NAME
        return to_away != bool(call.away) and not (options.get("non_blocking") or any(one is True for one in arguments))
    return facts.waits and bool(call.away)


@contextmanager
def never_waiting() -> Iterator[None]:
    """Within the block, what makes the CPU wait for the device raises `Waited`."""
    global _never_waiting
    _never_waiting += 1
    try:
        yield
    finally:
        _never_waiting -= 1


class _Backend:
    """What torch asks of a device's module, here `torch.standin`."""

    is_available = is_initialized = staticmethod(lambda: True)
    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: 1)
    _is_in_bad_fork = staticmethod(lambda: False)
    manual_seed_all = staticmethod(lambda seed: None)
    get_amp_supported_dtype = staticmethod(lambda: [torch.bfloat16])


_libraries: list[torch.library.Library] = []


@cache
def register() -> None:
    """Make the device known to torch, for the rest of this process."""
    _setup_privateuseone_for_python_backend(NAME, _Backend())
    every, some = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    every.fallback(performed, "PrivateUse1")
    every.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in AT_ONCE:
        packet, _, overload = name.partition(".")
        some.impl(name, partial(performed, getattr(getattr(ops, packet), overload or "default")), "PrivateUse1")
    for name in IN_BF16:
        some.impl(name, partial(_lowered, getattr(ops, name).default), "AutocastPrivateUse1")
    _libraries.extend((every, some))


def _lowered(operation: Any, *arguments: Any, **options: Any) -> Any:
    """An operation on numbers in bf16."""
    low = [one.bfloat16() if isinstance(one, Tensor) and one.is_floating_point() else one for one in arguments]
    with torch.autocast(NAME, enabled=False):
        return operation(*low, **options)
