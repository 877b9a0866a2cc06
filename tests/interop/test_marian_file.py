"""Marian's own model files are read and written byte for byte, and damaged ones are refused in one sentence."""

import random
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from heads.base.files import UserError
from heads.interop.firefox.file import read, write
from heads.interop.firefox.items import INTGEMM8, OPTIONS, MarianFile, packed
from heads.interop.firefox.shape import check_tensors, shape_of
from marian_files import FLOAT, MATRIX, TEXT, laid_out, packaged, small_file, text_of
from slow_ones import slow_but

NUMBERS = [[1, -2, 3], [4, 5, -127]]
"""A 3 x 2 matrix as it is stored in a file."""
BIAS = struct.pack("<2f", 0.5, -1.25)
LEFT = bytes(range(1, 247))
"""What Marian's memory held before: the padding after six numbers and a multiplier."""


def matrix(name: bytes, multiplier: float = 4.0) -> tuple[bytes, int, tuple[int, int], bytes]:
    shape = (2, 3) if name == b"Wemb" else (3, 2)
    data = b"".join(struct.pack("<3b", *row) for row in NUMBERS) + struct.pack("<f", multiplier) + LEFT
    return name, MATRIX, shape, data


KNOWN = [matrix(b"Wemb"), matrix(b"encoder_l1_W"), (b"bias", FLOAT, (1, 2), BIAS), text_of({"type": "transformer"})]


def saved(folder: Path, content: bytes, name: str = "model.bin") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_file_of_known_bytes_is_read_and_written_back_byte_for_byte(tmp_path: Path) -> None:
    content = laid_out(KNOWN)
    file = read(saved(tmp_path, content))
    assert [*file.items] == ["Wemb", "encoder_l1_W", "bias", OPTIONS]
    tensors = file.tensors()
    assert tensors["Wemb"].tolist() == [[number / 4 for number in row] for row in NUMBERS]
    assert tensors["encoder_l1_W"].tolist() == [[NUMBERS[out][into] / 4 for out in range(2)] for into in range(3)]
    assert tensors["bias"].tolist() == [[0.5, -1.25]]
    assert file.options() == {"type": "transformer"}
    write(tmp_path / "again.bin", file)
    assert (tmp_path / "again.bin").read_bytes() == content


def test_the_gap_in_front_of_the_data_is_of_256_bytes_where_none_is_needed(tmp_path: Path) -> None:
    lengths = [len(laid_out([(b"n" * length, FLOAT, (1, 2), BIAS), KNOWN[-1]])) for length in range(1, 257)]
    (longer,) = [length for length in range(1, 256) if lengths[length] > lengths[length - 1]]
    for length in (longer - 1, longer, longer + 1):
        content = laid_out([(b"n" * length, FLOAT, (1, 2), BIAS), KNOWN[-1]])
        file = read(saved(tmp_path, content))
        write(tmp_path / "again.bin", MarianFile(file.items))
        assert (tmp_path / "again.bin").read_bytes() == content


def test_an_8_bit_matrix_is_scaled_by_its_largest_weight_and_rounded_to_the_nearest() -> None:
    weights = np.random.default_rng(1).normal(0, 0.2, (5, 4)).astype(np.float32)
    item = packed("W", weights, INTGEMM8)
    largest = max(abs(float(weight)) for weight in weights.flat)
    assert item.multiplier() == pytest.approx(127 / largest, rel=1e-6)
    for into in range(5):
        for out in range(4):
            assert item.quantised()[out, into] == round(float(weights[into, out]) * 127 / largest)
    assert len(item.data) == 256 and np.abs(item.floats() - weights).max() <= 0.5001 * largest / 127
    embedding = packed("decoder_Wemb", weights, INTGEMM8)
    assert np.array_equal(embedding.quantised(), item.quantised().T) and embedding.shape == (5, 4)
    for size in (0, 1e-44, 3e-37):  # with the latter two, 127 / |w| is more than a float32 can hold
        nothing = packed("W", weights * 0 + np.float32(size), INTGEMM8)
        assert not nothing.floats().any() and 0 < nothing.multiplier() < np.inf


def test_an_option_changes_alone_or_is_added(tmp_path: Path) -> None:
    file = read(saved(tmp_path, laid_out([*KNOWN[:-1], text_of({"type": "transformer", "dim-emb": 6})])))
    before, name = file.options(), "dim-emb"
    changed = file.with_option(name, 77)
    assert changed.options() == {**before, name: 77}
    assert file.with_option(name, before[name]) == file
    assert file.with_option("transformer-dim-ffn", 192).options() == {**before, "transformer-dim-ffn": 192}
    write(tmp_path / "again.bin", changed)
    again = read(tmp_path / "again.bin")
    assert again.options() == changed.options()
    assert {name: again.items[name] for name in file.items if name != OPTIONS} == {
        name: item for name, item in file.items.items() if name != OPTIONS
    }


