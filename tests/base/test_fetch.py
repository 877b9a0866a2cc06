"""Downloads from a small server that misbehaves on purpose, and members of archives."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from heads.base.fetch import open_bytes
from heads.base.files import UserError
from heads.config.corpus_parts import download_name
from small_server import BODY, Site, names, serving

RIGHT = hashlib.sha256(BODY).hexdigest()


def test_a_download_cut_half_way_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with serving(Site(["cut"])) as site:
        assert site.fetch(tmp_path / "a.tgz") == RIGHT
    assert (tmp_path / "a.tgz").read_bytes() == BODY
    assert site.asked == [None, f"bytes={len(BODY) // 2}-"]
    assert names(tmp_path) == {"a.tgz", "a.tgz.sha256"}


def test_a_download_left_by_a_killed_run_is_gone_on_with_by_the_next(tmp_path: Path) -> None:
    with serving(Site(["cut", "503", "503"])) as site:
        with pytest.raises(UserError, match=f"{len(BODY) // 2} bytes received are kept"):
            site.fetch(tmp_path / "a.tgz", attempts=2)
        assert names(tmp_path) == {"a.tgz.part", "a.tgz.part.json"}
        assert site.fetch(tmp_path / "a.tgz") == RIGHT
    assert site.asked[-1] == f"bytes={len(BODY) // 2}-"


def test_a_file_that_changed_on_the_server_is_fetched_anew(tmp_path: Path) -> None:
    with serving(Site(["cut", "503", "503"])) as site:
        with pytest.raises(UserError):
            site.fetch(tmp_path / "a.tgz", attempts=2)
        site.etag, site.body = '"two"', BODY[::-1]
        site.fetch(tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == BODY[::-1]


def test_a_part_of_another_url_is_not_gone_on_with(tmp_path: Path) -> None:
    with serving(Site(["cut", "503"], body=BODY[::-1])) as other, pytest.raises(UserError):
        other.fetch(tmp_path / "a.tgz", attempts=1)
    with serving(Site([])) as site:
        assert site.fetch(tmp_path / "a.tgz") == RIGHT
    assert site.asked == [None]


def test_two_server_errors_are_waited_out_with_growing_pauses(tmp_path: Path) -> None:
    with serving(Site(["500", "cut", "503"], ranges=False)) as site:
        assert site.fetch(tmp_path / "a.tgz") == RIGHT, "whole again, where the server knows no ranges"
    assert site.waits == [2.0, 2.0, 4.0]


def test_a_missing_page_is_final_at_once(tmp_path: Path) -> None:
    with serving(Site(["404"])) as site, pytest.raises(UserError, match="404"):
        site.fetch(tmp_path / "a.tgz")
    assert site.asked == [None] and not site.waits and names(tmp_path) == set()


def test_a_server_that_is_not_there_is_tried_and_then_named(tmp_path: Path) -> None:
    with serving(Site([])) as site:
        pass
    with pytest.raises(UserError, match=r"3 attempts without progress \(.*run again\.$"):
        site.fetch(tmp_path / "a.tgz", attempts=3)
    assert site.waits == [2.0, 4.0]


def test_a_wrong_checksum_deletes_the_file_and_names_both(tmp_path: Path) -> None:
    wrong = "0" * 64
    with serving(Site([])) as site, pytest.raises(UserError, match=f"{RIGHT}.*{wrong}.*run again"):
        site.fetch(tmp_path / "a.tgz", sha256=wrong)
    assert names(tmp_path) == set()


def test_a_recorded_checksum_must_match_ever_after(tmp_path: Path) -> None:
    with serving(Site([])) as site:
        site.fetch(tmp_path / "a.tgz")
        (tmp_path / "a.tgz").unlink()
        site.body = BODY + b"more"
        with pytest.raises(UserError, match=f"a.tgz.sha256 recorded {RIGHT}"):
            site.fetch(tmp_path / "a.tgz")
    assert names(tmp_path) == {"a.tgz.sha256"}


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.zip"])
def test_a_member_is_read_and_a_missing_one_is_answered_with_the_nearest_names(tmp_path: Path, name: str) -> None:
    path, good = tmp_path / name, "training/europarl.de-en.en"
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(good, "good\n")
    else:
        with tarfile.open(path, "w:gz" if name == "a.tgz" else "w") as tar:
            info = tarfile.TarInfo(f"./{good}")
            info.size = 5
            tar.addfile(info, io.BytesIO(b"good\n"))
    with open_bytes(path, good) as stream:
        assert stream.read() == b"good\n"
    words = r"no member training/europarl\.de-en\.de.*are training/europarl\.de-en\.en"
    with pytest.raises(UserError, match=words), open_bytes(path, "training/europarl.de-en.de"):
        pass


def test_names_of_downloads_are_readable_and_differ_when_only_the_query_does() -> None:
    first, second = (download_name(f"https://example.org/wmt 13/data.tgz?part={part}") for part in (1, 2))
    assert first != second and first.endswith("-example.org-wmt-13-data.tgz") and first[11:] == second[11:]
