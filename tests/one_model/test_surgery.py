"""`heads prune --by surgeon`: heads go in closed form, nothing is trained, and what is told is what was lost."""

import re
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from explored_page import data_of
from heads.__main__ import main
from heads.base.files import UserError, read_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.config.trainings import TrainingSettings
from heads.model.folder import load_folder
from heads.one_model import shrinking
from heads.one_model.surgery import Surgery, total_of_units
from heads.one_model.workplace import Workplace, splits_for, splits_of
from heads.pruning.closed_form import interpolated, output_of, parts_at, picked
from heads.pruning.surgeon import refitted
from heads.training.evaluation import measured
from heads.translation.distilled import distinct
from many_lines import LINES
from model_folders import greedy

pytestmark = pytest.mark.filterwarnings("ignore:PULP_CBC_CMD", "ignore:Initializing zero-element tensors")
SETTINGS = TrainingSettings(micro_batch_tokens=2048)


def never(*_: Any) -> None:
    raise AssertionError("something was trained")


@pytest.mark.parametrize(("keep", "left"), [("encoder=3", (3, 6, 6)), ("8", (0, 0, 8))])
def test_heads_go_without_any_training_and_what_is_told_is_what_was_lost(
    model: Path, keep: str, left: tuple[int, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shrinking, "train_one", never)
    small, text = model.parent / "small", model.parent / "text.en"
    assert main(["prune", str(model), str(text), "-o", str(small), "--keep", keep, "--by", "surgeon"]) == 0
    shape = load_folder(small).shape
    found = tuple(len(shape.heads((kind,))) for kind in ("enc_self", "dec_self", "dec_enc"))
    assert sum(found) == sum(left) and (keep == "8" or found == left)
    held_out = splits_of(*distinct(LINES))["test"]
    own = sacrebleu.corpus_bleu(greedy(small, held_out), [greedy(model, held_out)]).score
    told = re.search(r"it has ([\d.]+), and 100 with all heads: ([-+][\d.]+) \(", capsys.readouterr().err)
    assert told
    assert float(told[1]) == pytest.approx(own, abs=0.06)
    assert float(told[2]) == pytest.approx(own - 100, abs=0.06)
    (shown,) = data_of(model.parent / "small.html")
    assert len(shown["models"]) == 2 and not shown["closing"]


@pytest.fixture
def surgery(model: Path, tmp_path: Path) -> Surgery:
    """The surgery of all heads, whose sentences to read and to compare losses on are the same."""
    place, cpu = Workplace(tmp_path / "place", {}), torch.device("cpu")
    place.lay_out(model)
    splits = splits_for(model, LINES, 1000, never)
    place.answer({**splits, "dev": splits["train"]}, cpu, lambda _: None)
    return Surgery(place, (*ATTENTIONS, *FEEDFORWARDS), cpu, lambda _: None)


def test_the_model_that_is_written_has_the_heads_picked_and_output_maps_refitted(
    surgery: Surgery, tmp_path: Path
) -> None:
    surgery.smaller(9, None, tmp_path / "small")
    small = load_folder(tmp_path / "small")
    picked_numbers = picked({place: one for place, one in surgery.ladders.items() if place[0] in ATTENTIONS}, 9)
    assert len(small.shape.heads()) == sum(picked_numbers.values()) == 9
    rows = read_tsv(tmp_path / "small/heads.tsv")
    parts = parts_at(small, ATTENTIONS)
    for (kind, layer), what in surgery.surgeon.maps.items():
        if kind in FEEDFORWARDS:
            assert output_of(parts_at(small, [kind])[kind, layer])[1] == what.groups
            continue
        kept = [row["open"] == "1" for row in rows if (row["attention"], row["layer"]) == (kind, str(layer))]
        numbers = [head for head, stays in enumerate(kept) if stays]
        assert numbers == surgery.surgeon.kept((kind, layer), picked_numbers[kind, layer])
        output, _ = output_of(parts[kind, layer])
        torch.testing.assert_close(output.weight.T.double(), refitted(what, numbers), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_ladders_tell_what_each_layer_loses_by_the_models_loss(surgery: Surgery) -> None:
    before = {name: value.clone() for name, value in surgery.model.state_dict().items()}
    assert list(surgery.ladders) == [
        *((kind, layer) for layer in (0, 1) for kind in ("enc_self", "enc_ffn")),
        *((kind, layer) for layer in (0, 1) for kind in ("dec_self", "dec_enc", "dec_ffn")),
    ]
    pairs = surgery.pairs("dev")
    whole = measured(surgery.model, pairs, None, SETTINGS, torch.device("cpu"))[0]
    for place, ladder in surgery.ladders.items():
        numbers, units = list(ladder), surgery.surgeon.maps[place].groups
        if place[0] in FEEDFORWARDS:
            assert numbers[0] == -(-units // 8) and numbers == sorted(numbers) and numbers[-1] == units
        else:
            assert numbers == [0, 1, 2, 3]
        assert ladder[units] == 0
        with surgery.surgeon.cut(place, numbers[1]):
            now = measured(surgery.model, pairs, None, SETTINGS, torch.device("cpu"))[0]
        assert ladder[numbers[1]] == pytest.approx(now - whole, abs=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in surgery.model.state_dict().items())


def test_what_is_read_ends_at_the_limit_and_is_drawn_from_all_of_the_text(
    surgery: Surgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr("heads.one_model.surgery.STUDIED", 30)
    monkeypatch.setattr("heads.one_model.surgery.output_maps", lambda _, batches, __: read.extend(map(real, batches)))
    assert surgery.surgeon
    assert 30 <= sum(read) < 60


def real(batch: Any) -> int:
    """Source subwords of a batch, without padding."""
    return int(batch.source_mask.sum())


def test_a_folder_left_by_gates_is_not_gone_on_with(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["prune", str(model), str(model.parent / "text.en"), "-o", str(model.parent / "small"), "--keep", "9"]
    Workplace(model.parent / ".small.unfinished", {"model": str(model), "text": "t", "updates": 400})
    assert main([*asked, "--by", "surgeon"]) == 1
    assert "was left by a pruning of another model, text, language, way or number" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "heads"), [((), 18), (("--keep", "encoder=2"), 14)])
def test_hidden_units_go_from_where_they_cost_least_with_heads_or_alone(
    model: Path, flags: tuple[str, ...], heads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load_folder(model).shape
    small, asked = model.parent / "small", whole.feedforward * 5 // 8
    given = ["prune", str(model), str(model.parent / "text.en"), "-o", str(small), "--by", "surgeon", *flags]
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
        ((), "The size is missing: give --keep, --loss or, with --by surgeon, --feedforward."),
        (("--feedforward", "9"), "--feedforward needs --by surgeon"),
        (("--feedforward", "9", "--by", "surgeon", "--loss", "3"), "goes with --keep, but not with --loss"),
        (("--feedforward", "0", "--by", "surgeon"), "--feedforward 0 is not possible: give"),
        (("--feedforward", "9999", "--by", "surgeon"), "--feedforward 9999 is not possible: give"),
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


def test_between_measured_rungs_losses_lie_on_lines() -> None:
    found = interpolated({8: 0.0, 4: 1.0, 2: 5.0}, 1)
    assert found == {8: 0.0, 7: 0.25, 6: 0.5, 5: 0.75, 4: 1.0, 3: 3.0, 2: 5.0}
    assert list(interpolated({8: 0.0, 4: 1.0, 1: 4.0}, 2)) == [8, 6, 4, 2]


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