def test_only_what_has_other_weights_gets_other_bytes(tmp_path: Path) -> None:
    file = read(saved(tmp_path, laid_out(KNOWN)))
    tensors = file.tensors()
    tensors["encoder_l1_W"][1] = 0
    changed = file.with_tensors(tensors)
    assert [name for name in file.items if changed.items[name] != file.items[name]] == ["encoder_l1_W"]
    before, after = file.items["encoder_l1_W"], changed.items["encoder_l1_W"]
    # 31.75 is still the largest weight; the second number of each row of the file becomes 0.
    assert after.data == bytes([1, 0, 3, 4, 0, 129]) + before.data[6:]
    doubled = file.with_tensors({"encoder_l1_W": before.floats() * 2}).items["encoder_l1_W"]
    assert doubled.data == before.data[:6] + struct.pack("<f", 2) + LEFT
    # Without the largest weight, the others keep their numbers; a weight between two numbers changes them all.
    tensors["encoder_l1_W"][2] = 0
    assert file.with_tensors(tensors).items["encoder_l1_W"].data == bytes([1, 0, 0, 4, 0, 0]) + before.data[6:]
    tensors["encoder_l1_W"][0, 0] = 0.3
    between = file.with_tensors(tensors).items["encoder_l1_W"]
    assert between.multiplier() == 127 and between.quantised().tolist() == [[38, 0, 0], [127, 0, 0]]
    # A multiplier that Marian did not take from the largest weight stays if nothing is changed.
    odd = read(saved(tmp_path, laid_out([(b"W", MATRIX, (1, 2), struct.pack("<bbf", 3, 5, 2)), KNOWN[-1]])))
    assert odd.with_tensors(odd.tensors()) == odd
    # A smaller matrix keeps the multiplier, and with it the others' numbers.
    cut = file.with_tensors({"encoder_l1_W": before.floats()[:2]}).items["encoder_l1_W"]
    assert (cut.shape, cut.multiplier()) == ((2, 2), before.multiplier())
    assert (cut.quantised() == before.quantised()[:, :2]).all()
    for wrong in ({"other": tensors["bias"]}, {"bias": tensors["bias"][0]}, {OPTIONS: tensors["bias"]}):
        with pytest.raises(ValueError, match="is not a tensor of this file"):
            file.with_tensors(wrong)
    with pytest.raises(ValueError, match="numbers that are not finite"):
        file.with_tensors({"bias": tensors["bias"] * np.float32(np.nan)})


def array(kind: str = "<f4", *, order: bool = False, shape: str = "(1, 2)", data: bytes = BIAS) -> bytes:
    """An array with the header that cnpy writes."""
    header = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}".encode().ljust(69) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def test_an_npz_is_read_by_numpy_by_us_and_as_marian_goes_through_it(tmp_path: Path) -> None:
    file = small_file()
    write(tmp_path / "model.npz", file)
    with np.load(tmp_path / "model.npz") as arrays:
        assert arrays.files == [*file.items]
        for name, value in file.tensors().items():
            assert arrays[name].dtype == np.float32 and np.array_equal(arrays[name], value)
        assert bytes(arrays[OPTIONS]) == file.items[OPTIONS].data
    again = read(tmp_path / "model.npz")
    assert again.options() == file.options()
    assert all(np.array_equal(again.tensors()[name], value) for name, value in file.tensors().items())
    # Marian's cnpy goes from one local header to the next by the size given there.
    content, at, names = (tmp_path / "model.npz").read_bytes(), 0, []
    while content[at : at + 4] == b"PK\3\4":
        size, name, extra = struct.unpack_from("<IHH", content, at + 22)
        names.append(content[at + 30 : at + 30 + name].decode().removesuffix(".npy"))
        at += 30 + name + extra + size
    assert names == [*file.items]
    write(tmp_path / "model.bin", again)
    assert read(tmp_path / "model.bin").tensors().keys() == file.tensors().keys()
    # As numpy itself would save it, and with the header that cnpy writes.
    np.savez(tmp_path / "numpy.npz", **dict(np.load(tmp_path / "model.npz")))
    assert read(tmp_path / "numpy.npz").items == again.items
    text = b"type: transformer\0"
    with zipfile.ZipFile(tmp_path / "cnpy.npz", "w") as archive:
        archive.writestr("bias.npy", array())
        archive.writestr(f"{OPTIONS}.npy", array("<i1", shape=f"({len(text)},)", data=text))
    assert read(tmp_path / "cnpy.npz").tensors()["bias"].tolist() == [[0.5, -1.25]]


