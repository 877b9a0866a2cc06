"""Read and write Marian's own model files, `.bin` and `.npz`: their tensors and options as stored.

A `.bin` is little-endian: uint64 version and number of tensors; for each tensor four uint64, the length of its name
with the closing NUL, type, number of dimensions and length of its data; all names; all dimensions as int32; uint64
length of a gap and the gap, so that data begins at a multiple of 256 bytes; the data in the same order. Data may be
padded to a multiple of 256 bytes; Marian leaves whatever its memory held in the padding, so it is kept unchanged.

An `.npz` is an uncompressed zip archive of float32 arrays with the same names. In both, `special:model.yml` holds the
training options as text. Source: src/common/binary.cpp and src/3rd_party/cnpy of browsermt/marian-dev.
"""

import ast
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from heads.base.files import UserError, atomic_path
from heads.interop.firefox.items import (
    FLOAT32,
    INT8,
    INTGEMM8,
    LARGEST,
    OPTIONS,
    WIDTHS,
    Item,
    MarianFile,
    aligned,
    used_bytes,
)
from heads.interop.firefox.parts import VERSION, ZIP

FOREIGN = {0x402: "float16", 0x4102: "intgemm16", 0x802: "packed16", 0x1801: "packed8avx2", 0x2801: "packed8avx512"}
"""Types that Marian writes for one kind of processor or no longer uses; they are not supported."""
NPY_TYPES = {b"<f4": FLOAT32, b"|i1": INT8, b"<i1": INT8, b"|u1": INT8}
NPY_HEADER = re.compile(rb"\{'descr': *'(..\d+)', *'fortran_order': *(True|False), *'shape': *(\([\d, ]*\)),? *\}\s*")
FINITE = float(np.finfo(np.float32).max)
AGAIN = "copy it again"


def read(path: Path) -> MarianFile:
    """Read and check all tensors and the options of a model file.

    Allocates nothing that the file's own size does not cover. Raises UserError for a file that is missing, damaged, of
    another kind, or has unsupported types.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): give a Marian model file, .bin or .npz.") from None
    if content.startswith(ZIP):
        found, gap = [*_npz_items(path, content)], None
    else:
        found, gap = _bin_items(path, content)
    items = {item.name: item for item in found}
    if len(items) < len(found):
        raise UserError(f"{path} names a tensor twice: {AGAIN}.")
    file = MarianFile(items, gap)
    try:
        file.options()
    except ValueError as error:
        raise UserError(f"{path} {error}: give a model as Marian saved it, or copy it again.") from None
    return file


def write(path: Path, file: MarianFile) -> None:
    """Write a model file, completely or not at all: as `.npz` in float32 if its name ends so, else as `.bin`."""
    content = _npz(file) if path.suffix == ".npz" else _bin(file)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


class _Reader:
    """Reads a file part by part. Raises UserError if fewer bytes are left than are asked for."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content, self.at = path, content, 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > len(self.content) - self.at:
            raise UserError(f"{self.path} is cut off or damaged, or not a Marian model: {AGAIN}, unpacked.")
        self.at += size
        return self.content[self.at - size : self.at]

    def whole(self, count: int, code: str = "Q") -> tuple[int, ...]:
        """The next `count` integers; `code` is their letter in `struct`."""
        return struct.unpack(f"<{count}{code}", self.take(count * struct.calcsize(f"<{code}")))


def _bin_items(path: Path, content: bytes) -> tuple[list[Item], bytes]:
    """The tensors of a `.bin` in order, and the content of its gap."""
    reader = _Reader(path, content)
    version, count = reader.whole(2)
    if version != VERSION:
        raise UserError(f"{path} is not a Marian .bin of version {VERSION}: give a model as marian-conv writes it.")
    numbers = reader.whole(4 * count)
    headers = [numbers[at : at + 4] for at in range(0, len(numbers), 4)]
    names = [_name(path, reader.take(length)) for length, _, _, _ in headers]
    shapes = [reader.whole(dimensions, "i") for _, _, dimensions, _ in headers]
    gap = reader.take(*reader.whole(1))
    items = []
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        item = Item(name, kind, shape, reader.take(length))
        _check(path, item)
        items.append(item)
    if reader.at != len(content):
        raise UserError(f"{path} has bytes after its last tensor: {AGAIN}.")
    return items, gap


def _name(path: Path, written: bytes) -> str:
    """A tensor's name from its bytes with the closing NUL."""
    text = written[:-1]
    if written[-1:] != b"\0" or not text or not text.isascii() or not text.decode("ascii").isprintable():
        raise UserError(f"{path} has a tensor without a proper name: {AGAIN}.")
    return text.decode("ascii")


