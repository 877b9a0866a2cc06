"""`heads prune`: heads and hidden units go in closed form, and what is told is what was lost."""

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from explored_page import data_of
from heads.__main__ import main
from heads.base.files import UserError, read_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.interop.bundle import Bundle, saved_bundle
from heads.model import folder as model_folder
from heads.model.folder import load_folder
from heads.model.shape import Place
from heads.model.transformer import Transformer
from heads.one_model import fine_tuning, shrinking
from heads.one_model.answered_text import FIRST_OF_DEV, AnsweredSplits, AnsweredText, splits_for, splits_of
from heads.one_model.costs import Costs
from heads.one_model.request import PruningRequest, total_of_units
from heads.one_model.surgery import Surgery
from heads.one_model.working_folder import WorkingFolder
from heads.pruning.closed_form import doing_without, output_of, parts_at
from heads.pruning.surgeon import refitted
from heads.text.encoding import tokens_of, vocabulary_of
from heads.text.special_ids import BOS, EOS
from heads.translation.beam_search import beam_search
from heads.translation.distilled import distinct
from known_experiment import divergence
from many_lines import LINES
from model_folders import greedy
from slow_ones import slow_but

pytestmark = [
    pytest.mark.filterwarnings("ignore:PULP_CBC_CMD", "ignore:Initializing zero-element tensors"),
    pytest.mark.usefixtures("briefly_timed"),
]

ANSWERED = ("sentences.txt", "answers.txt", "written_ids.jsonl")


def never(*_: Any) -> None:
    raise AssertionError("something was trained")


