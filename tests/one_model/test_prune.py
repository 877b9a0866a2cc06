"""`heads prune`: what is left, the reported loss, a resumed run, and errors."""

import re
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from playwright.sync_api import sync_playwright

from explored_page import CHROMIUM, data_of, needs_browser
from heads.__main__ import main
from heads.analysis.metrics import BLEU
from heads.base.files import UserError, read_lines, write_json, write_lines
from heads.cli import prune
from heads.interop.bundle import saved_bundle
from heads.interop.families import export_format, family_in
from heads.model.folder import load_folder
from heads.model.head_removal import prune as prune_heads
from heads.model.shape import ModelShape
from heads.one_model import shrinking
from heads.one_model.answered_text import FIRST_OF_DEV, AnsweredSplits, AnsweredText, splits_for, splits_of
from heads.one_model.costs import Costs
from heads.one_model.prune_report import heads_of_zeros, report_lines, units_of_zeros
from heads.one_model.request import GATES, WAYS, PruningRequest, request_of
from heads.one_model.shrinking import Loss, Shrinking, Shrunk
from heads.one_model.working_folder import WorkingFolder
from heads.translation.distilled import distinct
from many_lines import LINES
from marian_files import write_student
from marian_models import SENTENCES
from model_folders import Experiment, greedy

TO_LOSS = PruningRequest("all", None, 0.5, 1)
pytestmark = pytest.mark.usefixtures("briefly_timed")


def pruned(model: Path, *flags: str) -> int:
    text, out = model.parent / "text.en", model.parent / "small"
    return main(["prune", str(model), str(text), "-o", str(out), "--by", "gates", "--updates", "12", *flags])


def heads_of(folder: Path) -> dict[str, int]:
    shape = load_folder(folder).shape
    return {kind: len(shape.heads((kind,))) for kind in ("enc_self", "dec_self", "dec_enc")}