def _check(path: Path, item: Item) -> None:
    """Raise UserError if type, dimensions, length and multiplier of a tensor do not fit together."""
    if item.kind not in WIDTHS:
        kind = FOREIGN.get(item.kind, f"the unknown type {item.kind:#x}")
        raise UserError(
            f"{path}: {item.name} is stored as {kind}: convert the model's .npz with marian-conv -g intgemm8."
        )
    used = used_bytes(item.kind, item.shape)
    if min(item.shape, default=0) < 1 or len(item.data) not in (used, aligned(used)):
        shape = " x ".join(map(str, item.shape))
        raise UserError(f"{path}: {item.name} has {len(item.data)} bytes for {shape} numbers: {AGAIN}.")
    if item.kind == INTGEMM8:
        if len(item.shape) != 2 or not LARGEST / FINITE < item.multiplier() <= FINITE:
            raise UserError(f"{path}: {item.name} is not a matrix with a multiplier: {AGAIN}.")
    elif item.kind == FLOAT32 and not np.isfinite(item.floats()).all():
        raise UserError(f"{path}: {item.name} holds numbers that are not finite: {AGAIN}.")
    if (item.kind == INT8) != (item.name == OPTIONS):
        raise UserError(f"{path}: {item.name} is {'text' if item.kind == INT8 else 'not text'}: {AGAIN}.")


def _bin(file: MarianFile) -> bytes:
    """The bytes of a `.bin`."""
    items = file.items.values()
    names = [f"{item.name}\0".encode("ascii") for item in items]
    headers = [(len(name), item.kind, len(item.shape), len(item.data)) for name, item in zip(names, items, strict=True)]
    parts = [struct.pack("<QQ", VERSION, len(headers)), *(struct.pack("<4Q", *header) for header in headers), *names]
    parts += [struct.pack(f"<{len(item.shape)}i", *item.shape) for item in items]
    before = sum(map(len, parts)) + 8
    # Like Marian, write 256 bytes where none are needed.
    gap = bytes(aligned(before + 1) - before) if file.gap is None else file.gap
    return b"".join((*parts, struct.pack("<Q", len(gap)), gap, *(item.data for item in items)))


def _npz_items(path: Path, content: bytes) -> Iterator[Item]:
    """The tensors of an `.npz` in order. Compressed files are refused, so no array outgrows the file."""
    wrong = (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, EOFError, OSError, struct.error)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise UserError(f"{path} is compressed: save it again, with numpy.savez.")
            if sum(entry.file_size for entry in entries) > len(content):
                raise UserError(f"{path} holds less than its header says: {AGAIN}.")
            arrays = [(entry.filename, archive.read(entry)) for entry in entries]
    except (*wrong, KeyError, IndexError, zlib.error) as error:
        raise UserError(f"{path} is cut off or damaged ({error}): {AGAIN}.") from None
    for name, array in arrays:
        yield _npy_item(path, name, array)


def _npy_item(path: Path, name: str, content: bytes) -> Item:
    """One array of an `.npz`, read without numpy, which would allocate what a damaged header asks for."""
    reader = _Reader(path, content)
    stem = _name(path, name.removesuffix(".npy").encode("utf-8", "replace") + b"\0")
    if reader.take(6) != b"\x93NUMPY" or reader.take(1) not in (b"\1", b"\2"):
        raise UserError(f"{path}: {stem} is not a numpy array: {AGAIN}.")
    reader.take(1)
    wide = content[6] == 2
    header = NPY_HEADER.fullmatch(reader.take(*reader.whole(1, "I" if wide else "H")))
    if not header or (kind := NPY_TYPES.get(header[1])) is None or header[2] == b"True":
        raise UserError(f"{path}: {stem} is not a float32 array in C order: save the model again with Marian.")
    try:
        shape = ast.literal_eval(header[3].decode("ascii"))
        item = Item(stem, kind, shape if isinstance(shape, tuple) else (shape,), content[reader.at :])
    except (ValueError, SyntaxError):
        raise UserError(f"{path}: {stem} has no proper dimensions: {AGAIN}.") from None
    _check(path, item)
    return item


def _npz(file: MarianFile) -> bytes:
    """The bytes of an `.npz` with the size of each array before it, which Marian needs and numpy.savez omits."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, item in file.items.items():
            array = np.frombuffer(item.data, np.int8) if name == OPTIONS else item.floats()
            stream = BytesIO()
            np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), stream.getvalue())
    return made.getvalue()