def second(**changes: object) -> bytes:
    """A known file whose second tensor has another type, shape or data."""
    name, kind, shape, data = KNOWN[1]
    fields = {"name": name, "kind": kind, "shape": shape, "data": data, **changes}
    return laid_out([KNOWN[0], tuple(fields.values()), *KNOWN[2:]])  # type: ignore[list-item]


WRONG: dict[str, tuple[bytes, str]] = {
    "nothing in it": (b"", "cut off or damaged"),
    "another version": (laid_out(KNOWN, version=2), "of version 1: give a model as marian-conv"),
    "another file": (b"\x80\2}q" * 99, "of version 1"),
    "more tensors than there is room for": (struct.pack("<QQ", 1, 2**60), "cut off"),
    "a name longer than the file": (struct.pack("<6Q", 1, 1, 2**63, FLOAT, 1, 4) + b"a\0", "cut off"),
    "dimensions without end": (struct.pack("<6Q", 1, 1, 2, FLOAT, 2**62, 4) + b"a\0", "cut off"),
    "data without end": (struct.pack("<6Q2siQ", 1, 1, 2, FLOAT, 1, 2**62, b"a\0", 4, 0), "cut off"),
    "a gap without end": (struct.pack("<6Q2siQ", 1, 1, 2, FLOAT, 1, 4, b"a\0", 1, 2**64 - 1), "cut off"),
    "something behind": (laid_out(KNOWN) + b"\0", "has bytes after its last tensor"),
    "16 bits": (second(kind=0x4102), "encoder_l1_W is stored as intgemm16: convert the model's .npz with marian-conv"),
    "packed for one processor": (second(kind=0x1801), "is stored as packed8avx2: convert"),
    "half floats": (second(kind=0x402), "is stored as float16: convert"),
    "an unknown type": (second(kind=0x777), "is stored as the unknown type 0x777"),
    "larger dimensions": (second(shape=(3, 85)), "has 256 bytes for 3 x 85 numbers"),
    "smaller dimensions": (second(shape=(3, 2), data=KNOWN[1][3] + bytes(256)), "has 512 bytes for 3 x 2"),
    "dimensions of which two are negative": (second(shape=(-3, -2)), "has 256 bytes for -3 x -2"),
    "no dimensions": (second(shape=()), "has 256 bytes for  numbers"),
    "a matrix of one dimension": (second(shape=(6,)), "is not a matrix with a multiplier"),
    "a multiplier of nothing": (laid_out([matrix(b"W", 0.0), KNOWN[-1]]), "W is not a matrix with a multiplier"),
    "a multiplier too small": (laid_out([matrix(b"W", 1e-38), KNOWN[-1]]), "W is not a matrix with a multiplier"),
    "a multiplier that is none": (laid_out([matrix(b"W", float("nan")), KNOWN[-1]]), "with a multiplier"),
    "no finite bias": (laid_out([(b"b", FLOAT, (1,), b"\0\0\x80\x7f"), KNOWN[-1]]), "b holds numbers that are not"),
    "a tensor twice": (laid_out([KNOWN[0], KNOWN[0], KNOWN[-1]]), "names a tensor twice"),
    "a name of two": (second(name=b"a\0b"), "without a proper name"),
    "a name of nothing": (second(name=b""), "without a proper name"),
    "weights as text": (second(kind=TEXT, data=bytes(6)), "encoder_l1_W is text"),
    "options as weights": (laid_out([(OPTIONS.encode(), FLOAT, (1, 2), BIAS)]), "is not text"),
    "no options": (laid_out(KNOWN[:3]), "has no special:model.yml, the options of its training: give"),
    "options that are no YAML": (laid_out([KNOWN[0], text_of(b"a: [b\0")]), "has options that are not YAML"),
    "options nested without end": (laid_out([KNOWN[0], text_of(b"[" * 2000 + b"\0")]), "has options that are not YAML"),
    "options of a strange tag": (laid_out([KNOWN[0], text_of(b"a: !!bool x\0")]), "has options that are not YAML"),
    "options that would run code": (laid_out([KNOWN[0], text_of(b"a: !!python/object/apply:os.x []\0")]), "not YAML"),
    "options that are a list": (laid_out([KNOWN[0], text_of([1])]), "not names with values"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_with_a_file_is_told_in_a_sentence(tmp_path: Path, kind: str) -> None:
    content, told = WRONG[kind]
    with pytest.raises(UserError) as raised:
        read(saved(tmp_path, content))
    message = str(raised.value)
    assert str(tmp_path / "model.bin") in message and told in message and message.endswith(".")
    with pytest.raises(UserError, match=r"cannot be read \(No such file"):
        read(tmp_path / "none.bin")


@pytest.mark.parametrize(
    ("content", "packing", "told"),
    [
        (array(shape="(1, 99999999999)"), zipfile.ZIP_STORED, "has 8 bytes for 1 x 9"),
        (array("|O8", shape="(1, 1)"), zipfile.ZIP_STORED, "bias is not a float32 array"),
        (array("<f8", shape="(1, 1)"), zipfile.ZIP_STORED, "bias is not a float32 array"),
        (array(order=True), zipfile.ZIP_STORED, "array in C order"),
        (array(shape="(1,, 2)"), zipfile.ZIP_STORED, "no proper dimensions"),
        (array(), zipfile.ZIP_STORED, "has no special:model.yml"),
        (array(), zipfile.ZIP_DEFLATED, "is compressed: save it again, with numpy.savez"),
    ],
)
def test_what_is_wrong_with_an_npz_is_told_in_a_sentence(
    tmp_path: Path, content: bytes, packing: int, told: str
) -> None:
    with zipfile.ZipFile(tmp_path / "model.npz", "w", packing) as archive:
        archive.writestr("bias.npy", content)
    with pytest.raises(UserError, match=r"model\.npz.*\.$") as raised:
        read(tmp_path / "model.npz")
    assert told in str(raised.value)


def damaged(content: bytes, generator: random.Random) -> bytes:
    """A file cut off, or with bits flipped, bytes overwritten, left out or repeated, mostly in its header."""
    made = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 5))):
        at = generator.randrange(generator.choice((64, 2048, len(made)))) % len(made)
        kind = generator.randrange(6)
        if kind == 0:
            del made[at + 1 :]
        elif kind < 3:
            made[at] ^= 1 << generator.randrange(8)
        elif kind == 3:
            made[at : at + 8] = struct.pack("<Q", generator.choice((0, 1, 2**31 - 1, 2**32, 2**62, 2**64 - 1)))
        elif kind == 4:
            del made[at : at + generator.choice((1, 4, 8, 256))]
        else:
            made[at:at] = made[at : at + generator.choice((1, 4, 8, 256))]
        if not made:
            break
    return bytes(made)


