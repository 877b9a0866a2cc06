"""Download a model of others into this machine's cache: Firefox's from Mozilla's Remote Settings, others from the hub.

The hub is Hugging Face's. Sources for Mozilla's:

- docs/client-specifications.rst of mozilla/remote-settings: the server's root names
  `capabilities.attachments.base_url`, to which `attachment.location` is appended; `attachment.hash` is the SHA-256 and
  `attachment.size` the number of bytes.
- toolkit/components/translations/translations.d.ts of mozilla/gecko-dev: a record's fields (`name`, `fromLang`,
  `toLang`, `variant` for developers, `version`, `fileType`, `filter_expression`), and which files a model needs.
- actors/TranslationsParent.sys.mjs beside it: the collection `translations-models`; the newest version of a pair is
  that of its model, and its other files have exactly the same version.
- remote_settings/client.py of mozilla/firefox-translations-models: the later collection `translations-models-v2` has
  files packed with zstd, which Python 3.11 cannot unpack, so it is not used; `filter_expression` says for which
  platform a version is released (empty: all), and a version with letters is not released.
- db/updater.py of mozilla/translations: the address from which Mozilla itself reads a collection's records.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from heads.base.checksums import sha256_of
from heads.base.fetch import fetch
from heads.base.files import UserError
from heads.base.outputs import new_folder
from heads.base.packaged import NAME, cache_of, cache_of_hub, not_there, place_of
from heads.interop.formats import saved_as
from heads.interop.hub import CONFIG, DESCRIBED, HUB, WEIGHTS
from heads.interop.marian.format import MARIAN
from heads.interop.saved_folder import read_object
from heads.interop.saved_weights import ADAPTER, MERGE, refuse_quantised

SERVER = "https://firefox.settings.services.mozilla.com/v1"
RECORDS = "buckets/main/collections/translations-models/records"
RELEASED = ("", "env.appinfo.OS != 'Android'")
"""Filters of files released for all platforms, and for all but Android."""
VERSION = re.compile(r"\d+(\.\d+)*")
"""A released version: 1.0, not 1.0a1."""
VOCABULARIES = ({"vocab"}, {"srcvocab", "trgvocab"})
"""One vocabulary for both languages, or one for each."""
SHORTLIST = "lex"


@dataclass(frozen=True, slots=True)
class Released:
    """A released file of a language pair."""

    kind: str
    version: tuple[int, ...]
    name: str
    """Name without any folder that a server could choose."""
    url: str
    size: int
    sha256: str


def fetched(name: str, server: str = SERVER, hub: str | None = None) -> Path:
    """The folder of a third-party model, as in `place_of`; if it is missing, it is downloaded.

    server: where Firefox's are. hub: its address, else as huggingface_hub has it, whose cache keeps whole files that
    came. Raises UserError that says what to fetch by hand if a download fails; nothing is kept that is not what
    Mozilla's server announced.
    """
    try:
        place = place_of(name)
    except UserError:
        if not NAME.fullmatch(name):
            raise
        return _from_mozilla(name, server)
    link = cache_of_hub(place.as_posix())
    if place.exists() or link is None:
        return place
    if not link.is_dir():
        snapshot = _from_hub(place, partial(_fetch_from_hub, place.as_posix(), hub))
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)  # left over from a cache that was emptied
        link.symlink_to(snapshot)
    return link


def _from_mozilla(name: str, server: str) -> Path:
    """The folder of a pair of Firefox's in our own cache, with all files that a model needs; as `fetched`."""
    place = cache_of(name)
    with TemporaryDirectory() as downloads:
        files = list(_newest(name, list(_released(name, server, Path(downloads)))))
        for file in files:
            _fetch_checked(name, file, Path(downloads, file.name))
        with new_folder(place) as stage:
            for file in files:
                shutil.move(Path(downloads, file.name), stage)
    print(f"{name} {'.'.join(map(str, files[0].version))} is now in {place}", file=sys.stderr)
    return place


