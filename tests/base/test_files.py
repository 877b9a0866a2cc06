"""Files are written whole or not at all, and read back as written; checksums of their contents."""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import platform
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heads.base.checksums import checksum, sha256_of, verified, with_checksum
from heads.base.files import (
    UserError,
    atomic_path,
    format_cell,
    read_json,
    read_jsonl,
    read_lines,
    read_references,
    read_tsv,
    settings_given,
    write_json,
    write_json_with_checksum,
    write_lines,
    write_text,
    write_tsv,
)


def test_a_failure_leaves_nothing_new_and_the_old_file_whole(tmp_path: Path) -> None:
    def fail_half_way(path: Path) -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise RuntimeError("stop")

    (tmp_path / "old").write_text("whole", encoding="utf-8")
    for name in ("old", "new"):
        with pytest.raises(RuntimeError, match="stop"):
            fail_half_way(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text(encoding="utf-8") == "whole"


def test_what_a_killed_writer_left_goes_with_the_next_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    path, node = tmp_path / "a[1].tsv", platform.node()
    numbers = {ended.pid: False, 1: True, os.getppid(): True}
    left = {path.with_name(f".{path.name}.{node}.{number}.part"): stays for number, stays in numbers.items()}
    left |= {path.with_name(f".{name}.part"): True for name in (f"{path.name}.other{node}.{ended.pid}", "a[1].tsv.x")}
    left[path.with_name(f".b.tsv.{node}.{ended.pid}.part")] = True
    for one in left:
        one.touch()
    write_text(path, "whole\n")
    assert {one for one in left if one.exists()} == {one for one, stays in left.items() if stays}
    assert path.read_text(encoding="utf-8") == "whole\n"


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_text(path, "old\n")
    with atomic_path(path) as temporary:
        temporary.write_text("new\n", encoding="utf-8")
        assert temporary.parent == path.parent, "a rename must not cross file systems"
        assert path.read_text(encoding="utf-8") == "old\n"
    assert path.read_text(encoding="utf-8") == "new\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_result_is_readable_as_the_umask_allows_whoever_wrote_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "file") as temporary:
            temporary.touch(mode=0o600)
        assert os.umask(0o027) == 0o027, "the umask is as it was"
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_lines_come_back_from_plain_and_gzipped_files(tmp_path: Path) -> None:
    lines = ["the cat", "", "кот \u2028 видит", "a\rb"]
    write_lines(tmp_path / "text", lines)
    assert (tmp_path / "text").read_bytes().count(b"\n") == 4
    (tmp_path / "text.gz").write_bytes(gzip.compress((tmp_path / "text").read_bytes()))
    assert read_lines(tmp_path / "text") == lines
    assert read_lines(tmp_path / "text.gz") == lines


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("latin.txt", "na\u00efve\n".encode("latin-1"), r"latin\.txt is not UTF-8 .*: convert it to UTF-8\.$"),
        ("plain.gz", b"no archive\n", r"plain\.gz cannot be read .*: give an intact text file"),
        ("cut.gz", gzip.compress(b"a line\n" * 99, mtime=0)[:-9], r"cut\.gz cannot be read .*: give an intact text"),
        ("spoilt.gz", gzip.compress(b"", mtime=0)[:10] + b"\x07" * 9, r"spoilt\.gz cannot be read"),
    ],
    ids=["latin", "plain", "cut", "spoilt"],
)
def test_a_file_that_is_no_text_is_one_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        read_lines(tmp_path / name)
    with pytest.raises(UserError, match="is a folder: give the path of a file"):
        read_lines(tmp_path)
    with pytest.raises(UserError, match=r"missing\.txt does not exist"):
        read_lines(tmp_path / "missing.txt")


def test_json_keeps_its_letters_and_ends_with_a_line_end(tmp_path: Path) -> None:
    content = {"слово": [1, 0.5, None], "a": {"b": True}}
    write_json(tmp_path / "file.json", content)
    assert read_json(tmp_path / "file.json") == content
    text = (tmp_path / "file.json").read_text(encoding="utf-8")
    assert "слово" in text
    assert text.endswith("}\n")


