"""Checksums inside files, so that even one flipped bit is found: all of them are made and checked here.

Settings have theirs in a first line, JSON and safetensors among their entries; a SentencePiece model has no place for
one, so its checksum is in a JSON file beside it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any

KEY = "sha256"
Part = bytes | memoryview
BLOCK_BYTES = 1 << 16


def checksum(parts: Iterable[Part]) -> str:
    """Hexadecimal SHA-256 of the concatenated parts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as stream:
        return checksum(blocks(stream))


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The rest of a stream in blocks, so that long files need no more memory."""
    while block := stream.read(BLOCK_BYTES):
        yield block


def with_checksum(content: Mapping[str, Any], parts: Iterable[Part] = ()) -> dict[str, Any]:
    """The content, for JSON, with a checksum of itself and of the parts of the file that follow it."""
    return {**content, KEY: _of(content, parts)}


def verified(content: Mapping[str, Any], parts: Iterable[Part] = ()) -> dict[str, Any]:
    """The content given to `with_checksum`. Raises ValueError if it or the parts have changed, or there is none."""
    bare = {key: value for key, value in content.items() if key != KEY}
    if content.get(KEY) != _of(bare, parts):
        raise ValueError("its checksum is wrong")
    return bare


def _of(content: Mapping[str, Any], parts: Iterable[Part]) -> str:
    return checksum(chain([json.dumps(content).encode()], parts))
