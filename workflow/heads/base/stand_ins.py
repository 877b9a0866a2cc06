"""Files in place of those that a model needs: packed ones, and the pointers that Git LFS leaves in a clone."""

from collections.abc import Iterable
from pathlib import Path

from heads.base.files import UserError

PACKED = (".gz", ".zst", ".xz", ".bz2", ".zip", ".tgz", ".tar")
POINTER = b"version https://git-lfs.github.com/spec/"
"""How a pointer begins: a small text in the place of a file (docs/spec.md of git-lfs)."""


def is_pointer(path: Path) -> bool:
    """Whether a path is a pointer of Git LFS."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(POINTER)) == POINTER


def refuse_pointers(paths: Iterable[Path]) -> None:
    """Raise UserError if one of these files is a pointer of Git LFS."""
    for path in paths:
        if is_pointer(path):
            raise UserError(f"{path} is a pointer of Git LFS, not the file itself: run git lfs pull in {path.parent}.")


def packed_files(folder: Path, *names: str) -> list[Path]:
    """The packed files of a folder whose unpacked ones, of these names (which may have a *), are missing."""
    found = [path for path in sorted(folder.glob("*")) if path.suffix in PACKED and not path.with_suffix("").exists()]
    return [path for path in found if any(path.with_suffix("").match(name) for name in names)]


def way_to(folder: Path, name: str = "*") -> str:
    """What to do about a missing file of this name: unpack it, or copy it."""
    if packed := packed_files(folder, name):
        return f"unpack {', '.join(path.name for path in packed)}"
    return "copy it from where the model is from"
