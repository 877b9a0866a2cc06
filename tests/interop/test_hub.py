"""Models by their names on the hub: what is asked of it, what stays in which cache, and what a refusal says."""

import os
import shutil
from pathlib import Path

import pytest

from heads.base.files import UserError, write_json
from heads.base.packaged import cache_of_hub, place_of
from heads.interop.downloads import fetched
from small_server import COMMIT, Hub, serving_hub

NAME, WEIGHTS = "Some-Lab/bert", bytes(range(256)) * 50
asked: list[tuple[str, str | None, str | None]] = []
"""The path, the range and the token of each request for content."""


class Listening(Hub):
    """A hub that tells what it was asked, and breaks off in the middle of weights."""

    def do_GET(self) -> None:
        first = self.headers.get("Range", "").removeprefix("bytes=").rstrip("-")
        asked.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        if not self.path.endswith("model.safetensors"):
            super().do_GET()
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(WEIGHTS) - int(first or 0)))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
        self.end_headers()
        self.wfile.write(WEIGHTS[int(first or 0) : None if first else len(WEIGHTS) // 2])


class Gated(Hub):
    """A hub of models for those who accept terms."""

    def do_HEAD(self) -> None:
        self.refuse(403, "GatedRepo")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one model; the working folder and the caches are the test's own."""
    files = tmp_path / "site" / NAME / "resolve/main"
    files.mkdir(parents=True)
    write_json(files / "config.json", {"model_type": "bert"})
    (files / "model.safetensors").write_bytes(WEIGHTS)
    (files / "tokenizer.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 64)
    monkeypatch.setattr("time.sleep", lambda _: None)
    asked.clear()
    return tmp_path / "site"


def test_a_broken_download_goes_on_with_a_token_and_all_files_are_of_one_commit(site: Path) -> None:
    with serving_hub(site, Listening) as hub:
        folder = fetched(NAME, hub=hub)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert [of for path, of, _ in asked if path.endswith("model.safetensors")] == [None, f"bytes={len(WEIGHTS) // 2}-"]
    assert {token for _, _, token in asked} == {"Bearer hf_mine"}
    assert {path.split("/")[4] for path, *_ in asked if not path.endswith("config.json")} == {COMMIT}


def test_what_huggingface_hub_has_cached_is_taken_without_a_network(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_hub(site) as hub:
        folder = fetched(NAME, hub=hub)
    assert folder == cache_of_hub(NAME) == place_of(NAME)
    folder.unlink()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with serving_hub(site):
        assert (fetched(NAME) / "model.safetensors").read_bytes() == WEIGHTS
        folder.unlink()
        weights = folder.parents[3] / "theirs/models--Some-Lab--bert/snapshots" / COMMIT / "model.safetensors"
        weights.unlink()
        with pytest.raises(UserError, match=r"Some-Lab/bert is no folder: .*offline mode is enabled"):
            fetched(NAME)
        folder.symlink_to(weights.parent)
        shutil.rmtree(site.parent / "cache/theirs")
        assert not folder.is_dir() and place_of(NAME) == Path(NAME)
        with pytest.raises(UserError, match=r"Some-Lab/bert is no folder: .*offline mode is enabled.*HF_HUB_OFFLINE"):
            fetched(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with serving_hub(site) as hub:
        assert (fetched(NAME, hub=hub) / "config.json").is_file(), "a link to an emptied cache is made anew"


def test_a_folder_of_files_in_our_own_cache_is_taken_as_it_is(site: Path) -> None:
    own = site.parent / "cache/heads/hub" / NAME
    shutil.copytree(site / NAME / "resolve/main", own)
    assert fetched(NAME) == own and not own.is_symlink()


@pytest.mark.parametrize(
    ("name", "hub", "said"),
    [
        (NAME, Gated, rf"accept terms at https://huggingface\.co/{NAME}: do so, and set HF_TOKEN\)$"),
        ("Some-Lab/bart", Hub, r"the hub has no model of this name: correct it, or set HF_TOKEN if it is private\)$"),
    ],
)
def test_a_refusal_is_one_sentence_with_the_way_out(site: Path, name: str, hub: type[Hub], said: str) -> None:
    with serving_hub(site, hub) as address, pytest.raises(UserError, match=said) as told:
        fetched(name, hub=address)
    assert "\n" not in str(told.value) and str(told.value).startswith(f"{name} is no folder: ")
    assert not Path(os.environ["XDG_CACHE_HOME"], "heads").exists()
