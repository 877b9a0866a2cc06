"""Download one file, resume a broken download, and check its SHA-256."""

from typing import Annotated

from heads.base.fetch import fetch
from heads.cli._flags import MAYBE, OutFile


def run(
    url: Annotated[str, "http(s) address of the file"],
    out: Annotated[OutFile, "file to write"],
    sha256: Annotated[str | None, MAYBE, "expected checksum; none: that of the first download, recorded"] = None,
) -> None:
    """Download the file."""
    fetch(url, out, sha256=sha256)
