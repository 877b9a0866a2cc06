"""Whatever is wrong about an output is said before a command's work begins, and nothing is left of the trial."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heads.base.files import UserError
from heads.base.outputs import FILE, FOLDER, NEW_FOLDER, Output, check_outputs

PAGE = Output("--output", FILE, lambda path: path.with_suffix(".tsv"))


def wrong(given: dict[str, object], **outputs: Output) -> str:
    """What is wrong about the outputs; empty if nothing is."""
    try:
        check_outputs(given, outputs)
    except UserError as error:
        return str(error)
    return ""


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_a_file_may_be_new_or_replaced_or_lie_in_folders_that_are_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("old", encoding="utf-8")
    before = everything(tmp_path)
    for name in ("old.html", "new.html", "no/such/folder/new.html"):
        assert wrong({"output": tmp_path / name}, output=PAGE) == ""
    assert wrong({"output": None}, output=PAGE) == ""
    assert everything(tmp_path) == before
    assert (tmp_path / "old.html").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder is a folder: give --output the name of a file."),
        ("old.html/a/b.html", "b.html cannot be written (Not a directory): give --output another place."),
        ("a" * 250, "cannot be written (File name too long): give --output another place."),
        ("a\0b", "cannot be written (embedded null byte): give --output another name."),
        ("circle/b.html", "give --output another"),
        ("pipe", "pipe is no ordinary file and is not replaced: give --output another name."),
        ("read.html", "read.html is read by this command, which must not replace it: give --output another name."),
        ("linked.html", "linked.html is read by this command"),
        ("./folder/../read.html", "is read by this command"),
        ("table.html", "table.tsv is read by this command"),
        ("model.bin", "model.bin is read by this command"),
        ("page.tsv", "page.tsv would be written twice, by --output, which writes two files"),
    ],
)
def test_what_can_be_no_file_or_is_something_else_is_named_with_its_flag(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "linked.html").symlink_to(tmp_path / "read.html")
    for file in ("old.html", "read.html", "table.tsv", "model.bin"):
        (tmp_path / file).write_text(file, encoding="utf-8")
    before = everything(tmp_path)
    given = {
        "text": tmp_path / "read.html",
        "trees": [("gold", tmp_path / "table.tsv")],
        "model": f"{tmp_path}/model.bin",
    }
    assert said in wrong({**given, "output": tmp_path / name}, output=PAGE)
    assert everything(tmp_path) == before


def test_folders_may_exist_or_must_not_and_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    said = {
        (name, kind): wrong({"model_folder": tmp_path / name}, model_folder=Output("-m", kind))
        for name in ("there", "file", "new", "dangling")
        for kind in (FOLDER, NEW_FOLDER)
    }
    found = {place: text.removeprefix(f"{tmp_path}/").partition(":")[0] for place, text in said.items() if text}
    assert found == {
        ("there", NEW_FOLDER): "there is already there",
        ("file", FOLDER): "file is a file",
        ("file", NEW_FOLDER): "file is already there",
        ("dangling", NEW_FOLDER): "dangling is already there",
    }


def test_two_flags_cannot_name_one_file_in_two_ways(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    given = {"one": [tmp_path / "x", tmp_path / "a"], "other": tmp_path / "b/../a"}
    said = wrong(given, one=Output("--one", FILE), other=Output("--other", FILE))
    assert said.endswith("a would be written twice, by --one and --other: give --other another name.")


TRIAL = """
import os, resource, sys
from pathlib import Path
from heads.base.files import UserError
from heads.base.outputs import FILE, Output, check_outputs
what, path = sys.argv[1:]
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
elif os.getuid() == 0:
    os.setuid(65534)
try:
    check_outputs({"out": Path(path)}, {"out": Output("-o", FILE)})
except UserError as error:
    print(error, end="")
"""


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("full", "cannot be written (File too large): make room and run again."),
        ("forbidden", "cannot be written (Permission denied): give -o another place."),
    ],
)
def test_a_full_disk_and_a_folder_of_somebody_else_are_found_by_trying(tmp_path: Path, what: str, said: str) -> None:
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-c", TRIAL, what, str(folder / "page.html")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "workflow")},
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == f"{folder / 'page.html'} {said}"
    assert everything(tmp_path) == [folder]
