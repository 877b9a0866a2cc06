"""Speed with a fake clock: which model is timed when, and what is computed from the seconds."""

import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest
import torch
import yaml
from torch import nn

import heads.training.devices
from heads.__main__ import main
from heads.analysis.speed import Contestant, compare, ending_after, rounds, search, source_batches, summary, time_on
from heads.base.columns import SPEED_COLUMNS
from heads.base.files import UserError, read_tsv, write_text
from heads.base.provenance import recorded
from heads.cli import speed as command
from heads.cli._signature import parser_of
from heads.config.analyses import SpeedSettings
from heads.model.folder import load_folder
from heads.model.transformer import Transformer
from heads.training.devices import label_of, pick_each
from heads.translation.beam_search import beam_search
from model_folders import OPEN, Experiment, opinionated, write_experiment

CPU = torch.device("cpu")
SETTINGS = SpeedSettings(batch_sizes=(1, 4), sentences=7, repeats=3, beam=2, length_penalty=0.7)
WORDS = ["--settings", "{}", "--baseline", "b", "--runs", "r", "--source", "t", "--out", "o"]
SENTENCE = (torch.tensor([[5, 9, 30, 2]]), torch.ones(1, 4, dtype=torch.bool))


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")


class Watch:
    """A clock that stands still until something costs time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def steps_of(watch: Watch) -> Callable[..., None]:
    """A hook that makes every decoding step cost a second."""

    def hook(_module: nn.Module, _inputs: object, _logits: object) -> None:
        watch.now += 1

    return hook


def test_every_round_times_every_model_and_every_second_round_goes_backwards() -> None:
    watch, order = Watch(), []
    costs = {"a": 1.0, "b": 10.0, "c": 100.0}

    def work(name: str) -> Callable[[], None]:
        def act() -> None:
            order.append(name)
            watch.now += costs[name]

        return act

    seconds = rounds({name: work(name) for name in costs}, 3, watch)
    assert "".join(order) == "abccbaabc"
    assert seconds == {name: [cost] * 3 for name, cost in costs.items()}


def test_rates_and_ratios_are_what_one_gets_by_hand() -> None:
    found = summary([2.0, 1.0, 4.0], [4.0, 3.0, 6.0], examples=8)
    variance = ((4 - 14 / 3) ** 2 + (8 - 14 / 3) ** 2 + (2 - 14 / 3) ** 2) / 2
    assert found == {
        "examples_per_second": pytest.approx((4 + 8 + 2) / 3),
        "examples_per_second_sd": pytest.approx(variance**0.5),
        "ratio": 2.0,
        "ratio_low": 1.5,
        "ratio_high": 3.0,
    }


@pytest.mark.parametrize("eos", [-30.0, 0.0, 30.0])
@pytest.mark.parametrize("subwords", [0, 1, 6])
def test_a_model_ends_where_it_is_told_and_is_itself_again_afterwards(eos: float, subwords: int) -> None:
    model = opinionated(seed=3, eos=eos)
    source = torch.tensor([[5, 9, 30, 2], [7, 8, 2, 0]])
    free = beam_search(model, source, source > 0, beam=3, length_penalty=0.6)
    with ending_after(model, subwords):
        told = beam_search(model, source, source > 0, beam=3, length_penalty=0.6)
    assert [len(ids) for ids in told] == [subwords, subwords]
    assert beam_search(model, source, source > 0, beam=3, length_penalty=0.6) == free


def test_batches_hold_each_sentence_once_and_ask_for_the_unpruned_models_length(experiment: Experiment) -> None:
    model = opinionated(seed=1)
    tokens = experiment.tokens()
    batches = source_batches(tokens, model, SETTINGS, 4, CPU)
    assert [len(batch.source) for batch in batches] == [4, 3]
    found = [ids[mask].tolist()[:-1] for b in batches for ids, mask in zip(b.source, b.mask, strict=True)]
    assert sorted(found) == sorted(tokens[i].tolist() for i in range(7))
    assert [len(ids) for ids in found] == sorted(len(ids) for ids in found)
    for batch in batches:
        rows = zip(batch.source, batch.mask, strict=True)
        alone = [beam_search(model, s[None, m], m[None, m], beam=2, length_penalty=0.7)[0] for s, m in rows]
        assert abs(batch.subwords - mean(map(len, alone))) <= 0.5
    with pytest.raises(UserError, match="has 8, but there are only 7 sentences"):
        source_batches(tokens, model, SETTINGS, 8, CPU)


def test_models_that_end_willingly_and_unwillingly_are_given_the_same_work(experiment: Experiment) -> None:
    watch = Watch()
    contestants = {name: Contestant(opinionated(seed=2, eos=eos), 1.0, None) for name, eos in (("a", -9), ("b", 9))}
    for contestant in contestants.values():
        contestant.model.projection.register_forward_hook(steps_of(watch))
    lengths = [len(ids) for one in contestants.values() for ids in search(one.model, *SENTENCE, SETTINGS)]
    assert lengths[0] > lengths[1]
    rows = compare(contestants, experiment.tokens(), SETTINGS, CPU, watch)
    assert [(row["run"], row["batch_sentences"]) for row in rows] == [("a", 1), ("b", 1), ("a", 4), ("b", 4)]
    assert all(row["ratio"] == row["ratio_low"] == row["ratio_high"] == 1 for row in rows)
    for size in (1, 4):
        batches = source_batches(experiment.tokens(), contestants["a"].model, SETTINGS, size, CPU)
        steps = sum(batch.subwords + 1 for batch in batches)
        rates = [row["examples_per_second"] for row in rows if row["batch_sentences"] == size]
        assert rates == pytest.approx([7 / steps] * 2)


def a_second_a_head(monkeypatch: pytest.MonkeyPatch, watch: Watch, *, slowly: float = 1.0) -> None:
    """Make each decoding step cost a second per head, `slowly` times that on a device with a number."""

    def load(folder: Path) -> Transformer:
        model = load_folder(folder)
        heads = len(model.shape.heads())

        def hook(_module: nn.Module, _inputs: object, _logits: object) -> None:
            watch.now += heads

        model.projection.register_forward_hook(hook)
        return model

    def clock(device: torch.device) -> Callable[[], float]:
        return lambda: watch.now * (1.0 if device.index is None else slowly)

    monkeypatch.setattr("heads.analysis.speed.load_model", load)
    monkeypatch.setattr("heads.analysis.speed.clock_of", clock)


def steps_needed(experiment: Experiment, size: int) -> int:
    """Decoding steps of all batches: one per subword and one for EOS."""
    model = load_folder(experiment.baseline)
    return sum(batch.subwords + 1 for batch in source_batches(experiment.tokens(), model, SETTINGS, size, CPU))


def test_the_command_writes_speed_size_heads_and_memory_of_every_model(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_second_a_head(monkeypatch, Watch())
    settings = {"speed": {**SETTINGS.model_dump(), "batch_sizes": [4]}}
    (tmp_path / "speed.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    words = ["speed", "--settings", tmp_path / "speed.yaml", "--baseline", experiment.baseline, "--device", "cpu"]
    words += ["--runs", experiment.pruned, "--source", experiment.bpe / "test.source.safetensors"]
    assert main([*map(str, words), "--threads", "1", "--out", str(tmp_path / "speed.tsv")]) == 0
    write_text(tmp_path / "log", capsys.readouterr().err)
    told = recorded(tmp_path / "log")
    assert {name: told[name] for name in ("device", "threads")} == {"device": "cpu", "threads": 1}
    assert not {"seed", "processes"} & told.keys()
    unpruned, pruned = read_tsv(tmp_path / "speed.tsv")
    assert tuple(unpruned) == SPEED_COLUMNS
    assert (unpruned["run"], pruned["run"]) == ("baseline/seed-1", "pruned/all/lam-0.2/seed-1")
    left = sum(sum(layer) for layers in OPEN.values() for layer in layers)
    assert [row["heads"] for row in (unpruned, pruned)] == ["18", str(left)]
    # Each head has 2 columns of length 10 in four matrices.
    assert int(unpruned["parameters"]) - int(pruned["parameters"]) == (18 - left) * 4 * 2 * 10
    for row, folder in ((unpruned, experiment.baseline), (pruned, experiment.pruned)):
        assert float(row["disk_mb"]) == pytest.approx((folder / "model.safetensors").stat().st_size / 1e6, rel=1e-5)
        assert row["peak_memory_mb"] == "" or 50 < float(row["peak_memory_mb"]) < 5000
        facts = (row["batch_sentences"], row["sentences"], row["repeats"], row["of"])
        assert facts == ("4", "7", "3", "18")
        rate = 7 / (steps_needed(experiment, 4) * int(row["heads"]))
        assert float(row["examples_per_second"]) == pytest.approx(rate, rel=1e-5)
        ratios = [float(row[name]) for name in ("ratio", "ratio_low", "ratio_high")]
        assert ratios == pytest.approx([18 / int(row["heads"])] * 3, rel=1e-5), "above one is faster"


@pytest.mark.parametrize("has_gpu", [False, True])
def test_the_cpu_is_timed_always_and_a_gpu_as_well_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, *, has_gpu: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "of some make")
    monkeypatch.setattr(heads.training.devices, "pick", lambda name, threads: torch.device(name))
    given = parser_of(command.run, "heads", "").parse_args(WORDS)
    devices = pick_each(given.device, given.threads)
    assert [device.type for device in devices] == ["cpu", "cuda"][: 1 + has_gpu]
    assert label_of(*devices) == "cpu" + ", cuda of some make" * has_gpu


def test_models_are_compared_with_the_unpruned_one_of_the_same_device(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_second_a_head(monkeypatch, Watch(), slowly=4)
    left = sum(sum(layer) for layers in OPEN.values() for layer in layers)
    folders = {"baseline": experiment.baseline, "pruned": experiment.pruned}
    devices = [CPU, torch.device("cpu", 0)]
    source = experiment.bpe / "test.source.safetensors"
    rows = time_on(devices, folders, source, SETTINGS.model_copy(update={"batch_sizes": (4,)}))
    assert [row["run"] for row in rows] == ["baseline", "pruned"] * 2
    assert [row["ratio"] for row in rows] == pytest.approx([1, 18 / left] * 2)
    steps = steps_needed(experiment, 4)
    rates = [7 / (steps * 18), 7 / (steps * left)]
    assert [row["examples_per_second"] for row in rows] == pytest.approx([*rates, *(rate / 4 for rate in rates)])


@pytest.mark.parametrize("devices", ["cpu cpu", "cuda:1 cpu cuda:1", "cuda cuda:0", "cuda:1 cuda", "auto cpu"])
def test_a_device_that_is_or_may_be_named_twice_is_an_error(devices: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that asks for a GPU that it holds itself would wait for ever."""
    assert main(["speed", *WORDS, "--device", *devices.split()]) == 1
    said = capsys.readouterr().err
    assert re.match(f"error: --device {devices} (names|may name) a device twice: name [^\n]*\n$", said)


def test_a_run_named_twice_is_an_error(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"batch_sizes": [1], "sentences": 1, "repeats": 2, "beam": 1, "length_penalty": 0.0}
    (tmp_path / "speed.yaml").write_text(yaml.safe_dump({"speed": settings}), encoding="utf-8")
    folder = str(experiment.baseline)
    words = ["speed", "--settings", str(tmp_path / "speed.yaml"), "--baseline", folder, "--runs", folder]
    assert main([*words, "--source", folder, "--out", str(tmp_path / "speed.tsv")]) == 1
    assert "name a run twice" in capsys.readouterr().err