EVERY_WAY = """
import sys
from pathlib import Path
from heads.base.files import (
    read_json, read_jsonl, read_lines, read_tsv, read_yaml, write_json, write_lines, write_text, write_tsv
)
assert not "Ж".isascii() and sys.flags.utf8_mode == 0
folder, rows = Path(sys.argv[1]), [{"слово": "Жук"}]
write_text(folder / "text", "Жук\\n")
write_lines(folder / "lines", ["Жук"])
write_json(folder / "json", rows[0])
write_json(folder / "yaml", rows[0])
write_tsv(folder / "tsv", rows, ["слово"])
(folder / "jsonl").write_bytes('{"слово": "Жук"}\\n'.encode())
assert read_lines(folder / "text") == read_lines(folder / "lines") == ["Жук"]
assert [read_json(folder / "json")] == [read_yaml(folder / "yaml")] == read_tsv(folder / "tsv") == rows
assert read_jsonl(folder / "jsonl") == rows
"""


def test_every_file_is_written_and_read_as_utf_8_where_the_locale_knows_ascii_alone(tmp_path: Path) -> None:
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    (tmp_path / "ways.py").write_text(EVERY_WAY, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "ways.py"), str(tmp_path)]
    path = os.pathsep.join(sys.path)
    subprocess.run(command, env={**os.environ, **odd, "PYTHONPATH": path}, check=True, timeout=60)
    for name in ("text", "lines", "json", "yaml", "tsv"):
        assert "Жук".encode() in (tmp_path / name).read_bytes(), name


@pytest.mark.parametrize("cut", ["", "{", '{"a": 3, "b', '{"a": 3}'[:-1]])
def test_a_last_line_cut_off_by_a_kill_is_left_out(tmp_path: Path, cut: str) -> None:
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n{"a": 2}\n' + cut, encoding="utf-8")
    assert read_jsonl(tmp_path / "log.jsonl") == [{"a": 1}, {"a": 2}]


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.fixed_dictionaries({"word": st.text(st.characters(exclude_categories=["Cs", "Cc"])) | st.just('a\t"b\n'),
                               "count": st.integers(), "share": st.floats(allow_nan=False)})
    )
)  # fmt: skip
def test_a_table_reads_back_as_its_rows(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    write_tsv(tmp_path / "table.tsv", rows, ["share", "word", "count"])
    back = read_tsv(tmp_path / "table.tsv")
    assert [row["word"] for row in back] == [row["word"] for row in rows]
    assert [int(row["count"]) for row in back] == [row["count"] for row in rows]
    assert [float(row["share"]) for row in back] == pytest.approx([row["share"] for row in rows], rel=1e-5)


def test_a_table_without_rows_keeps_its_header(tmp_path: Path) -> None:
    write_tsv(tmp_path / "table.tsv", [], ["a", "b"])
    assert (tmp_path / "table.tsv").read_text(encoding="utf-8") == "a\tb\n"
    assert read_tsv(tmp_path / "table.tsv") == []


@pytest.mark.parametrize("row", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}])
def test_a_row_with_other_columns_is_refused_and_no_table_is_left(tmp_path: Path, row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="columns"):
        write_tsv(tmp_path / "table.tsv", [{"a": 1, "b": 2}, row], ["a", "b"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.1 + 0.2, "0.3"), (1 / 3, "0.333333"), (2.0, "2"), (7, "7"), ("x", "x"), (1e-9, "1e-09")],
)
def test_a_cell_is_written_with_six_digits_and_nothing_for_none(value: object, text: str) -> None:
    assert format_cell(value) == text


def test_settings_are_given_as_json_or_in_a_file_of_yaml_and_are_the_same(tmp_path: Path) -> None:
    content = {"training": {"adam_epsilon": 1e-9, "optimizer": "muon"}, "labels": []}
    write_text(tmp_path / "s.yaml", yaml.safe_dump(content))
    assert settings_given(json.dumps(content)) == settings_given(str(tmp_path / "s.yaml")) == content


@pytest.mark.parametrize("word", ['{"training": {', "{training: 1}", '{"a": 1} {"b": 2}'])
def test_settings_that_are_half_of_json_are_refused_in_one_sentence(word: str) -> None:
    said = rf"^{re.escape(word)} is not valid JSON .*: correct it, or name a YAML file\.$"
    with pytest.raises(UserError, match=said):
        settings_given(word)


CONTENT = {"b": [1, {"c": 1 / 3}], "a": "б", "none": None}


