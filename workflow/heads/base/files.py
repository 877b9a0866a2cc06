"""Reading and writing files: errors for people, atomic writes, JSON, YAML and tab-separated tables.

Every file of the pipeline is written under a temporary name in its own folder and renamed when complete, so that a
killed or failing job never leaves half a result behind.
"""

import csv
import errno
import gzip
import io
import json
import os
import platform
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO, Any, TypeVar

import yaml

from heads.base.checksums import KEY, verified, with_checksum

Value = TypeVar("Value")

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
GZIP = b"\x1f\x8b"
UNPACK, CONVERT = "unpack it first", "convert it to UTF-8 with iconv"
NO_TEXT = (
    (GZIP, "gzipped", UNPACK),
    ((b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"), "packed (bzip2, xz, zstd or zip)", UNPACK),
    ((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"), "UTF-32", CONVERT),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16", CONVERT),
)
"""How content other than UTF-8 text begins, what it is, and what to do with it."""
FIRST_BYTES = 512
NODE = platform.node().replace("/", "")


class UserError(Exception):
    """An error that the user can fix: one sentence that names the file, line or key and the way out."""


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Turn a full disk or an exceeded quota into a UserError that names the file being written."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise UserError(f"{path} cannot be written ({error.strerror}): make room and run again.") from error


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds, else remove it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    temporary = path.with_name(f".{path.name}.{NODE}.{os.getpid()}.part")
    try:
        with full_disk_named(path):
            yield temporary
            # Some writers make files that only their owner may read; results must be readable as the umask allows.
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
            # After a power loss, the name must not be there without its content.
            with temporary.open("rb") as stream:
                os.fsync(stream)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove temporary files of `path` that killed processes of this machine left; those of running ones stay."""
    for left in path.parent.glob(f".{escape(f'{path.name}.{NODE}')}.*.part"):
        process = left.name.split(".")[-2]
        if process.isdecimal() and not alive(int(process)):
            left.unlink(missing_ok=True)


def alive(process: int) -> bool:
    """Whether a process is running on this machine, ours or not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def no_text(start: bytes) -> str:
    """Why bytes that begin like this are no UTF-8 text, and the way out; empty if they may be."""
    for marks, what, way in NO_TEXT:
        if start.startswith(marks):
            return f"is {what}: {way}."
    if len(start) > 3 and 3 * start.count(0) > len(start):  # half of them, but for letters other than Latin ones
        return f"has bytes of zero, as UTF-16 without a mark at its start has: {CONVERT}."
    return ""


def open_text(path: Path) -> IO[str]:
    """Open a UTF-8 text file for reading, gzipped or plain, without a byte order mark. Raises UserError for others."""
    if not path.exists():
        raise UserError(f"{path} does not exist: give the path of an existing file.")
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the path of a file.")
    start = b""
    if path.is_file():  # a pipe's first bytes are read once
        with path.open("rb") as stream:
            start = stream.read(FIRST_BYTES)
    if path.suffix == ".gz" or start.startswith(GZIP):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="\n")
    if why := no_text(start):
        raise UserError(f"{path} {why}")
    return path.open(encoding="utf-8-sig", newline="\n")


def read_lines(path: Path) -> list[str]:
    """All lines of a plain or gzipped UTF-8 file, without line ends; raise UserError for any other file."""
    try:
        with open_text(path) as stream:
            return [line.rstrip("\n") for line in stream]
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error.reason}): convert it to UTF-8.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"{path} cannot be read ({error}): give an intact text file, plain or gzipped as .gz."
        ) from None


def read_references(path: Path, text: str, lines: int) -> list[str]:
    """The lines of a file of references for a text with this number of lines; raise UserError as `check_references`."""
    references = read_lines(path)
    check_references(text, lines, str(path), references)
    return references


def check_references(text: str, lines: int, name: str, references: Sequence[str]) -> None:
    """Raise UserError unless a text with this number of lines has as many references, and one of them is not empty."""
    if lines != len(references):
        raise UserError(f"{text} has {lines} lines and {name} {len(references)}: give one reference per line.")
    check_some(name, references)


def some_lines(path: Path) -> list[str]:
    """The lines of a file of references. Raises UserError if all are empty."""
    references = read_lines(path)
    check_some(str(path), references)
    return references


def check_some(name: str, references: Sequence[str]) -> None:
    """Raise UserError if all references are empty."""
    if references and not any(line.strip() for line in references):
        raise UserError(f"All lines of {name} are empty: give the translations or labels of the text.")


def normalise(text: str) -> str:
    """Text in NFC with single spaces and none at either end."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def normalised(line: str, *, pairs: bool) -> str:
    """A line as `normalise` makes it; if lines are `pairs` of sentences, the tab between the two stays."""
    return "\t".join(map(normalise, line.split("\t"))) if pairs else normalise(line)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write the lines, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def read_json(path: Path) -> Any:
    """The content of a JSON file, with its checksum verified if `write_json_with_checksum` wrote it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return verified(content) if isinstance(content, dict) and KEY in content else content
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is missing or damaged ({error}): delete it and run its stage again.") from error


def current_names(content: Mapping[str, Value]) -> dict[str, Value]:
    """The same entries under current names: models written until November 2026 call subwords pieces."""
    return {
        name if "word_piece" in name else name.replace("piece", "subword"): value for name, value in content.items()
    }


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_json_with_checksum(path: Path, content: Mapping[str, Any]) -> None:
    """Write indented JSON with its checksum, whole or not at all."""
    write_json(path, with_checksum(content))


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; raise UserError if it is missing, invalid or empty."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is missing or not valid YAML ({reason}): correct it or delete it.") from error
    if content is None:
        raise UserError(f"{path} is empty: correct it or delete it.")
    return content


def settings_given(word: str) -> Any:
    """Settings as given to a command: JSON such as `{"bpe": {...}}`, or a YAML file. Raises UserError for neither."""
    if not word.startswith("{"):
        return read_yaml(Path(word))
    try:
        return json.loads(word)
    except ValueError as error:
        raise UserError(f"{word[:60]} is not valid JSON ({error}): correct it, or name a YAML file.") from error


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """All records of a JSON-lines file; a last line cut off by a kill is left out."""
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def format_cell(value: object) -> str:
    """A table cell: empty for None, six significant digits for a float, so that tables compare byte for byte."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def as_written(value: Value) -> Value | float:
    """A value with the digits that a table would have."""
    return float(format_cell(value)) if isinstance(value, float) else value


def write_tsv(path: Path, rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write rows as a tab-separated table with a header line; each row must hold exactly `columns`."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            if set(row) != set(columns):
                raise ValueError(f"row has columns {sorted(row)}, the table {sorted(columns)}")
            writer.writerow([format_cell(row[column]) for column in columns])


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Rows of a tab-separated table as text; raise UserError if it is missing, damaged or cut off."""
    try:
        text = path.read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is missing or damaged ({error}): delete it and run its stage again.") from error
    if not text.endswith("\n"):
        raise UserError(f"{path} was cut off: delete it and run its stage again.")
    return rows