@pytest.mark.parametrize("name", slow_but(["model.npz"], ["model.bin", "model.npz"]))
def test_of_500_damaged_copies_each_is_refused_or_is_a_model_of_the_same_tensors(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    file = small_file(enc_depth=1)
    write(path, file)
    content = path.read_bytes()
    shapes = {item.name: item.shape for item in file.items.values() if item.name != OPTIONS}
    generator, whole, unnamed = random.Random(3), 0, 0
    tracemalloc.start()
    begun = time.monotonic()
    for _ in range(500):
        broken = damaged(content, generator)
        path.write_bytes(broken)
        try:
            found = read(path)
            check_tensors(path, found, shape_of(path, found.options()))
        except UserError as error:
            unnamed += str(path) not in str(error)
            continue
        whole += 1
        assert {item.name: item.shape for item in found.items.values() if item.name != OPTIONS} == shapes
        assert all(np.isfinite(value).all() for value in found.tensors().values())
        if name == "model.bin":
            write(path, found)
            assert path.read_bytes() == broken
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The checksums of a zip show nearly all damage.
    assert not unnamed and whole < 250 and (whole > 20 or name == "model.npz")
    assert most < 40 * len(content) + 2**21 and time.monotonic() - begun < 60


def test_students_of_firefox_are_written_back_byte_for_byte_and_so_is_each_matrix_rounded_anew(tmp_path: Path) -> None:
    for folder in packaged():
        (path,) = folder.glob("model*.bin")
        file = read(path)
        check_tensors(path, file, shape_of(path, file.options()))
        write(tmp_path / "again.bin", file.with_tensors(file.tensors()))
        assert (tmp_path / "again.bin").read_bytes() == path.read_bytes()
        matrices = [item for item in file.items.values() if item.kind == INTGEMM8]
        assert len(matrices) > 50
        for item in matrices:
            used = item.quantised().size + 4
            assert packed(item.name, item.floats(), INTGEMM8).data[:used] == item.data[:used]
