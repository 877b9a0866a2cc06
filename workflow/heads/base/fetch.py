"""Downloads that survive broken connections, and archive members that are read without unpacking.

A download grows as `NAME.part` beside its destination, with the URL's validators in `NAME.part.json`, to resume where
it stopped. The SHA-256 of the first complete download is kept in `NAME.sha256`; later ones must match.
"""

import difflib
import gzip
import http.client
import ssl
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from email.message import Message
from pathlib import Path
from typing import IO, Any

from heads.base.checksums import sha256_of
from heads.base.files import UserError, read_json, write_json, write_text

CHUNK_BYTES = 1 << 18
FIRST_WAIT_SECONDS = 2.0
PASSING_ERRORS = (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException, ssl.SSLError)
PASSING_STATUS = (408, 425, 429)


def fetch(
    url: str,
    path: Path,
    *,
    sha256: str | None,
    attempts: int = 6,
    timeout_seconds: float = 60.0,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Download `url` to `path`, check it and return its SHA-256; a file that already exists is only checked.

    `attempts` limits consecutive tries without a new byte; the wait between them doubles. Raises UserError if the
    server refuses, the attempts are used up or the checksum is wrong.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    if path.exists():
        return check_sha256(url, path, path, sha256)
    failures, furthest = 0, size_of(part)
    while True:
        try:
            if download_rest(url, part, timeout_seconds):
                break
            reason = "the connection ended early"
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in PASSING_STATUS:
                raise UserError(f"{url} cannot be fetched: the server answers {error.code} {error.reason}.") from None
            reason = f"the server answers {error.code} {error.reason}"
        except PASSING_ERRORS as error:
            reason = str(getattr(error, "reason", "") or error or type(error).__name__)
        failures = 1 if size_of(part) > furthest else failures + 1
        furthest = max(furthest, size_of(part))
        if failures >= attempts:
            kept = f"; the {size_of(part)} bytes received are kept" if size_of(part) else ""
            raise UserError(
                f"{url} cannot be fetched after {attempts} attempts without progress ({reason}): check the network and "
                f"run again{kept}."
            )
        sleep(FIRST_WAIT_SECONDS * 2 ** (failures - 1))
    checksum = check_sha256(url, part, path, sha256)
    part.replace(path)
    state_path(part).unlink(missing_ok=True)
    return checksum


def size_of(path: Path) -> int:
    """Size of a file in bytes, 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def state_path(part: Path) -> Path:
    """Path of the validators of a partial download."""
    return part.with_name(part.name + ".json")


def remembered(url: str, part: Path) -> dict[str, Any] | None:
    """What the server said when a partial download of this URL began, if that can be resumed."""
    try:
        state: dict[str, Any] = read_json(state_path(part))
        usable = state["url"] == url and (state["etag"] or state["last_modified"] or state["length"] is not None)
    except (UserError, TypeError, LookupError):
        return None
    return state if usable and size_of(part) > 0 else None


def download_rest(url: str, part: Path, timeout_seconds: float) -> bool:
    """Append what is missing to `part`, or start again; return whether the file is complete."""
    before = remembered(url, part)
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", "User-Agent": "heads-corpus"})
    if before is not None:
        offset = size_of(part)
        if offset == before["length"]:
            return True
        request.add_header("Range", f"bytes={offset}-")
        # A weak ETag says nothing about single bytes, so it must not vouch for a range (RFC 9110, 13.1.5).
        strong_etag = "" if (before["etag"] or "").startswith("W/") else before["etag"]
        if validator := strong_etag or before["last_modified"]:
            request.add_header("If-Range", validator)
    try:
        answer = urllib.request.urlopen(request, timeout=timeout_seconds)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            part.unlink(missing_ok=True)
            return False
        raise
    with answer:
        if before is not None and answer.status == 206:
            if not continues(answer.headers, size_of(part), before["length"]):
                part.unlink()
                return False
            return copy_body(answer, part, "ab", before["length"])
        etag, changed, length = map(answer.headers.get, ("ETag", "Last-Modified", "Content-Length"))
        length = int(length) if length else None
        write_json(state_path(part), {"url": url, "etag": etag, "last_modified": changed, "length": length})
        return copy_body(answer, part, "wb", length)


def continues(headers: Message, offset: int, length: int | None) -> bool:
    """Whether a partial response begins at `offset` of a file that is still `length` bytes long."""
    found, _, total = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    return found.startswith(f"{offset}-") and (length is None or total in ("*", str(length)))


def copy_body(answer: Any, part: Path, mode: str, length: int | None) -> bool:
    """Write the body to `part` and return whether it is complete, as it always is without a stated length."""
    with part.open(mode) as stream:
        while chunk := answer.read(CHUNK_BYTES):
            stream.write(chunk)
    if length is not None and size_of(part) > length:
        part.unlink()
        return False
    return length is None or size_of(part) == length


def check_sha256(url: str, file: Path, path: Path, sha256: str | None) -> str:
    """Check `file` against the given or the recorded checksum, or record it; delete a wrong file."""
    record = path.with_name(path.name + ".sha256")
    found = sha256_of(file)
    if sha256 is not None:
        expected, origin = sha256, "the settings ask for"
    elif record.exists():
        expected, origin = record.read_text(encoding="utf-8").strip(), f"{record} recorded"
    else:
        write_text(record, found + "\n")
        return found
    if found != expected:
        file.unlink()
        state_path(file).unlink(missing_ok=True)
        raise UserError(
            f"{url} has SHA-256 {found}, but {origin} {expected}; the file was deleted: run again, and if it "
            f"still differs make sure that it was changed on purpose, then correct sha256 or delete {record}."
        )
    return found


@contextmanager
def open_bytes(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """Open a file, or one member of a tar or zip archive; a name that ends in .gz is decompressed.

    Nothing in an archive is ever written to disk, so names such as `../x`, absolute names and links can do no
    harm. Raises UserError for a missing file and for a member that is missing or not a plain file.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist: put the file there or correct its name in the corpus.")
    with ExitStack() as stack:
        if member is None:
            stream: Any = stack.enter_context(path.open("rb"))
        elif zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            if member not in archive.namelist():
                raise missing_member(path, member, archive.namelist())
            stream = stack.enter_context(archive.open(member))
        else:
            stream = tar_member(stack.enter_context(tarfile.open(path, "r|*")), path, member)
        if (member or path.name).endswith(".gz"):
            stream = stack.enter_context(gzip.GzipFile(fileobj=stream))
        yield stream


def tar_member(archive: tarfile.TarFile, path: Path, member: str) -> IO[bytes]:
    """Open one member of the tar archive at `path`, with any compression, by reading the archive up to it."""
    names = []
    for info in archive:
        name = info.name.removeprefix("./")
        names.append(name)
        if name == member.removeprefix("./"):
            if not info.isfile():
                raise UserError(f"Member {member} of {path} is a link or folder: name a plain file.")
            stream = archive.extractfile(info)
            assert stream is not None
            return stream
    raise missing_member(path, member, names)


def missing_member(path: Path, member: str, names: list[str]) -> UserError:
    """The error for a missing member, with the most similar names."""
    near = difflib.get_close_matches(member, names, n=3, cutoff=0.0)
    return UserError(f"{path} has no member {member}: the nearest names are {', '.join(near) or 'none, it is empty'}.")
