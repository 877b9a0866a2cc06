"""Whether the outputs of a command can be written: checked before its work begins, which may take hours."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heads.base.files import NO_ROOM, NODE, UserError

FILE, FOLDER, NEW_FOLDER = "file", "folder", "new folder"
"""What an output is: a file that may be replaced, a folder that may exist, or one that must not."""
PROBE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Output:
    """What is known about a flag that names an output, or several."""

    flag: str
    kind: str
    """FILE, FOLDER or NEW_FOLDER."""
    beside: Callable[[Path], Path] | None = None
    """From the path of an output to that of a file that is written with it."""


def check_outputs(given: Mapping[str, Any], outputs: Mapping[str, Output]) -> None:
    """Raise UserError if an output cannot be written, is asked for twice, or would replace an input.

    given: the values of a command's flags by name; all paths among them but `outputs` are inputs, and so is a model
    given by its path.
    """
    inputs = [path for name, value in given.items() if name not in outputs for path in _paths(value)]
    inputs += [Path(given["model"])] if isinstance(given.get("model"), str) else []
    places: dict[Path, str] = {}
    for name, output in outputs.items():
        paths = [*_paths(given[name])]
        also = [output.beside(path) for path in paths if output.beside and path.name]
        for path, kind in (*((path, output.kind) for path in paths), *((path, FILE) for path in also)):
            place = _checked(path, kind, output.flag, inputs)
            if place in places:
                same = places[place] == output.flag
                by = f"{output.flag}, which writes two files" if same else f"{places[place]} and {output.flag}"
                raise UserError(f"{path} would be written twice, by {by}: give {output.flag} another name.")
            places[place] = output.flag


def _paths(value: Any) -> Iterator[Path]:
    """The paths in the value of a flag, which may be a list of them or of pairs of a name and a path."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)


def _checked(path: Path, kind: str, flag: str, inputs: Collection[Path]) -> Path:
    """The resolved path of an output. Raises UserError if it cannot be written, or is an input."""
    try:
        _check_kind(path, kind, flag)
        place, read = path.resolve(), [given.resolve() for given in inputs]
        if place not in read:
            _probe(path)
    except OSError as error:
        way = "make room and run again" if error.errno in NO_ROOM else f"give {flag} another place"
        raise UserError(f"{path} cannot be written ({error.strerror}): {way}.") from None
    except (ValueError, RuntimeError) as error:  # a name with a NUL, links in a circle
        raise UserError(f"{path} cannot be written ({error}): give {flag} another name.") from None
    if place in read:
        raise UserError(f"{path} is read by this command, which must not replace it: give {flag} another name.")
    return place


def _check_kind(path: Path, kind: str, flag: str) -> None:
    """Raise UserError if something else is there already."""
    if kind == NEW_FOLDER and (path.exists() or path.is_symlink()):
        raise UserError(f"{path} is already there: delete it or give {flag} another folder.")
    if kind == FOLDER and path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file: give {flag} a folder.")
    if kind == FILE and path.is_dir():
        raise UserError(f"{path} is a folder: give {flag} the name of a file.")
    if kind == FILE and path.exists() and not path.is_file():
        raise UserError(f"{path} is no ordinary file and is not replaced: give {flag} another name.")


def _probe(path: Path) -> None:
    """Write a small file where the output is to be, or in the closest folder that exists, and delete it again.

    Raises OSError if that is impossible.
    """
    folder = next(above for above in path.absolute().parents if above.exists())
    # Named like the temporary files of atomic_path, which removes any that a killed process left.
    probe = folder / f".{path.name}.{NODE}.{os.getpid()}.part"
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
    finally:
        if folder.is_dir():
            probe.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, renamed to `path` on success and removed on failure.

    Raises UserError if `path` already exists or cannot be created.
    """
    try:
        if path.exists():
            raise UserError(f"{path} is already there: delete it or export to another folder.")
        stage = path.with_name(f".{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): export to another folder.") from error
    try:
        yield stage
        stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