def test_a_model_keeps_the_heads_asked_for_and_what_is_told_is_what_it_lost(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pruned(model, "--keep", "encoder=2") == 0
    told = capsys.readouterr().err
    small = model.parent / "small"
    assert heads_of(small) == {"enc_self": 2, "dec_self": 6, "dec_enc": 6}
    assert read_lines(small / "README.md")[0] == "# tiny/baseline/seed-1, 14 of 18 heads chosen by gates"
    held_out = splits_of(*distinct(LINES))["test"]
    wanted = greedy(model, held_out)
    own = sacrebleu.corpus_bleu(greedy(small, held_out), [wanted]).score
    sentence = r"2 of 6 heads are left. On (\d+) held-out .* it has ([\d.]+), and ([\d.]+) with all .*: ([-+][\d.]+) \("
    found = re.search(sentence, told)
    assert found
    assert int(found[1]) == len(held_out) == 2
    assert float(found[2]) == pytest.approx(own, abs=0.06)
    assert float(found[4]) == pytest.approx(float(found[2]) - float(found[3]), abs=0.11)
    assert "1 sentence at once, in PyTorch: " in told
    (shown,) = data_of(model.parent / "small.html")
    assert [(one["scope"], one["kept"], one["series"]) for one in shown["points"]] == [
        ("", 18, "unpruned"), ("enc_self", 18, "control"), ("enc_self", 14, "pruned")]  # fmt: skip
    assert shown["points"][2]["score"] == pytest.approx(own, abs=0.01)
    assert [one["updates"][-1] for one in shown["closing"]] == [12, 12]
    assert len(shown["models"]) == 3
    assert not (model.parent / ".small.unfinished").exists()
    assert read_lines(model.parent / "text.en") == LINES * 2


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--keep", "11")])
def test_gates_choose_hidden_units_alone_or_with_heads_and_the_page_has_both_models(
    model: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load_folder(model).shape
    asked = whole.feedforward // 2
    assert pruned(model, *flags, "--feedforward", str(asked)) == 0
    told, small = capsys.readouterr().err, model.parent / "small"
    shape = load_folder(small).shape
    assert sum(map(sum, shape.live_units.values())) == 4 * asked
    assert sum(heads_of(small).values()) == (11 if flags else 18)
    assert f"training with {'11 of 18 heads and ' if flags else ''}{asked} hidden units in an average layer" in told
    assert f"{11 if flags else 18} of 18 heads and {asked} hidden units in an average layer are left." in told
    (shown,) = data_of(model.parent / "small.html")
    assert [(one["kept"], one["series"]) for one in shown["points"]] == [
        (18, "unpruned"), (18, "control"), (11 if flags else 18, "pruned")]  # fmt: skip
    layers = {stack: ", ".join(map(str, units)) for stack, units in shape.live_units.items()}
    assert [one["units"] for one in shown["models"]] == [
        *("", ""),
        f"hidden units left of {whole.feedforward} in each layer, first to last: encoder {layers['enc_ffn']}; "
        f"decoder {layers['dec_ffn']}",
    ]
    held_out = splits_of(*distinct(LINES))["test"]
    own = sacrebleu.corpus_bleu(greedy(small, held_out), [greedy(model, held_out)]).score
    assert shown["points"][2]["score"] == pytest.approx(own, abs=0.01)


def test_heads_of_zeros_are_those_that_layers_of_a_format_have_more_or_all_that_are_gone(
    tiny_shape: Callable[..., ModelShape],
) -> None:
    whole = tiny_shape()
    live = {"enc_self": ((0,), (0, 1, 2)), "dec_self": ((1,), (0, 1)), "dec_enc": ((0, 2), ())}
    left = replace(whole, live_heads=live)
    assert heads_of_zeros(whole, left, ()) == 0
    assert heads_of_zeros(whole, left, (("enc_self",), ("dec_self", "dec_enc"))) == 2 + (1 + 2)
    assert heads_of_zeros(whole, left, None) == len(whole.heads()) - 9


def test_units_of_zeros_are_those_that_the_widest_layer_of_a_format_has_more(
    tiny_shape: Callable[..., ModelShape], tmp_path: Path
) -> None:
    shape = tiny_shape(live_units={"enc_ffn": (7, 2), "dec_ffn": (4, 3)})
    for kind in ("marian", "t5"):
        write_json(tmp_path / kind / "config.json", {"model_type": kind})

    def zeros(format: str, kind: str, shape: ModelShape = shape) -> int:
        written_as = export_format(format, family_in(tmp_path / kind))
        return units_of_zeros(shape, written_as.one_width if written_as else ())

    assert [zeros(format, "t5") for format in ("folder", "onnx", "ctranslate2")] == [0, 0, 0]
    assert zeros("marian", "marian") == zeros("npz", "marian") == zeros("huggingface", "t5") == 5 + 3 + 4
    assert zeros("huggingface", "marian") == zeros("huggingface", "elsewhere") == 5 + 1
    assert zeros("marian", "marian", tiny_shape()) == 0


@pytest.mark.slow
@needs_browser
def test_a_model_is_pruned_again_and_its_page_counts_the_heads_that_it_had(model: Path) -> None:
    assert pruned(model, "--keep", "11") == 0
    (model.parent / "small").rename(model.parent / "given")
    assert pruned(model.parent / "given", "--keep", "5") == 0
    assert sum(heads_of(model.parent / "small").values()) == 5
    (shown,) = data_of(model.parent / "small.html")
    given, *others = shown["models"]
    assert (given["name"], given["live"].count("1")) == ("given", 11)
    assert [(one["name"], one["live"].count("1")) for one in others] == [
        ("control: fine-tuned, nothing pruned", 11), ("pruned 5 heads", 5)]  # fmt: skip
    assert {len(trained["log_alpha"]) for trained in shown["concrete"]["trained"]} == {11}
    assert shown["points"][0]["name"] == "given" and "against what the model wrote" in shown["signature"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page, wrong = browser.new_page(), list[str]()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((model.parent / "small.html").resolve().as_uri())
        said = page.inner_text("body")
        browser.close()
    assert not wrong and " of 11 heads expected open" in said and "unpruned" not in said
    assert "has 11 heads, 7 fewer than at first" in said and "Pruned together, 0 heads" not in said


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained: list[str] = []
    whole = shrinking.train_one

    def counted(*given: Any) -> None:
        trained.append(str(given[3]))
        whole(*given)

    monkeypatch.setattr(shrinking, "train_one", counted)
    assert pruned(model, "--keep", "9") == 0
    (model.parent / "small").rename(model.parent / "first")
    trained.clear()

    def stopped(*given: Any) -> None:
        if str(given[3]) != "lam-0":
            raise KeyboardInterrupt
        counted(*given)

    monkeypatch.setattr(shrinking, "train_one", stopped)
    assert pruned(model, "--keep", "9") == 130
    assert not (model.parent / "small").exists()
    monkeypatch.setattr(shrinking, "train_one", counted)
    assert pruned(model, "--keep", "9") == 0
    assert trained == ["lam-0", "keep-9"]
    again, first = (model.parent / name / "model.safetensors" for name in ("small", "first"))
    assert again.read_bytes() == first.read_bytes()
    assert sum(heads_of(model.parent / "small").values()) == 9


def test_what_another_request_left_is_not_gone_on_with(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = model.parent / ".small.unfinished"
    told = f"{unfinished} was left by a pruning of another model, text, language or size, by another way, or by another"
    WorkingFolder(unfinished, {"model": "another"})
    assert pruned(model, "--keep", "9") == 1
    assert told in capsys.readouterr().err
    (unfinished / "request.json").rename(unfinished / "what_another_version_wrote.json")
    assert pruned(model, "--keep", "9") == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lost", "kept", "tried"),
    [
        ({14: 0.1, 9: 0.4, 7: 0.6, 4: 0.2, 2: 0.2}, 9, [14, 9, 7]),
        ({14: -0.3, 9: 0.0, 7: 0.1, 4: 0.5, 2: 0.5}, 2, [14, 9, 7, 4, 2]),
    ],
)
def test_of_the_sizes_tried_the_smallest_that_loses_no_more_is_taken(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: dict[int, float], kept: int,
    tried: list[int],
) -> None:  # fmt: skip
    pruning, seen = shrinking_of(experiment.baseline, tmp_path), list[int]()
    measured: list[tuple[int, str]] = []

    def loss(_: Shrinking, heads: int, split: str) -> Loss:
        measured.append((heads, split))
        return Loss(heads, 90 - lost[heads], 90, -lost[heads], -lost[heads] - 1, -lost[heads] + 1)

    monkeypatch.setattr(Shrinking, "by_gates", lambda _, heads: seen.append(heads))
    monkeypatch.setattr(Shrinking, "pruned", lambda _, folder: int(folder.name.removeprefix("keep-")))
    monkeypatch.setattr(Shrinking, "loss", loss)
    found = pruning.shrunk()
    assert (found.model, found.lost.kept) == (kept, kept) and seen == tried
    assert found.tried == {size: tmp_path / f"work/pruned/keep-{size}" for size in tried}
    # Chosen on one half of the held-out data, reported on the other.
    assert measured == [*((size, "dev") for size in tried), (kept, "test")]


def shrinking_of(model: Path, tmp_path: Path, request: PruningRequest = TO_LOSS) -> Shrinking:
    """The pruning of a folder's model, on a text of three sentences that it need not answer."""
    bundle = saved_bundle(model)
    texts = AnsweredSplits(bundle, {}, tmp_path, torch.device("cpu"), lambda _: None)
    texts.known |= {split: AnsweredText(LINES[:3], LINES[:3]) for split in (FIRST_OF_DEV, "test")}
    return Shrinking(bundle, texts, request, WorkingFolder(tmp_path / "work", {}), 1)


@pytest.mark.parametrize(
    ("by", "start", "name"),
    [
        ("surgeon", "baseline", "baseline/seed-1, 11 of 18 heads chosen in closed form"),
        ("gates", "pruned", "pruned/all/lam-0.2/seed-1, all 11 heads left"),
    ],
)
def test_a_pruned_model_is_called_what_it_was_and_how_many_heads_it_has(
    experiment: Experiment, tmp_path: Path, by: str, start: str, name: str
) -> None:
    pruning = shrinking_of(getattr(experiment, start), tmp_path, replace(TO_LOSS, by=by))
    assert pruning.name_of(load_folder(experiment.pruned)) == ("tiny", name)


def test_where_every_size_loses_too_much_it_is_said(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, found in (("by_gates", None), ("pruned", None), ("loss", Loss(14, 88, 90, -2, -3, -1))):
        monkeypatch.setattr(Shrinking, name, lambda *_, found=found: found)
    with pytest.raises(UserError, match=r"loses more than 0\.5 BLEU: raise --loss"):
        shrinking_of(experiment.baseline, tmp_path).shrunk()


@pytest.mark.parametrize(
    ("keep", "loss", "expected"),
    [("24", None, PruningRequest("all", 24, None, 7)), ("encoder=12", None, PruningRequest("enc_self", 12, None, 7)),
     (None, 0.5, PruningRequest("all", None, 0.5, 7))],
)  # fmt: skip
def test_requests(keep: str | None, loss: float | None, expected: PruningRequest) -> None:
    assert request_of(keep=keep, loss=loss, by="gates", updates=7) == expected


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--keep", "many"), "--keep many is not a number of heads such as 24 or encoder=12."),
        (("--keep", "decoder=3"), "--keep decoder=3 is not a number of heads such as 24 or encoder=12."),
        (("--keep", "18"), "--keep 18 is not possible, as of the 18 heads in that scope at least one has to stay"),
        (("--keep", "0"), "one has to stay and one has to go: give 1 to 17."),
        (("--keep", "encoder=0"), "--keep 0 is not possible, as of the 6 heads in that scope"),
        (("--keep", "encoder=7"), "one has to stay and one has to go: give 1 to 5."),
        (("--loss", "0"), "--loss 0.0 is not above 0"),
        (
            ("--keep", "3", "--minutes", "1"),
            "--minutes 1 is not possible: give 0 or more, or, with --by gates, --updates.",
        ),
        (("--loss", "nan"), "--loss nan is not above 0"),
        (("--megabytes", "9"), "--megabytes does not go with --by gates: remove one of them."),
        (
            ("--keep", "encoder=3", "--feedforward", "9"),
            "--keep encoder=3 does not go with --feedforward and --by gates: give the number of all heads.",
        ),
        (
            ("--keep", "3", "--updates", "0"),
            "--updates 0 is not possible: give 1 or more with --by gates, or else --minutes.",
        ),
    ],
)
def test_what_cannot_be_pruned_gets_a_sentence(
    model: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], told: str
) -> None:
    assert pruned(model, *flags) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert {path.name for path in model.parent.iterdir()} == {"model", "text.en"}


@pytest.mark.parametrize(
    ("heads", "sizes"), [(48, [36, 24, 18, 12, 6]), (4, [3, 2, 1]), (3, [2, 1]), (2, [1]), (6, [4, 3, 2, 1])]
)
def test_the_sizes_that_a_loss_is_tried_with_leave_a_head_and_prune_one(heads: int, sizes: list[int]) -> None:
    assert PruningRequest("all", None, 0.5, 1).sizes(heads) == sizes


def test_a_model_with_a_single_head_has_none_to_prune() -> None:
    for keep, loss in ((1, None), (None, 0.5)):
        with pytest.raises(UserError, match="has fewer than two heads in that scope: give one with a head that can go"):
            PruningRequest("all", keep, loss, 1).sizes(1)
    assert PruningRequest("all", None, None, 1, units=9).sizes(1) == [1], "its hidden units can go all the same"


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("huggingface", "the model normalises before each sub-layer, but Marian after it: export it with --format"),
        ("marian", "the model was not imported from Marian's own format, whose files are needed"),
        ("npz", "the model was not imported from Marian's own format, whose files are needed"),
        ("ctranslate2", 'ctranslate2 is not installed: pip install "heads[ctranslate2]"'),
        ("onnx", 'onnxscript is not installed: pip install "heads[onnx]"'),
    ],
)
def test_a_format_that_cannot_have_the_model_is_refused_before_anything_is_done(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str, told: str
) -> None:
    for library in ("ctranslate2", "onnxscript"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(prune, "WorkingFolder", lambda *_: pytest.fail("something was done"))
    assert pruned(model, "--keep", "3", "--format", form) == 1
    assert told in capsys.readouterr().err
    assert {path.name for path in model.parent.iterdir()} == {"model", "text.en"}


def test_a_text_of_too_few_sentences_gets_one(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(model.parent / "text.en", LINES[:49] * 9)
    assert pruned(model, "--keep", "3") == 1
    assert "The text has 49 distinct sentences of 3 to 60 words: give at least 50." in capsys.readouterr().err
    assert {path.name for path in model.parent.iterdir()} == {"model", "text.en"}


def test_a_tenth_is_held_out_once_and_in_two_halves() -> None:
    parts = splits_of([f"the number {one} is even ." for one in range(20000)], "")
    assert {split: len(lines) for split, lines in parts.items()} == {"train": 19000, "dev": 500, "test": 500}
    assert len({*parts["train"], *parts["dev"], *parts["test"]}) == 20000
    few = splits_of(*distinct(LINES * 3))
    assert {split: len(lines) for split, lines in few.items()} == {"train": 50, "dev": 2, "test": 2}


def test_so_many_distinct_sentences_as_asked_for_are_split_less_those_too_long_for_the_model(
    experiment: Experiment,
) -> None:
    short, long = (
        [f"the number {one} is even ." for one in range(90)],
        [f"{'dogcat' * one} " * 60 for one in range(3, 13)],
    )
    told: list[str] = []
    model = saved_bundle(experiment.baseline)
    parts = splits_for(model, [*short, *long, *short], 80, told.append)
    split = [line for part in parts.values() for line in part]
    assert split and {*split} < {*short} and len({*split}) == len(split)
    left_out = 80 - len(split)
    assert told == [f"{left_out} of 80 sentences are left out: {left_out} with more than 200 subwords."]
    parts = splits_for(model, short, 1000, told.append)
    assert {line for part in parts.values() for line in part} == {*short} and len(told) == 1


@pytest.mark.parametrize(
    ("ratio", "told", "form", "program"),
    [
        ((1.2, 1.1, 1.3), "faster", "folder", "PyTorch"),
        ((1.01, 0.98, 1.02), "no faster", "marian", "PyTorch"),
        ((0.9, 0.8, 0.95), "slower", "ctranslate2", "CTranslate2"),
    ],
)
def test_what_speed_was_won_is_said_and_if_none_was_that(
    experiment: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratio: tuple[float, float, float],
    told: str,
    form: str,
    program: str,
) -> None:
    monkeypatch.setattr(Costs, "speeds", lambda _costs, _models, size: {"smaller": ratio if size == 16 else (1, 1, 1)})
    monkeypatch.setattr(Costs, "whole_bytes", 2_340_000)
    pruning = shrinking_of(experiment.baseline, tmp_path, PruningRequest("enc_self", 12, None, 1, format=form))
    found = Shrunk(pruning.whole, Loss(3, 80, 90, -10, -12, -8), {})
    first, weights, alone, together = report_lines(pruning, found, 1_230_000)
    assert first.startswith("3 of 6 heads are left. On 3 held-out sentences")
    assert "80.0, and 90.0 with all heads" in first
    assert "-10.00 (95 % interval -12.00 to -8.00)" in first
    assert weights == "Its weights take 1.2 MB, those of the whole model 2.3."
    still = "1.00 times the original speed (1.00 to 1.00 in 5 rounds), no faster."
    assert alone == f"1 sentence at once, in {program}: {still}"
    spread = f"{ratio[0]:.2f} times the original speed ({ratio[1]:.2f} to {ratio[2]:.2f} in 5 rounds)"
    assert together == f"16 sentences at once, in {program}: {spread}, {told}."


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("marian", "5 of the heads that are gone are zeros in the format marian, which take room and time."),
        ("ctranslate2", "1 of the heads that are gone are zeros in the format ctranslate2, which take room and time "
        "(--uniform takes equally many from all layers)."),
        ("onnx", "Its weights take 1.2 MB, those of the whole model 2.3."),
    ],
)  # fmt: skip
def test_heads_that_are_gone_but_for_their_zeros_are_told(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, told: str
) -> None:
    monkeypatch.setattr(Costs, "speeds", lambda *_: {"smaller": (1, 1, 1)})
    monkeypatch.setattr(Costs, "whole_bytes", 2_340_000)
    pruning = shrinking_of(experiment.baseline, tmp_path, PruningRequest("all", 13, None, 1, format=form))
    gone = {"dec_self": [[True, True, False]] * 2, "dec_enc": [[True, True, False], [True, False, False]]}
    left = replace(pruning.whole, model=prune_heads(pruning.whole.model, gone))
    _, second, *_ = report_lines(pruning, Shrunk(left, Loss(13, 80, 90, -10, -12, -8), {}), 1_230_000)
    assert second == told