def _released(name: str, server: str, folder: Path) -> Iterator[Released]:
    """All released files of a pair, in every version."""
    about, records = folder / "about", folder / "records"
    _fetch(name, f"{server}/", about)
    _fetch(name, f"{server}/{RECORDS}", records)
    pair = NAME.fullmatch(name)
    try:
        base = json.loads(about.read_bytes())["capabilities"]["attachments"]["base_url"]
        for record in json.loads(records.read_bytes())["data"]:
            is_released = record.get("filter_expression", "") in RELEASED and VERSION.fullmatch(record["version"])
            is_ours = pair and (record["fromLang"], record["toLang"]) == pair.groups() and not record.get("variant")
            if is_released and is_ours:
                version = tuple(int(number) for number in record["version"].split("."))
                attachment, file = record["attachment"], Path(record["name"]).name
                url = base + attachment["location"]
                yield Released(record["fileType"], version, file, url, int(attachment["size"]), attachment["hash"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{server} answers in an unknown form ({error!r}): put the files of {name} into {cache_of(name)}."
        ) from None


def _newest(name: str, released: Sequence[Released]) -> Iterator[Released]:
    """Model, vocabularies and shortlist (if any) of the newest model version."""
    newest = max((file.version for file in released if file.kind == "model"), default=None)
    if newest is None:
        raise UserError(f"Mozilla has not released {name}: take a pair from https://mozilla.github.io/translations/.")
    files = {file.kind: file for file in released if file.version == newest}
    vocabularies = next((kinds for kinds in VOCABULARIES if kinds <= files.keys()), None)
    if vocabularies is None:
        raise UserError(f"{name} has no vocabulary on Mozilla's server: try again another day.")
    for kind in ("model", *sorted(vocabularies), SHORTLIST):
        if kind in files:
            yield files[kind]


def _fetch_checked(name: str, file: Released, path: Path) -> None:
    if file.url.endswith(".zst"):
        raise UserError(f"{file.url} is packed with zstd: unpack the files of {name} into {cache_of(name)} by hand.")
    _fetch(name, file.url, path)
    found = (path.stat().st_size, sha256_of(path))
    if found != (file.size, file.sha256):
        raise UserError(
            f"{file.url} has {found[0]} bytes and SHA-256 {found[1]}, not {file.size} and {file.sha256} as announced: "
            "try again, or on another day if that does not help."
        )


def _fetch(name: str, url: str, path: Path) -> None:
    try:
        fetch(url, path, sha256=None, attempts=2)
    except UserError as error:
        raise UserError(f"{not_there(name)} ({error})") from error


def _from_hub(pretrained: Path, get: Callable[..., Path]) -> Path:
    """The folder in huggingface_hub's cache with all files of a model that are needed; as `fetched`."""
    name, kind, file = pretrained.as_posix(), MARIAN, CONFIG
    try:
        config_file = get(CONFIG)
    except UserError as error:
        if isinstance(error, Absent) and _is_there(get, ADAPTER[0]):
            raise UserError(f"{name} is an adapter, not a whole model: {MERGE}.") from error
        raise UserError(f"{kind.not_there(pretrained)} ({error})") from error
    # The others are of the same commit, even if the model changes on the hub meanwhile.
    get = partial(get, revision=config_file.parent.name)
    config = read_object(config_file)
    refuse_quantised(pretrained / CONFIG, config)
    kind = saved_as(str(config.get("model_type")))
    try:
        for file in kind.from_hub:
            try:
                get(file)
            except Absent:
                if file == WEIGHTS:
                    raise
                # A tokeniser in one file stands for all others.
                get(DESCRIBED)
    except UserError as error:
        if file == WEIGHTS and type(error) is Absent:
            raise UserError(
                f"{name} has no {WEIGHTS} on the hub, and pickled weights are not opened: write its model and "
                "tokeniser with transformers' save_pretrained into a folder, and give that folder."
            ) from error
        raise UserError(f"{kind.not_there(pretrained)} ({error})") from error
    for file in kind.from_hub_if_there:
        _is_there(get, file)
    return config_file.parent


class Absent(UserError):
    """The error for a file that the hub does not have."""


class NotCached(Absent):
    """The error for a file that is not in the cache in huggingface_hub's offline mode."""


def _fetch_from_hub(name: str, hub: str | None, file: str, revision: str = "main") -> Path:
    """The path of a model's file in huggingface_hub's cache.

    Raises UserError: Absent if the hub does not have it, NotCached if the hub may not be asked.
    """
    # Not at the top, since only the extra `import` installs it, and it takes most of a second to import.
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HTTPError,
        OfflineModeIsEnabled,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return Path(hf_hub_download(name, file, revision=revision, endpoint=hub))
    except RemoteEntryNotFoundError:
        raise Absent(f"the hub has no file {file} of it") from None
    except GatedRepoError:
        raise UserError(f"its authors ask you to accept terms at {HUB}/{name}: do so, and set HF_TOKEN") from None
    except RepositoryNotFoundError:
        raise UserError("the hub has no model of this name: correct it, or set HF_TOKEN if it is private") from None
    except (HTTPError, OSError, ValueError) as error:
        cause = error.__cause__ or error
        kind = NotCached if isinstance(cause, OfflineModeIsEnabled) else UserError
        raise kind(" ".join(str(cause).split())) from error


def _is_there(get: Callable[[str], object], file: str) -> bool:
    """Fetch a file, and return whether the hub has it."""
    with suppress(Absent):
        get(file)
        return True
    return False
