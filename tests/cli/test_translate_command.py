"""Any text is translated line by line, whatever it contains, in bounded memory, by any model."""

import gzip
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
import torch

from heads.__main__ import main
from heads.base.files import write_text
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.text.special_ids import EOS
from heads.translation.beam_search import beam_search
from heads.translation.stream import Translator, plain_lines, translated
from model_folders import SOURCE, TARGET, Experiment, write_experiment
from slow_ones import slow_but

Command = Callable[..., tuple[int, list[str], str]]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run `heads translate` on some bytes, and return exit status, output lines and stderr."""

    def run(given: bytes, *flags: str | Path) -> tuple[int, list[str], str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        status = main(["translate", *map(str, flags), "--device", "cpu"])
        said = capfdbinary.readouterr()
        assert not said.out or said.out.endswith(b"\n")
        return status, said.out.decode().split("\n")[:-1], said.err.decode()

    return run


def translator(folder: Path, *, beam: int = 2, batch_tokens: int = 30, max_subwords: int = 90) -> Translator:
    model, vocabularies = saved_bundle(folder).translates()
    return Translator(model, *vocabularies, torch.device("cpu"), beam, 0.7, batch_tokens, max_subwords)


def alone(folder: Path, line: str) -> str:
    """The translation of a single line, without batching."""
    model, (source, target) = saved_bundle(folder).translates()
    ids = torch.tensor([[*source.encode([line])[0], EOS]])
    found = beam_search(model, ids, torch.ones_like(ids, dtype=torch.bool), beam=2, length_penalty=0.7)
    return target.decode(found)[0]


def test_every_line_is_translated_as_it_would_be_alone_and_in_its_place(
    experiment: Experiment, command: Command
) -> None:
    lines = [*SOURCE, "dogs see dogs .", "the river !", *reversed(SOURCE)]
    status, out, said = command("\n".join(lines).encode(), experiment.pruned, "--batch-tokens", "25")
    assert (status, said) == (0, "")
    assert out == [alone(experiment.pruned, line) for line in lines]
    assert len(set(out)) > 2


def test_empty_and_blank_lines_stay_empty_and_no_input_gives_no_output(
    experiment: Experiment, command: Command
) -> None:
    _, out, _ = command(f"\n \t \n{SOURCE[1]}\n\n".encode(), experiment.baseline)
    assert [bool(line) for line in out] == [False, False, True, False]
    assert command(b"", experiment.baseline)[1] == []


ODD = ["\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\x00", "\U0001f600", "e\u0301"]


@pytest.mark.parametrize("odd", slow_but(["\u2028", "\r", "\x00"], ODD))
def test_no_character_of_unicode_changes_the_number_of_lines(
    experiment: Experiment, command: Command, odd: str
) -> None:
    status, out, said = command(f"the{odd}cat\n{odd}\nthe dog\n".encode(), experiment.baseline)
    assert (status, said, len(out)) == (0, "", 3)
    assert out[2] == alone(experiment.baseline, "the dog")


def test_text_is_read_as_the_corpora_are_written_and_a_line_that_is_no_utf8_is_told_of() -> None:
    told: list[str] = []
    raw = [b"\xef\xbb\xbfcaf\x65\xcc\x81  now \r\n", b"a\xffb\n", "\ufeffc".encode()]
    assert list(plain_lines(raw, told.append)) == ["caf\u00e9 now", "a\ufffdb", "\ufeffc"]
    assert len(told) == 1
    assert "line 2 " in told[0]


def test_a_long_line_is_translated_in_parts_cut_before_words_and_told_of(experiment: Experiment) -> None:
    short = translator(experiment.baseline, max_subwords=9)
    line = " ".join(SOURCE)
    (ids,) = short.source.encode([line])
    parts = short.parts(ids)
    assert [subword for part in parts for subword in part] == ids
    assert all(len(part) <= 9 for part in parts)
    texts = short.source.decode(parts)
    assert " ".join(texts) == line
    told: list[str] = []
    blocks = translated(["a cat", line], short, block_lines=1, report=told.append)
    joined = " ".join(alone(experiment.baseline, text) for text in texts)
    assert list(blocks) == [[alone(experiment.baseline, "a cat")], [joined]]
    assert len(told) == 1
    assert told[0].startswith(f"line 2 has {len(ids)} subwords and is translated in {len(parts)} parts")


def test_a_word_longer_than_the_limit_is_cut_into_parts_of_like_length(experiment: Experiment) -> None:
    short = translator(experiment.baseline, max_subwords=4)
    start, inner = (
        next(i for i in range(4, 70) if (short.source.subword(i)[0] == "\u2581") == s) for s in (True, False)
    )
    ids = [start, *[inner] * 8]
    assert [len(part) for part in short.parts(ids)] == [3, 3, 3]
    assert short.parts(ids[:4]) == [ids[:4]]
    assert short.parts([]) == []


def test_no_more_than_a_block_is_read_before_it_is_answered(experiment: Experiment) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield SOURCE[taken % 3]

    blocks = translated(endless(), translator(experiment.pruned), block_lines=4, report=print)
    assert [(len(next(blocks)), taken) for _ in range(3)] == [(4, 4), (4, 8), (4, 12)]


def test_a_model_with_gates_translates_as_the_model_pruned_from_it(experiment: Experiment, command: Command) -> None:
    given = "\n".join(SOURCE).encode()
    flags = ("--beam", "2", "--length-penalty", "0.7")
    pruned = command(given, experiment.pruned)[1]
    assert command(given, experiment.gates, *flags)[1] == pruned
    assert command(given, experiment.baseline)[1] != pruned


def test_what_cannot_translate_says_why_in_one_sentence(
    experiment: Experiment, command: Command, tmp_path: Path
) -> None:
    stray = shutil.copytree(experiment.baseline, tmp_path / "stray")
    wrong = shutil.copytree(experiment.baseline.parents[1], tmp_path / "wrong")
    for ending in ("model", "json"):
        shutil.copyfile(wrong / f"bpe/target.{ending}", wrong / f"bpe/source.{ending}")
    for folder, reason in (
        (experiment.gates, "give --beam and --length-penalty"),
        (tmp_path, "has no config.json"),
        ("", "No model is named"),
        (stray, "has no source.model and target.model"),
        (wrong / "baseline/seed-1", "vocabularies of 60 and 60 subwords"),
    ):
        status, out, said = command(b"the cat\n", folder)
        assert (status, out) == (1, [])
        assert reason in said
        assert said.count("\n") == 1


def test_translations_are_scored_against_references(experiment: Experiment, command: Command, tmp_path: Path) -> None:
    write_text(tmp_path / "references", "".join(f"{line}\n" for line in TARGET))
    given = "\n".join(SOURCE).encode()
    status, out, said = command(given, experiment.pruned, "--references", tmp_path / "references")
    assert status == 0
    score = sacrebleu.corpus_bleu(out, [TARGET]).score
    assert (
        said.startswith(f"BLEU {score:.2f} nrefs:1|")
        and f"chrF {sacrebleu.corpus_chrf(out, [TARGET]).score:.2f}" in said
    )
    status, again, said = command(
        given[:-1] + b"!\none more", experiment.pruned, "--references", tmp_path / "references"
    )
    assert status == 1 and len(again) == 4
    assert "The written text has 4 lines and its references 3: give one reference per line." in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (gzip.compress(b"the cat\n"), "error: The standard input is gzipped: unpack it first.\n"),
        ("the cat\n".encode("utf-16"), "error: The standard input is UTF-16: convert it to UTF-8 with iconv.\n"),
        ("the cat\n".encode("utf-16-le"), "error: The standard input has bytes of zero, as UTF-16"),
    ],
    ids=["gzip", "utf-16", "utf-16-le"],
)
def test_what_is_no_text_is_not_translated(experiment: Experiment, command: Command, given: bytes, said: str) -> None:
    status, out, told = command(given, experiment.baseline)
    assert (status, out) == (1, [])
    assert told.startswith(said) and told.count("\n") == 1


def test_references_that_are_all_empty_are_refused_before_anything_is_translated(
    experiment: Experiment, command: Command, tmp_path: Path
) -> None:
    write_text(tmp_path / "references", " \n\n")
    status, out, said = command(b"the cat\na dog\n", experiment.baseline, "--references", tmp_path / "references")
    assert (status, out) == (1, [])
    assert (
        said
        == f"error: All lines of {tmp_path / 'references'} are empty: give the translations or labels of the text.\n"
    )


def written_to(stdout: Any, experiment: Experiment) -> tuple[int, bytes]:
    """Exit status and stderr of a process that writes its translations there."""
    command = [sys.executable, "-m", "heads", "translate", str(experiment.baseline)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "workflow")}
    streams = {"input": b"the cat\n", "stdout": stdout, "stderr": subprocess.PIPE}
    done = subprocess.run(command, **streams, env=environment, check=False, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_a_reader_who_has_enough_ends_it_in_peace(experiment: Experiment) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert written_to(writing, experiment) == (0, b"")
    os.close(writing)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(experiment: Experiment) -> None:
    said = b"error: the standard output cannot be written (No space left on device): make room and run again.\n"
    with Path("/dev/full").open("wb") as full:
        assert written_to(full, experiment) == (1, said)


def test_who_stops_it_from_the_keyboard_sees_no_traceback(
    experiment: Experiment, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: object, **named: object) -> Iterator[list[str]]:
        raise KeyboardInterrupt

    monkeypatch.setattr("heads.cli.translate.translated", stopped)
    assert command(b"the cat\n", experiment.baseline) == (130, [], "stopped\n")


DAMAGED = ["{}", "[]", '{"beam": 0, "length_penalty": 0.7}', '{"beam": "2"}', "7"]


@pytest.mark.parametrize("score", slow_but(DAMAGED[2:3], DAMAGED))
def test_an_exported_model_with_a_damaged_score_asks_for_the_search(
    experiment: Experiment, command: Command, tmp_path: Path, score: str
) -> None:
    export(saved_bundle(experiment.pruned), tmp_path / "mine")
    write_text(tmp_path / "mine/bleu.json", score)
    status, out, said = command(b"the cat\n", tmp_path / "mine")
    assert (status, out, said.count("\n")) == (1, [], 1)
    assert "bleu.json is damaged" in said and "--beam and --length-penalty" in said
    flags = ("--beam", "2", "--length-penalty", "0.7")
    assert command(b"the cat\n", tmp_path / "mine", *flags)[:2] == (0, [alone(experiment.pruned, "the cat")])


@pytest.mark.parametrize("given", ["nan", "inf", "-1"])
def test_a_length_penalty_that_is_no_number_of_at_least_zero_is_refused(
    experiment: Experiment, command: Command, given: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(b"the cat\n", experiment.pruned, f"--length-penalty={given}")
