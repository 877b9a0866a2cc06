"""What heads and hidden units cost: bytes as the files have them, time as it is measured, and models within limits."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from heads.__main__ import main
from heads.base.files import UserError
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.interop.family import Translation
from heads.interop.to_ctranslate2 import CTRANSLATE2
from heads.model.encoder import Encoder
from heads.model.folder import load_folder
from heads.one_model import costs as costs_module
from heads.one_model.answered_text import AnsweredSplits, splits_for
from heads.one_model.costs import Costs, refuse_uniform, weights_in
from heads.one_model.request import PruningRequest
from heads.one_model.surgery import Surgery
from heads.one_model.timed_models import Timed, next_to_time
from many_lines import LINES
from model_folders import Experiment
from slow_ones import slow_but

pytestmark = pytest.mark.filterwarnings("ignore:PULP_CBC_CMD", "ignore:Initializing zero-element tensors")
CPU = torch.device("cpu")
KINDS = (*ATTENTIONS, *FEEDFORWARDS)
READ: dict[tuple[str, ...], dict[str, Any]] = {}
"""What the surgeon found in the text, by the kinds of heads and units that may go."""


@pytest.fixture(scope="module")
def texts(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> AnsweredSplits:
    """A text whose sentences to read and to compare losses on are the same, answered once."""
    place = tmp_path_factory.mktemp("texts")
    export(saved_bundle(experiment.baseline), place / "model")
    bundle = saved_bundle(place / "model")
    splits = splits_for(bundle, LINES, 1000, lambda *_: None)
    same = {"train": splits["train"], "dev": splits["train"], "test": splits["test"]}
    return AnsweredSplits(bundle, same, place / "texts", CPU, lambda _: None)


def surgery_of(texts: AnsweredSplits, **asked: Any) -> Surgery:
    """The surgery that is asked for; the surgeon reads once for all tests in which the same may go."""
    request = replace(PruningRequest("all", None, None, 1, "surgeon"), **asked)
    surgery = Surgery(Costs(texts.model, texts, request))
    if (kinds := surgery.costs.kinds) not in READ:
        READ[kinds] = {"surgeon": surgery.surgeon, "ladders": surgery.ladders}
    vars(surgery).update(READ[kinds])
    return surgery


@pytest.mark.parametrize("form", slow_but(["folder", "ctranslate2"], ["folder", "onnx", "ctranslate2"]))
def test_what_heads_and_units_weigh_is_what_files_lose(texts: AnsweredSplits, tmp_path: Path, form: str) -> None:
    """Compared are two smaller models, as files have beginnings of different lengths for a whole and a pruned one."""
    pytest.importorskip({"onnx": "onnxscript", "ctranslate2": "ctranslate2"}.get(form, "torch"))
    surgery = surgery_of(texts, megabytes=1.0, format=form)
    costs, sizes, told = surgery.costs, [], []
    assert costs.kinds == KINDS
    for name, units in (("one", 8), ("two", 3)):
        numbers = {where: (units if where[0] in FEEDFORWARDS else 1 + (name == "one")) for where in surgery.rungs}
        small = surgery.of_numbers(numbers)
        export(replace(texts.model, model=small, place=tmp_path), tmp_path / name, form)
        sizes.append(weights_in(tmp_path / name))
        told.append(1e6 * costs.megabytes_of(small))
    lost = sizes[0] - sizes[1]
    # A graph names a constant for each matrix, whatever its size; numbers of heads and units are in its shapes.
    assert told[0] - told[1] == pytest.approx(lost, rel=0.35 if form == "onnx" else 0.05)
    assert lost > 1000


def test_heads_weigh_nothing_in_a_format_that_keeps_zeros_in_their_place(texts: AnsweredSplits) -> None:
    pytest.importorskip("ctranslate2")
    for form, keep, saves in (("folder", 9, True), ("ctranslate2", 9, False), ("ctranslate2", None, True)):
        costs = surgery_of(texts, keep=keep, megabytes=1.0, format=form).costs
        assert (costs.bytes(("dec_enc", 0)) > 0) == saves
        assert costs.bytes(("enc_ffn", 0)) > 0


def test_heads_save_nothing_where_layers_that_differ_already_have_one_number_or_zeros_stay(
    texts: AnsweredSplits,
) -> None:
    even, uneven = texts.model.model, copy.deepcopy(texts.model.model)
    uneven.shape = replace(even.shape, live_heads={**even.shape.live_heads, "dec_enc": ((0, 1), (1,))})
    for form, saving in (("folder", 2), ("onnx", 2), ("ctranslate2", 1), ("huggingface", 0), ("marian", 0), ("npz", 0)):
        request = PruningRequest("all", None, None, 1, "surgeon", faster=1.3, format=form)
        whole = [Costs(replace(texts.model, model=model), texts, request) for model in (even, uneven)]
        assert [costs.kinds for costs in whole] == [KINDS] * saving + [FEEDFORWARDS] * (2 - saving)


def counted(costs: Costs, of: Mapping[str, float]) -> Callable[..., Any]:
    """Speeds of models that take so much time for each head or unit of a kind, and 1 for all else."""

    def time(model: Encoder) -> float:
        shape = model.shape
        heads = sum(of[kind] * sum(map(len, shape.live_heads[kind])) for kind in ATTENTIONS)
        return 1 + heads + sum(of[kind] * sum(shape.units(kind)) for kind in FEEDFORWARDS)

    def speeds(models: Mapping[str, Encoder], *_: int, **__: int) -> dict[str, tuple[float, float, float]]:
        return {name: (time(costs.model) / time(model),) * 3 for name, model in models.items()}

    return speeds


TIMES = {"enc_self": 0.1, "dec_self": 0.3, "dec_enc": 0.2, "enc_ffn": 0.01, "dec_ffn": 0.02}


def test_the_time_of_a_head_or_unit_is_what_is_saved_without_it(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = surgery_of(texts, faster=1.5).costs
    monkeypatch.setattr(costs, "speeds", counted(costs, TIMES))
    shape = costs.model.shape
    whole = (
        1
        + sum(6 * TIMES[kind] for kind in ATTENTIONS)
        + sum(TIMES[kind] * sum(shape.units(kind)) for kind in FEEDFORWARDS)
    )
    assert {kind: costs.time((kind, 0)) for kind in KINDS} == {
        kind: pytest.approx(each / whole) for kind, each in TIMES.items()
    }


def test_speed_is_the_median_of_rounds_and_neither_it_nor_its_interval_counts_the_first(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs, asked = surgery_of(texts, faster=1.5).costs, []

    def seconds(work: Mapping[str, object], number: int, _clock: object) -> dict[str, list[float]]:
        asked.append((list(work), number))
        return {"the original model": [90.0, 4.0, 9.0, 6.0], "small": [1.0, 2.0, 3.0, 4.0]}

    monkeypatch.setattr(costs_module, "rounds", seconds)
    assert costs.speeds({"small": costs.model}, repeats=3) == {"small": (2.0, 1.5, 3.0)}
    assert asked == [(["the original model", "small"], 4)]


@pytest.mark.parametrize("slower_than_expected", [1.0, 1.15])
def test_a_model_that_is_to_be_faster_is_timed_and_cut_down_until_it_is(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch, slower_than_expected: float
) -> None:
    surgery = surgery_of(texts, faster=1.5)
    speeds, timed = counted(surgery.costs, TIMES), []

    def measured(models: Mapping[str, Encoder], *_: int, **__: int) -> dict[str, tuple[float, float, float]]:
        found: dict[str, tuple[float, float, float]] = speeds(models)
        if "smaller" in models:
            found = {name: (ratios[0] / slower_than_expected,) * 3 for name, ratios in found.items()}
            timed.append(found["smaller"][0])
        return found

    monkeypatch.setattr(surgery.costs, "speeds", measured)
    kept = speeds({"": surgery.as_fast_as_asked(0)})[""][0] / slower_than_expected
    assert (timed[0] < 1.5) == (slower_than_expected > 1) == (len(timed) > 1)
    assert kept == min(speed for speed in timed if speed >= 1.5), "the largest that is fast enough"
    assert kept < 1.5 * 1.05, "no more than needed"


@pytest.mark.parametrize("larger", [1.21, 1.19])
def test_a_model_that_is_much_faster_than_asked_for_gives_way_to_a_larger_one_that_is_fast_enough(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch, larger: float
) -> None:
    surgery, made = surgery_of(texts, faster=1.2), list[Encoder]()
    speeds = counted(surgery.costs, TIMES)

    def measured(models: Mapping[str, Encoder], *_: int, **__: int) -> dict[str, tuple[float, float, float]]:
        if "smaller" not in models:
            found: dict[str, tuple[float, float, float]] = speeds(models)
            return found
        made.append(models["smaller"])
        return {"smaller": (1.6 if len(made) == 1 else larger,) * 3}

    monkeypatch.setattr(surgery.costs, "speeds", measured)
    found = surgery.as_fast_as_asked(0)
    first, second, *others = (speeds({"": model})[""][0] for model in made)
    assert first > second, "what is left is more"
    assert found is made[larger >= 1.2]
    assert (len(others) > 0) == (larger < 1.2)
    assert all(first > other > second for other in others), "between the two"


def test_the_next_model_to_time_saves_what_the_last_one_lacks_or_lies_between_too_slow_and_too_fast() -> None:
    def timed(more: float, speed: float) -> Timed:
        return Timed(more, speed, {}, Mock())

    half, third, quarter = timed(1.0, 2.0), timed(2.5, 1.5), timed(0.8, 4 / 3)
    wanted = 1 - 1 / (1.4 * 1.025)
    assert next_to_time([half], 1.4) == pytest.approx(1.0 * wanted / 0.5)
    assert next_to_time([quarter], 1.4) == pytest.approx(0.8 * wanted / 0.25)
    between = 0.8 + (1.0 - 0.8) * (wanted - 0.25) / (0.5 - 0.25)
    assert next_to_time([half, quarter], 1.4) == next_to_time([quarter, half], 1.4) == pytest.approx(between)
    assert next_to_time([quarter, third, half], 1.4) == pytest.approx(between), "the nearest of those fast enough"
    noisy = timed(1.2, 1.1)
    assert next_to_time([half, noisy], 1.4) == pytest.approx(1.2 * wanted / (1 - 1 / 1.1))


def test_what_is_too_small_or_too_fast_is_refused_with_what_is_possible(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    surgery = surgery_of(texts, megabytes=0.001)
    with pytest.raises(UserError, match=r"can take 0\.\d MB at best, with no limit on heads and units: ask for less"):
        surgery.as_fast_as_asked(0)
    surgery = surgery_of(texts, faster=9.0)
    monkeypatch.setattr(surgery.costs, "speeds", counted(surgery.costs, TIMES))
    with pytest.raises(UserError, match=r"can take 0\.\d MB and about [2-8]\.\d times as fast at best"):
        surgery.as_fast_as_asked(0)


def test_a_model_that_stays_slower_than_expected_is_refused_by_what_was_timed(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    surgery = surgery_of(texts, faster=1.5)
    speeds = counted(surgery.costs, TIMES)
    monkeypatch.setattr(
        surgery.costs,
        "speeds",
        lambda models, *_, **__: {"smaller": (1.02,) * 3} if "smaller" in models else speeds(models),
    )
    with pytest.raises(
        UserError, match=r"--faster 1\.5 was not reached: timed, a model is 1\.02 times as fast, and none"
    ):
        surgery.as_fast_as_asked(0)


def padded(costs: Costs) -> Callable[..., Any]:
    """Speeds of models in CTranslate2, where each layer takes time for as many heads as the widest of its stack has."""

    def time(model: Encoder) -> float:
        heads = model.shape.live_heads
        stacks = [[len(layer) for kind in kinds for layer in heads[kind]] for kinds in STACKS]
        return 1 + sum(0.2 * max(stack) * len(stack) for stack in stacks)

    return lambda models, *_, **__: {name: (time(costs.model) / time(model),) * 3 for name, model in models.items()}


STACKS = (("enc_self",), ("dec_self", "dec_enc"))


@pytest.fixture
def padding(texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch) -> Surgery:
    """The surgery of a model that is to be 1.2 times as fast in CTranslate2."""
    pytest.importorskip("ctranslate2")
    surgery = surgery_of(texts, faster=1.2, format="ctranslate2")
    monkeypatch.setattr(surgery.costs, "speeds", padded(surgery.costs))
    return surgery


def test_in_ctranslate2_heads_go_equally_from_all_layers_of_a_stack_and_save_time(padding: Surgery) -> None:
    for kind in ATTENTIONS:
        assert padding.costs.time((kind, 0)) == pytest.approx(0.2 / (1 + 0.2 * 18))
    heads = padding.as_fast_as_asked(0).shape.live_heads
    left = [{len(layer) for kind in kinds for layer in heads[kind]} for kinds in STACKS]
    assert all(len(numbers) == 1 for numbers in left)
    assert 6 < sum(len(layer) for kind in ATTENTIONS for layer in heads[kind]) < 18, "no more than needed"


def test_where_heads_go_together_each_size_has_the_next_number_that_can_be(padding: Surgery) -> None:
    """Two layers of the encoder, and four attentions of the decoder, lose heads together: 11 cannot be left."""
    told = [int(line.split(" heads")[0]) for line in padding.sizes()]
    assert [number - least for number, least in zip(told, (16, 14, 11, 9), strict=True)] == [0, 0, 1, 1]


@pytest.mark.parametrize(("asked", "left"), [(12, 12), (11, 12), (9, 10), (17, 16), (1, 2)])
def test_a_number_of_heads_goes_equally_from_all_layers_if_that_is_asked_for_and_then_saves_room(
    texts: AnsweredSplits, asked: int, left: int
) -> None:
    surgery = surgery_of(texts, keep=asked, uniform=True, format="ctranslate2")
    found = surgery.numbers(asked)
    numbers = [{number for place, number in found.items() if place[0] in kinds} for kinds in STACKS]
    assert [len(of_stack) for of_stack in numbers] == [1, 1]
    assert sum(found.values()) == left
    assert surgery.costs.counts(("dec_enc", 0))


@pytest.mark.parametrize(("asked", "left"), [(2, 6), (8, 6), (16, 12)])
def test_where_all_layers_lose_equally_many_heads_neither_all_nor_none_are_left(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch, asked: int, left: int
) -> None:
    monkeypatch.setattr(Costs, "alike", (ATTENTIONS,))
    assert sum(surgery_of(texts, keep=asked).numbers(asked).values()) == left


def test_layers_cannot_lose_equally_many_heads_where_that_saves_nothing_or_they_differ(texts: AnsweredSplits) -> None:
    uneven = copy.deepcopy(texts.model.model)
    uneven.shape = replace(uneven.shape, live_heads={**uneven.shape.live_heads, "dec_enc": ((0, 1), (1,))})
    for form, model, told in (
        *((form, texts.model.model, "is for a format that fills up layers") for form in ("folder", "onnx", "marian")),
        ("ctranslate2", uneven, "as layers of the model differ in their number of heads: leave it out."),
    ):
        request = PruningRequest("all", 9, None, 1, "surgeon", format=form, uniform=True)
        with pytest.raises(UserError, match=told):
            refuse_uniform(replace(texts.model, model=model), request)
        refuse_uniform(replace(texts.model, model=model), replace(request, uniform=False))
    refuse_uniform(texts.model, replace(request, format="ctranslate2"))


def test_in_a_format_with_one_width_all_layers_keep_as_many_units(
    texts: AnsweredSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = texts.model.shape.feedforward
    free = surgery_of(texts, units=whole * 5 // 8).as_fast_as_asked(0)
    assert len({units for kind in FEEDFORWARDS for units in free.shape.units(kind)}) > 1
    monkeypatch.setattr(Costs, "one_width", (("enc_ffn",), ("dec_ffn",)))
    one = surgery_of(texts, units=whole * 5 // 8).as_fast_as_asked(0)
    for kind in FEEDFORWARDS:
        assert len({*one.shape.units(kind)}) == 1
    total = sum(units for kind in FEEDFORWARDS for units in one.shape.units(kind))
    assert 0 <= total - 4 * (whole * 5 // 8) <= 1


@pytest.mark.slow
def test_the_weights_take_no_more_than_asked_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, small = model.parent / "text.en", model.parent / "small"
    whole = weights_in(model) / 1e6
    asked = ["prune", str(model), str(text), "-o", str(small), "--minutes", "0", "--megabytes", f"{0.8 * whole:.4f}"]
    assert main(asked) == 0
    assert 0.75 * whole < weights_in(small) / 1e6 < 0.805 * whole
    told = capsys.readouterr().err
    assert f"Its weights take {weights_in(small) / 1e6:.1f} MB, those of the whole model {whole:.1f}." in told
    assert len([line for line in told.splitlines() if "times as fast, " in line]) == 4
    assert len(load_folder(small).shape.heads()) < 18


def test_ctranslate2_is_timed_on_translations_of_one_length(
    texts: AnsweredSplits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    (model, vocabularies), translator = texts.model.translates(), ctranslate2.Translator
    found = list[tuple[list[str], int]]()
    batches = surgery_of(texts, faster=1.2, format="ctranslate2").costs.batches(16, texts.model)

    class Listening:
        """Theirs, whose sources and lengths of translations are noted."""

        def __init__(self, *given: Any, **how: Any) -> None:
            self.own = translator(*given, **how)

        def translate_batch(self, sources: list[list[str]], **how: Any) -> None:
            lengths = [len(result.hypotheses[0]) for result in self.own.translate_batch(sources, **how)]
            found.extend(zip(sources, lengths, strict=True))

    monkeypatch.setattr(ctranslate2, "Translator", Listening)
    assert CTRANSLATE2.engine and CTRANSLATE2.engine.reads(model.shape, None)
    CTRANSLATE2.engine.translating(
        Translation(model, vocabularies, (), (1, 0.0), quantization="int8"), batches, tmp_path
    )()
    expected = [
        ([vocabularies[0].subword(int(i)) for i in ids[real][:-1]], batch.subwords)
        for batch in batches
        for ids, real in zip(batch.source, batch.mask, strict=True)
    ]
    assert found == expected
    assert len({length for _, length in found}) > 1
