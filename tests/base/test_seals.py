"""Seals of file contents against checksums from the definition, and how each kind of damage shows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from heads.base.files import UserError, read_json, write_json, write_sealed_json
from heads.base.seals import checksum, sealed, sha256_of, unsealed

CONTENT = {"b": [1, {"c": 1 / 3}], "a": "б", "none": None}


def test_a_checksum_is_that_of_the_bytes_however_they_are_cut(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9999
    (tmp_path / "file").write_bytes(content)
    right = hashlib.sha256(content).hexdigest()
    assert sha256_of(tmp_path / "file") == right
    assert checksum([content[:5], b"", memoryview(content)[5:]]) == right


def test_a_seal_is_the_checksum_of_what_is_told_and_of_the_parts_behind_it() -> None:
    found = sealed(CONTENT, [b"xy", b"z"])
    assert found == {**CONTENT, "sha256": hashlib.sha256(json.dumps(CONTENT).encode() + b"xyz").hexdigest()}
    assert unsealed(found, [b"x", b"yz"]) == CONTENT
    assert unsealed(json.loads(json.dumps(found)), [b"xyz"]) == CONTENT


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
        unsealed(sealed(CONTENT, [b"xyz"]) | change, [parts])


def test_what_was_never_sealed_is_refused_where_a_seal_must_be() -> None:
    with pytest.raises(ValueError, match="checksum"):
        unsealed(CONTENT)


def test_json_may_be_sealed_or_not_and_a_wrong_seal_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    for write in (write_json, write_sealed_json):
        write(path, CONTENT)
        assert read_json(path) == CONTENT
    path.write_text(path.read_text(encoding="utf-8").replace("0.333", "0.332"), encoding="utf-8")
    with pytest.raises(UserError, match=r"some\.json is missing or damaged .its checksum is wrong.: delete it"):
        read_json(path)