def test_a_model_that_says_nothing_ends_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_student(tmp_path / "student", SENTENCES["source"])
    write_lines(tmp_path / "text.en", LINES)
    words = ["prune", str(tmp_path / "student"), str(tmp_path / "text.en"), "-o", str(tmp_path / "small")]
    assert main([*words, "--feedforward", "50%", "--minutes", "0"]) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("error: The model translates all of the ") and " sentences of train to nothing: " in last
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("by", WAYS)
def test_the_control_is_scored_once_on_each_split_and_the_model_itself_never(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str
) -> None:
    """Where the model is its own control, its answers are known."""
    wanted = {
        "dev": ["a small dog barks here .", "the old cat sees a house ."],
        "test": ["a white house stands here ."],
    }
    pruning = shrinking_of(experiment.baseline, tmp_path, PruningRequest("all", 5, None, 1, by))
    small, asked = deepcopy(pruning.whole.model), list[tuple[bool, str]]()
    monkeypatch.setattr(shrinking, "load_model", lambda _: deepcopy(pruning.whole.model))
    monkeypatch.setattr(pruning.texts, "encoded", lambda split, _: split)

    def evaluated(model: Any, _device: Any, split: str, _search: Any) -> Any:
        asked.append((model is small, split))
        said = ["a dog barks .", "the cat sees a house ."][: len(wanted[split])] if split == "dev" else wanted[split]
        return (lambda _gates: said), wanted[split], BLEU

    monkeypatch.setattr(shrinking, "evaluation_of", evaluated)
    found = [pruning.loss(replace(pruning.whole, model=small), split) for split in ("dev", "dev", "test")]
    own = [split for is_smaller, split in asked if is_smaller]
    assert own == ["dev", "dev", "test"]
    assert [split for is_smaller, split in asked if not is_smaller] == (["dev", "test"] if by == GATES else [])
    dev = sacrebleu.corpus_bleu(["a dog barks .", "the cat sees a house ."], [wanted["dev"]]).score
    dev = dev if by == GATES else 100.0
    assert [loss.control for loss in found] == pytest.approx([dev, dev, 100.0], abs=0.01)


def test_what_is_lost_is_told_by_the_control(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ["a small dog barks here .", "the old cat sees a house .", "a white house stands near the river ."]
    said = {
        "small": ["a small dog barks .", "the old cat sees a house .", "a house stands near a river ."],
        "lam-0": ["a small dog barks here .", "the cat sees a house .", "a white house stands near the river ."],
    }
    pruning = shrinking_of(experiment.baseline, tmp_path, PruningRequest("all", 5, None, 1))
    small, control = deepcopy(pruning.whole.model), deepcopy(pruning.whole.model)
    of = {id(small): said["small"], id(control): said["lam-0"]}
    monkeypatch.setattr(shrinking, "load_model", lambda folder: {"lam-0": control}[folder.name])
    monkeypatch.setattr(shrinking, "evaluation_of", lambda model, *_: (lambda _gates: of[id(model)], wanted, BLEU))
    found = pruning.loss(replace(pruning.whole, model=small), "test")
    pruned, whole = (sacrebleu.corpus_bleu(said[name], [wanted]).score for name in ("small", "lam-0"))
    assert (found.pruned, found.control, found.change) == pytest.approx((pruned, whole, pruned - whole), abs=0.01)
    assert found.low <= found.change <= found.high and found.kept == 18
