"""A third-party model that stays in memory is the model that an import writes, and is read once."""

import filecmp
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

import heads.interop.downloads
import heads.interop.firefox.importing
import heads.interop.origin
import heads.interop.saved_weights
from bert_models import save_bert
from bert_models import save_tokeniser as save_word_pieces
from fairseq_models import LANGUAGES, save_folder
from heads.base.files import read_lines
from heads.interop.bundle import Bundle, open_translator, saved_bundle
from heads.interop.export_encoder import export_any
from heads.interop.firefox.exporting import write_firefox
from heads.interop.firefox.items import MarianFile
from heads.interop.hub import CONFIG, WEIGHTS
from heads.interop.opening import import_any, open_model
from heads.interop.original import OriginalFiles
from heads.text.labels import Labels
from heads.text.vocabulary import Vocabulary
from heads.translation.model_folder import PRETRAINED
from heads.translation.stream import translated
from marian_files import write_student
from marian_models import SENTENCES, save_marian, save_tokeniser
from slow_ones import slow_but
from t5_models import PREFIX, TEXTS, save_t5

LABELS = {0: "Good", 1: "bad", 2: "none"}
OPTIONS: dict[str, dict[str, Any]] = {
    "marian": {},
    "t5": {"prefix": PREFIX},
    "m2m100": {"languages": LANGUAGES["m2m100"]},
    "student": {},
    "bert": {},
}
LINES = [*SENTENCES["source"], *TEXTS[:4]]


@pytest.fixture(scope="module", params=OPTIONS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Bundle, Bundle]:
    """A family, its folder, its model in memory, and the one that an import wrote."""
    family, place = request.param, tmp_path_factory.mktemp("bundles")
    theirs = place / "theirs"
    if family == "marian":
        save_tokeniser(theirs)
        save_marian(theirs)
    elif family == "t5":
        save_t5(theirs, "FLAN-T5, 6 heads", ending=2.0)
    elif family == "student":
        write_student(theirs, SENTENCES["source"])
    elif family == "bert":
        save_word_pieces(theirs)
        save_bert(theirs, id2label=LABELS)
    else:
        save_folder(theirs, family)
    import_any(str(theirs), place / "ours", **OPTIONS[family])
    return family, theirs, open_model(str(theirs), **OPTIONS[family]), saved_bundle(place / "ours")


@pytest.mark.parametrize(
    ("cached", "name", "called"),
    [
        ("firefox/en-xx", "firefox/en-xx", "firefox/en-xx"),
        ("hub/Some-Lab/student", "Some-Lab/student", "Some-Lab/student"),
        ("mine/student", "cache/heads/mine/student", "student"),
    ],
)
def test_a_model_is_called_by_the_name_that_its_user_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: str, name: str, called: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    snapshot = write_student(tmp_path / "enxx-1693087644", SENTENCES["source"])
    (tmp_path / "cache/heads" / cached).parent.mkdir(parents=True)
    (tmp_path / "cache/heads" / cached).symlink_to(snapshot)
    import_any(name, tmp_path / "ours")
    export_any(saved_bundle(tmp_path / "ours"), tmp_path / "small", "marian")
    for folder in ("ours", "small"):
        assert read_lines(tmp_path / folder / "README.md")[0] == f"# imported/{called}"


def test_a_model_file_in_a_folder_is_no_name_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(heads.interop.downloads, "_fetch_from_hub", lambda *_, **__: pytest.fail("asked the hub"))
    write_student(tmp_path / "theirs", SENTENCES["source"])
    assert open_model("theirs/model.bin").facts["run"] == "theirs"


def test_it_has_the_weights_vocabularies_and_facts_of_the_import(both: tuple[str, Path, Bundle, Bundle]) -> None:
    _, _, kept, written = both
    assert kept.shape == written.shape and not kept.model.training
    state = kept.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in written.model.state_dict().items())
    for mine, other in ((kept.source, written.source), (kept.target, written.target)):
        assert type(mine) is type(other) and len(mine) == len(other)
        if isinstance(mine, Labels) and isinstance(other, Labels):
            assert mine.words == other.words == ["good", "bad", "none"]
        elif isinstance(mine, Vocabulary) and isinstance(other, Vocabulary):
            assert mine.encode(LINES) == other.encode(LINES)
            assert [*map(mine.subword, range(len(mine)))] == [*map(other.subword, range(len(other)))]
            assert (mine.prefix, mine.suffix) == (other.prefix, other.suffix)
    assert kept.about is not None and kept.about == {
        key: value for key, value in (written.about or {}).items() if key != "files_sha256"
    }
    assert {**kept.facts, "shape": 0, "provenance": 0} == {**written.facts, "shape": 0, "provenance": 0}


