"""The README holds: its commands can be planned, its settings are settings, its files and pictures exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from checkouts import ROOT, checkout, snakemake
from heads import settings
from heads.corpus.sources import parse_corpus

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]
TABLE = re.findall(r"\| `(snakemake [^`]+)` \|", README)
ASKED = [line for line in [*LINES, *TABLE] if line.startswith("snakemake")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("clone"))


@pytest.mark.parametrize("command", ASKED)
def test_every_command_of_the_readme_plans_the_jobs_it_needs(clone: Path, command: str) -> None:
    done = snakemake(clone, *shlex.split(command)[1:], "-n", "--quiet")
    assert done.returncode == 0, done.stdout[-1500:]


@pytest.mark.parametrize("command", [line for line in LINES if line.startswith("make")])
def test_every_make_target_of_the_readme_exists(command: str) -> None:
    done = subprocess.run(
        [*shlex.split(command), "-n"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_settings_that_the_readme_shows_are_settings() -> None:
    shown = yaml.safe_load("".join(re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)))
    config = settings.merged(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")), shown)
    assert "mine" in settings.resolve(config)
    assert parse_corpus(config["corpora"]["mine"]).source == "en"


def test_every_picture_and_file_that_the_readme_links_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert any(link.endswith(".gif") for link in links)
    assert [link for link in links if not (ROOT / link).exists()] == []
