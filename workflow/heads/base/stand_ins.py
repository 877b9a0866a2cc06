"""Files that stand in for those that a model needs: packed ones, and the pointers that Git LFS leaves in a clone."""

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


def packed_files(folder: Path, *endings: str) -> list[Path]:
    """The packed files of a folder whose unpacked ones are missing; with endings, those of files that end so."""
    found = [path for path in sorted(folder.glob("*")) if path.suffix in PACKED]
    missing = [path for path in found if not path.with_suffix("").exists()]
    return [path for path in missing if not endings or path.with_suffix("").name.endswith(endings)]


def way_to(folder: Path, *endings: str) -> str:
    """What to do about a missing file, which `endings` are of, if known: unpack it, or copy it."""
    if packed := packed_files(folder, *endings):
        return f"unpack {', '.join(path.name for path in packed)}"
    return "copy it from where the model is from"