@pytest.mark.parametrize("both", slow_but(["marian", "student"], OPTIONS), indirect=True)
def test_it_translates_and_is_exported_as_the_import_is(both: tuple[str, Path, Bundle, Bundle], tmp_path: Path) -> None:
    family, _, kept, written = both
    form = "marian" if family == "student" else "huggingface"
    for name, one in (("kept", kept), ("written", written)):
        export_any(one, tmp_path / name, form)
    files = sorted(path.relative_to(tmp_path / "kept") for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "written") for path in (tmp_path / "written").rglob("*") if path.is_file()
    )
    equal, other, _ = filecmp.cmpfiles(tmp_path / "kept", tmp_path / "written", map(str, files), shallow=False)
    assert len(equal) > 3 and {*other} <= {"origin.json"}
    if family != "bert":
        how: dict[str, Any] = {"beam": None, "length_penalty": None, "batch_tokens": 90, "max_subwords": 30}
        known = [open_translator(one, torch.device("cpu"), **how) for one in (kept, written)]
        found = [(one.beam, one.length_penalty, one.length_offset, one.early_stopping) for one in known]
        assert found[0] == found[1] and found[0][2] == 0
        assert found[0][:2] == (4, 1) or family != "marian", "its generation_config.json says so"
        assert (known[0].shortlist is None) == (known[1].shortlist is None) == (family != "student")
        texts = [[*translated(LINES, one, block_lines=9, report=lambda _: None)] for one in known]
        assert texts[0] == texts[1]


def _sized(files: OriginalFiles, number: int) -> tuple[Path, int]:
    """What is read of files for a size."""
    return files.place, number


def test_original_files_are_read_once_however_often_the_model_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, found = write_student(tmp_path / "theirs", SENTENCES["source"]), list[Path]()
    student = open_model(str(theirs))
    assert student.came_with is not None
    read, read_bytes = heads.interop.firefox.importing.read, Path.read_bytes

    def counted(path: Path) -> MarianFile:
        found.append(path)
        return read(path)

    def counted_bytes(path: Path) -> bytes:
        found.extend([path] * (path.parent == theirs))
        return read_bytes(path)

    monkeypatch.setattr(heads.interop.firefox.importing, "read", counted)
    monkeypatch.setattr(Path, "read_bytes", counted_bytes)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_firefox(student.translates()[0], student.came_with, tmp_path / name)
    assert theirs / "model.bin" not in found and 0 < len(found) == len({*found})
    assert [student.came_with.once(_sized, number) for number in (3, 4, 3)] == [(theirs, 3), (theirs, 4), (theirs, 3)]
    files = sorted(path.name for path in theirs.iterdir())
    for name in ("first", "second"):
        assert filecmp.cmpfiles(theirs, tmp_path / name, files, shallow=False) == (files, [], [])


def test_it_is_read_once_and_nothing_is_written(
    both: tuple[str, Path, Bundle, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    family, theirs, _, _ = both
    times, read, read_text = list[Path](), heads.interop.firefox.importing.read, Path.read_text

    def counted(path: Path) -> MarianFile:
        times.append(path)
        return read(path)

    def counted_text(path: Path, *how: Any, **more: Any) -> str:
        times.extend([path] * (path == theirs / CONFIG))
        return read_text(path, *how, **more)

    opened, safe_open = list[Path](), heads.interop.saved_weights.safe_open

    def counted_weights(path: Path, **how: Any) -> Any:
        opened.append(path)
        return safe_open(path, **how)

    monkeypatch.setattr(heads.interop.firefox.importing, "read", counted)
    monkeypatch.setattr(heads.interop.saved_weights, "safe_open", counted_weights)
    monkeypatch.setattr(Path, "read_text", counted_text)
    for module, name in ((tempfile, "mkdtemp"), (heads.interop.origin, "sha256_of")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("a folder is made, or a file read for its sum"))
    before = sorted(path.name for path in theirs.iterdir())
    open_model(str(theirs), **OPTIONS[family])
    assert [path.name for path in times] == ["model.bin" if family == "student" else CONFIG]
    assert [path.name for path in opened] == [WEIGHTS] * (family != "student")
    assert sorted(path.name for path in theirs.iterdir()) == before and PRETRAINED not in before
