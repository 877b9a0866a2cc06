"""Servers that never send the whole file; those in test_fetch.py send it in the end."""

from pathlib import Path

import pytest

from heads.base.files import UserError
from small_server import BODY, Site, names, serving


def test_a_server_that_always_sends_less_than_it_says_ends_in_one_sentence(tmp_path: Path) -> None:
    with (
        serving(Site(["cut"] * 9, ranges=False)) as site,
        pytest.raises(
            UserError, match=rf"after 3 attempts .*the connection ended early.* {len(BODY) // 2} bytes"
        ) as told,
    ):
        site.fetch(tmp_path / "a.tgz", attempts=3)
    assert "\n" not in str(told.value) and names(tmp_path) == {"a.tgz.part", "a.tgz.part.json"}


def test_a_server_that_answers_500_for_ever_is_named_in_one_sentence(tmp_path: Path) -> None:
    with (
        serving(Site(["500"] * 9)) as site,
        pytest.raises(UserError, match=r"after 4 attempts without progress .the server answers 500 ") as told,
    ):
        site.fetch(tmp_path / "a.tgz")
    assert site.url in str(told.value) and "\n" not in str(told.value) and names(tmp_path) == set()