def test_a_checksum_is_that_of_the_bytes_however_they_are_cut(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9999
    (tmp_path / "file").write_bytes(content)
    right = hashlib.sha256(content).hexdigest()
    assert sha256_of(tmp_path / "file") == right
    assert checksum([content[:5], b"", memoryview(content)[5:]]) == right


def test_a_seal_is_the_checksum_of_what_is_told_and_of_the_parts_behind_it() -> None:
    found = with_checksum(CONTENT, [b"xy", b"z"])
    assert found == {**CONTENT, "sha256": hashlib.sha256(json.dumps(CONTENT).encode() + b"xyz").hexdigest()}
    assert verified(found, [b"x", b"yz"]) == CONTENT
    assert verified(json.loads(json.dumps(found)), [b"xyz"]) == CONTENT


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"a": "b"}, b"xyz"),
        ({"new": 1}, b"xyz"),
        ({"sha256": "0" * 64}, b"xyz"),
        ({"sha256": None}, b"xyz"),
        ({}, b"xyZ"),
    ],
)
def test_what_is_not_as_it_was_sealed_is_refused(change: dict[str, Any], parts: bytes) -> None:
    with pytest.raises(ValueError, match="checksum"):
        verified(with_checksum(CONTENT, [b"xyz"]) | change, [parts])


def test_what_was_never_sealed_is_refused_where_a_seal_must_be() -> None:
    with pytest.raises(ValueError, match="checksum"):
        verified(CONTENT, [b"xyz"])


def test_json_may_be_sealed_or_not_and_a_wrong_seal_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    for write in (write_json, write_json_with_checksum):
        write(path, CONTENT)
        assert read_json(path) == CONTENT
    path.write_text(path.read_text(encoding="utf-8").replace("0.333", "0.332"), encoding="utf-8")
    with pytest.raises(UserError, match=r"some\.json is missing or damaged .its checksum is wrong.: delete it"):
        read_json(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a\nb\n".encode("utf-16"), "is UTF-16: convert it to UTF-8 with iconv."),
        ("a\nb\n".encode("utf-16-be"), "has bytes of zero, as UTF-16 without a mark"),
        ("a\nb\n".encode("utf-32"), "is UTF-32: convert it"),
        (bz2.compress(b"a\n"), "is packed (bzip2, xz, zstd or zip): unpack it first."),
        (lzma.compress(b"a\n"), "is packed (bzip2, xz, zstd or zip): unpack it first."),
        ("caf\u00e9\n".encode("latin-1"), "is not UTF-8"),
    ],
    ids=["utf-16", "utf-16-be", "utf-32", "bzip2", "xz", "latin-1"],
)
def test_a_file_that_is_no_utf_8_text_says_what_it_is(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(UserError, match=f"^{re.escape(str(tmp_path / 'text'))} {re.escape(said)}"):
        read_lines(tmp_path / "text")


def test_gzipped_text_and_a_byte_order_mark_are_read_whatever_the_name(tmp_path: Path) -> None:
    text = "\ufeffone\n\ufefftwo\n".encode()
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed.txt").write_bytes(gzip.compress(text))
    for name in ("plain", "packed.txt"):
        assert read_lines(tmp_path / name) == ["one", "\ufefftwo"]


@pytest.mark.parametrize(("name", "pack"), [("pipe", bytes), ("pipe.gz", gzip.compress)])
def test_a_pipe_is_read_from_its_first_line(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    os.mkfifo(tmp_path / name)
    lines = list[str]()
    write = threading.Thread(target=(tmp_path / name).write_bytes, args=(pack(b"one\ntwo\n"),), daemon=True)
    read = threading.Thread(target=lambda: lines.extend(read_lines(tmp_path / name)), daemon=True)
    write.start()
    read.start()
    read.join(10)  # a second opening would wait for ever
    assert lines == ["one", "two"]


def test_references_are_one_for_each_line_and_not_all_empty(tmp_path: Path) -> None:
    write_lines(tmp_path / "r", ["", "a", " "])
    assert read_references(tmp_path / "r", "t", 3) == ["", "a", " "]
    with pytest.raises(UserError, match=r"^t has 2 lines and .*r 3: give one reference per line\.$"):
        read_references(tmp_path / "r", "t", 2)
    write_lines(tmp_path / "r", ["", "\t", " "])
    with pytest.raises(UserError, match=r"^All lines of .*r are empty: give the translations or labels of the text\.$"):
        read_references(tmp_path / "r", "t", 3)