@pytest.mark.parametrize(
    ("keep", "left"), slow_but([("encoder=3", (3, 6, 6))], [("encoder=3", (3, 6, 6)), ("8", (0, 0, 8))])
)
def test_heads_go_without_any_training_and_what_is_told_is_what_was_lost(
    model: Path, keep: str, left: tuple[int, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train_one", "fine_tune"):
        monkeypatch.setattr(shrinking, name, never)
    read, held, load_tensors = list[Path](), list[Path](), model_folder.load_tensors
    finish = WorkingFolder.finish

    def finished(folder: WorkingFolder, out: Path) -> None:
        held.extend(path for path in folder.folder.rglob("*") if path.is_file() and folder.exported not in path.parents)
        finish(folder, out)

    monkeypatch.setattr(WorkingFolder, "finish", finished)

    def noted(path: Path) -> Any:
        read.append(path)
        return load_tensors(path)

    def weighed(costs: Costs, of: Bundle) -> int:
        asked.append(of)
        return bytes_in(costs, of)

    asked, bytes_in = list[Bundle](), Costs.bytes_in
    monkeypatch.setattr(Costs, "bytes_in", weighed)
    monkeypatch.setattr(model_folder, "load_tensors", noted)
    small, text = model.parent / "small", model.parent / "text.en"
    assert main(["prune", str(model), str(text), "-o", str(small), "--keep", keep, "--minutes", "0"]) == 0
    assert read.count(model / "model.safetensors") == len(asked) == 1
    shape = load_folder(small).shape
    found = tuple(len(shape.heads((kind,))) for kind in ("enc_self", "dec_self", "dec_enc"))
    assert sum(found) == sum(left) and (keep == "8" or found == left)
    held_out = splits_of(*distinct(LINES))["test"]
    own = sacrebleu.corpus_bleu(greedy(small, held_out), [greedy(model, held_out)]).score
    told = re.search(r"it has ([\d.]+), and 100\.0 for the whole model: ([-+][\d.]+) \(", capsys.readouterr().err)
    assert told
    assert float(told[1]) == pytest.approx(own, abs=0.06)
    assert float(told[2]) == pytest.approx(own - 100, abs=0.06)
    (shown,) = data_of(model.parent / "small.html")
    assert len(shown["models"]) == 2 and not shown["closing"]
    names = {path.relative_to(model.parent / ".small.unfinished").as_posix() for path in held}
    texts = {f"{split}.{what}" for split in (f"studied-{20 * 6}", FIRST_OF_DEV, "test") for what in ANSWERED}
    files = {
        f"pruned/keep-{keep.removeprefix('encoder=')}/{name}"
        for name in ("model.safetensors", "model.json", "heads.tsv")
    }
    assert names == {"request.json", *files, *(f"texts/{name}" for name in texts)}, "the whole model is not among them"


@pytest.fixture
def surgery(model: Path, tmp_path: Path) -> Surgery:
    """The surgery of all heads, whose sentences to read and to compare losses on are the same."""
    cpu, bundle = torch.device("cpu"), saved_bundle(model)
    sentences = splits_for(bundle, LINES, 1000, never)["train"]
    texts = AnsweredSplits(bundle, {"train": sentences, "dev": sentences}, tmp_path / "texts", cpu, lambda _: None)
    request = PruningRequest("all", 9, None, 1, "surgeon", units=None, faster=1.01)
    return Surgery(Costs(bundle, texts, request))


def test_the_model_that_is_written_has_the_heads_picked_and_output_maps_refitted(
    surgery: Surgery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surgery.costs, "speeds", lambda *_: {"smaller": (1.02, 1.0, 1.1)})
    monkeypatch.setitem(vars(surgery.costs), "times", dict.fromkeys((*ATTENTIONS, *FEEDFORWARDS), 0.001))
    surgery.smaller(9, tmp_path / "small")
    small = load_folder(tmp_path / "small")
    picked_numbers = surgery.numbers(9)
    assert len(small.shape.heads()) == sum(n for place, n in picked_numbers.items() if place[0] in ATTENTIONS) == 9
    rows = read_tsv(tmp_path / "small/heads.tsv")
    parts = parts_at(small, ATTENTIONS)
    for (kind, layer), what in surgery.surgeon.maps.items():
        if kind in FEEDFORWARDS:
            assert output_of(parts_at(small, [kind])[kind, layer])[1] == picked_numbers[kind, layer]
            continue
        kept = [row["open"] == "1" for row in rows if (row["attention"], row["layer"]) == (kind, str(layer))]
        numbers = [head for head, stays in enumerate(kept) if stays]
        assert numbers == surgery.surgeon.kept((kind, layer), picked_numbers[kind, layer])
        output, _ = output_of(parts[kind, layer])
        torch.testing.assert_close(output.weight.T.double(), refitted(what, numbers), rtol=1e-5, atol=1e-6)


def test_what_came_out_is_told_before_the_page_and_a_stop_on_the_way_leaves_nothing_half_written(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, asked = model.parent / "small", ["prune", str(model), str(model.parent / "text.en"), "--keep", "encoder=3"]

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("heads.cli.prune.pruned_page", stopped)
        assert main([*asked, "--minutes", "0", "-o", str(small)]) == 130
    assert "1 sentence at once, in PyTorch: " in capsys.readouterr().err
    assert not small.exists() and not model.parent.joinpath("small.html").exists()
    monkeypatch.setattr("heads.cli.prune.pruned_page", lambda *_: "page")
    assert main([*asked, "--minutes", "0", "-o", str(small)]) == 0
    assert capsys.readouterr().err.endswith(f"The model is in {small}, and its page in {small}.html.\n")
    assert len(load_folder(small).shape.heads(["enc_self"])) == 3
    assert not (model.parent / ".small.unfinished").exists()


def last_twelve(surgery: Surgery) -> list[tuple[list[int], list[int]]]:
    """The subwords of the last held-out sentences to compare on and of the model's answers."""
    asked = surgery.texts[FIRST_OF_DEV].pairs(surgery.whole)
    return [(asked.source[number].tolist(), asked.target[number].tolist()) for number in asked.index[-12:].tolist()]


@torch.no_grad()
def test_ladders_tell_how_far_the_models_answers_move_with_each_layer(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compared on the last of the held-out sentences that are answered first, here twelve."""
    monkeypatch.setattr("heads.one_model.surgery.ASKED_SENTENCES", 12)
    before = {name: value.clone() for name, value in surgery.model.state_dict().items()}
    assert list(surgery.ladders) == [
        *((kind, layer) for layer in (0, 1) for kind in ("enc_self", "enc_ffn")),
        *((kind, layer) for layer in (0, 1) for kind in ("dec_self", "dec_enc", "dec_ffn")),
    ]
    model = surgery.model
    assert isinstance(model, Transformer)
    whole = copy.deepcopy(model)
    pairs = last_twelve(surgery)
    for place, ladder in surgery.ladders.items():
        numbers, units = list(ladder), surgery.surgeon.maps[place].groups
        if place[0] in FEEDFORWARDS:
            assert numbers[0] == -(-units // 8) and numbers == sorted(numbers) and numbers[-1] == units
        else:
            assert numbers == [0, 1, 3], "with two of three heads the loss follows from errors"
        assert ladder[units] == 0
        surgeon = surgery.surgeon
        with doing_without(surgery.model, surgeon.maps, {place: surgeon.kept(place, numbers[1])}):
            moved = divergence(whole, model, pairs)
        assert ladder[numbers[1]] == pytest.approx(moved, abs=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in surgery.model.state_dict().items())


@torch.no_grad()
def test_layers_are_compared_again_without_half_of_what_is_to_go(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 18 heads 9 are to stay, so half of what is to go has gone with 13, the most that is within the limit."""
    monkeypatch.setattr("heads.one_model.surgery.ASKED_SENTENCES", 12)
    halfway = surgery.rungs_halfway([surgery.of_heads(9)])
    left = {place: max(ladder) for place, ladder in halfway.items()}
    assert sum(number for (kind, _), number in left.items() if kind in ATTENTIONS) == 13
    surgeon, model = surgery.surgeon, surgery.model
    assert isinstance(model, Transformer)
    whole = copy.deepcopy(model)
    pairs = last_twelve(surgery)
    place = next(place for place, number in left.items() if place[0] == "dec_enc" and number > 1)
    for fewer in (left[place], 1):
        kept = {one: surgeon.kept(one, number) for one, number in {**left, place: fewer}.items()}
        with doing_without(model, surgeon.maps, kept):
            moved = divergence(whole, model, pairs)
        assert halfway[place][fewer] == pytest.approx(moved, abs=1e-6)
    assert all(torch.equal(value, whole.state_dict()[name]) for name, value in model.state_dict().items())
    assert surgery.rungs_halfway([surgery.of_heads(3)]) is halfway, "it is measured once"


@pytest.mark.parametrize("taken", [0, 1])
def test_of_the_choices_by_whole_and_by_cut_down_layers_the_one_that_moves_answers_less_is_taken(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(surgery.costs, "request", replace(surgery.request, faster=None))
    first = surgery.near(9, [])
    assert first is not None
    # Ladders on which the first choice costs most, and else every head that goes costs a little.
    turned = {place: {n: (n == first[place]) - n / 100 for n in ladder} for place, ladder in surgery.rungs.items()}
    monkeypatch.setattr(surgery, "halfway", turned)
    asked: list[dict[Place, int]] = []

    def moved(numbers: dict[Place, int]) -> float:
        asked.append(numbers)
        return 1.0 if (numbers == first) == (taken == 0) else 2.0

    monkeypatch.setattr(surgery, "divergence", moved)
    assert surgery.numbers(9) == asked[taken] != asked[1 - taken]
    assert asked[0] == first, "by whole layers"
    assert [sum(one.values()) for one in asked] == [9, 9]


def test_the_tokeniser_is_known_before_what_is_reported_on_is_answered(surgery: Surgery) -> None:
    """The text has no test split, which could not be read."""
    surgery.texts.known[FIRST_OF_DEV] = AnsweredText(["A lion sleeps."], ["一只狮子在睡觉。"])
    assert surgery.texts.tokeniser == "zh"


def test_the_first_sentences_to_compare_sizes_on_are_answered_before_others_and_never_after_them(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("heads.one_model.answered_text.FIRST_SENTENCES", 20)
    given = saved_bundle(model), {"dev": LINES[:30]}
    cpu = torch.device("cpu")
    before, after = (AnsweredSplits(*given, tmp_path / name, cpu, lambda _: None) for name in "ab")
    first = before[FIRST_OF_DEV]
    assert first.sentences == LINES[:20]
    assert after["dev"].answers[:20] == first.answers
    assert after[FIRST_OF_DEV] == first
    assert not (tmp_path / "b/first_of_dev.answers.txt").exists()


def test_what_is_read_is_drawn_from_all_of_the_text_and_ends_at_the_limit(surgery: Surgery) -> None:
    texts, train = surgery.texts, surgery.texts.splits["train"]
    drawn = texts.study(200).sentences
    assert {*drawn} < {*train} and drawn != train[: len(drawn)]
    assert texts.study(400).sentences[: len(drawn)] == drawn != texts.study(400).sentences, "as much as is asked for"
    subwords = tokens_of(drawn, texts.model.source).lengths.sum()
    assert 200 <= subwords < 230


@pytest.mark.parametrize(("most", "an_input", "limit"), [(60, 1000, 60), (1000, 15, 15 * 7)])
def test_as_many_subwords_are_read_as_the_widest_output_map_has_inputs_times_a_number(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch, most: int, an_input: int, limit: int
) -> None:
    shape = surgery.model.shape
    assert max(3 * shape.head_width, shape.feedforward) == 7
    read: list[int] = []
    monkeypatch.setattr("heads.one_model.surgery.SUBWORDS", most)
    monkeypatch.setattr("heads.one_model.surgery.SUBWORDS_AN_INPUT", an_input)

    def gram_matrices(_: Any, batches: Any, __: Any) -> dict[Any, Any]:
        read.extend(map(real, batches))
        return {}

    monkeypatch.setattr("heads.one_model.surgery.gram_matrices", gram_matrices)
    assert surgery.surgeon
    assert limit <= sum(read) < limit + 30


def real(batch: Any) -> int:
    """Source subwords of a batch, without padding."""
    return int(batch.source_mask.sum())


def test_a_folder_left_by_gates_is_not_gone_on_with(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["prune", str(model), str(model.parent / "text.en"), "-o", str(model.parent / "small"), "--keep", "9"]
    WorkingFolder(model.parent / ".small.unfinished", {"model": str(model), "text": "t", "updates": 400})
    (model.parent / ".small.unfinished/exported").mkdir()
    assert main(asked) == 1
    assert (model.parent / ".small.unfinished/exported").is_dir(), "nothing of another pruning is deleted"
    assert "was left by a pruning of another model, text, language or size, by" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "heads"), [((), 18), (("--keep", "encoder=2"), 14)])
def test_hidden_units_go_from_where_they_cost_least_with_heads_or_alone(
    model: Path, flags: tuple[str, ...], heads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load_folder(model).shape
    small, asked = model.parent / "small", whole.feedforward * 5 // 8
    given = ["prune", str(model), str(model.parent / "text.en"), "-o", str(small), "--minutes", "0", *flags]
    assert main([*given, "--feedforward", str(asked), "--format", "onnx"]) == 0
    told = capsys.readouterr().err
    assert f"heads and {asked} hidden units in an average layer are left" in told
    small.rename(model.parent / "onnx")
    assert main([*given, "--feedforward", str(asked)]) == 0
    shape = load_folder(small).shape
    assert sum(map(sum, shape.live_units.values())) == 4 * asked
    assert len({units for layers in shape.live_units.values() for units in layers}) > 1
    assert len(shape.heads()) == heads


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "The size is missing: give --vocabulary, --keep, --loss, --feedforward, --faster or --megabytes."),
        (
            ("--faster", "2", "--by", "gates"),
            "--faster does not go with --by gates: remove",
        ),
        (("--feedforward", "9", "--loss", "3"), "--feedforward does not go with --loss"),
        (("--keep", "9", "--updates", "3"), "--updates 3 is not possible: give 1 or more with --by gates, or else"),
        (("--keep", "9", "--minutes", "-1"), "--minutes -1 is not possible: give 0 or more"),
        (("--feedforward", "0"), "--feedforward 0 is not possible: give"),
        (("--feedforward", "9999"), "--feedforward 9999 is not possible: give"),
    ],
)
def test_what_cannot_be_done_is_said(
    model: Path, flags: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["prune", str(model), str(model.parent / "text.en"), "-o", str(model.parent / "small"), *flags]
    assert main(given) == 1
    said = capsys.readouterr().err
    assert told in said and "Traceback" not in said
    assert {path.name for path in model.parent.iterdir()} == {"model", "text.en"}, "before anything is done"


@pytest.mark.parametrize(
    ("layers", "average", "total"), [([9, 9], 4, 8), ([1536] * 8, 1024, 8192), ([1024, 512], 700, 1408)]
)
def test_units_are_kept_in_whole_steps_and_never_fewer_than_asked_for(
    layers: list[int], average: int, total: int
) -> None:
    assert total_of_units(layers, average) == total


@pytest.mark.parametrize(("layers", "average"), [([9, 9], 1), ([9, 9], 9), ([1536] * 8, 183), ([1536] * 8, 1530)])
def test_units_that_layers_cannot_have_are_refused(layers: list[int], average: int) -> None:
    with pytest.raises(UserError, match=f"--feedforward {average} is not possible: give "):
        total_of_units(layers, average)


@pytest.mark.slow
def test_what_the_surgeon_left_is_fine_tuned_towards_the_whole_model_and_goes_on_if_it_was_stopped(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, small = model.parent / "text.en", model.parent / "small"
    given = ["prune", str(model), str(text), "-o", str(small), "--keep", "9", "--feedforward", "70%"]
    assert main([*given, "--minutes", "0"]) == 0
    small.rename(model.parent / "at_once")
    train = fine_tuning.run_job

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fine_tuning, "run_job", stopped)
    assert main([*given, "--minutes", "0.2"]) == 130
    assert not small.exists()
    monkeypatch.setattr(fine_tuning, "run_job", train)
    monkeypatch.setattr(Surgery, "sizes", never)
    monkeypatch.setattr(Surgery, "as_fast_as_asked", never)
    assert main([*given, "--minutes", "0.2"]) == 0
    told = capsys.readouterr().err
    assert "fine-tuning for 0.2 minutes" in told
    (whole, at_once, after) = (load_folder(model.parent / name) for name in ("model", "at_once", "small"))
    assert after.shape == at_once.shape and len(after.shape.heads()) == 9
    ids = [vocabulary_of(model / "source.model").encode([line])[0] for line in LINES[:20]]
    assert far(after, whole, ids) < 0.9 * far(at_once, whole, ids)


@torch.no_grad()
def far(model: Transformer, whole: Transformer, sentences: list[Any]) -> float:
    """How far a model's probabilities are from those of the whole one, along the whole one's translations."""
    total = 0.0
    for ids in sentences:
        source = torch.tensor([[*ids, EOS]])
        mask = torch.ones_like(source, dtype=torch.bool)
        (translation,) = beam_search(whole, source, mask, beam=1, length_penalty=0.0)
        given = source, mask, torch.tensor([[BOS, *translation]])
        own, wanted = (one.projection(one(*given)).log_softmax(-1)[0] for one in (model, whole))
        total += float((wanted.exp() * (wanted - own)).sum())
    return total
