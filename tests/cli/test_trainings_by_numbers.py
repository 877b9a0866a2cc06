"""Each training command by its numbers: its start, the data, seed, schedule and section of the settings that it
follows, and what it leaves behind.

A learning rate of zero keeps the initial weights bit for bit, so losses are those of a known model.
"""

from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from torch import Tensor

from few_heads import KNOWN
from heads.base.files import read_json, read_jsonl, read_lines, read_tsv, write_lines, write_tsv
from heads.base.names import ATTENTIONS
from heads.model.checkpoint import load_tensors
from heads.model.folder import load_folder
from heads.model.head_removal import head_rows, prune, pruned_shape
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from known_experiment import (
    EVERY_KIND,
    LEFT,
    SUBWORDS,
    UPDATES_BEFORE,
    Known,
    known_model,
    loss,
    losses_by_smoothing,
    path_model,
    same,
    save,
    weights,
)
from known_trainings import RATE, Train
from slow_ones import slow_but

SMALL = ModelShape(12, 4, 7, 0.0, pre_norm=True, source_subwords=SUBWORDS["source"], target_subwords=SUBWORDS["target"],
                   original_heads=3, live_heads=full_heads(layers=2, heads=3))  # fmt: skip
"""The shape that the settings give."""
SECTIONS = {"baseline": "baseline", "gates": "gates", "scratch": "scratch", "selected": "selected",
            "gates_from_scratch": "scratch"}  # fmt: skip
WITH_GATES = ("gates", "gates_from_scratch")


def fresh(shape: ModelShape, seed: int) -> Transformer:
    """A randomly initialised model."""
    torch.manual_seed(seed)
    return Transformer(shape)


def length(name: str, **values: int) -> dict[str, Any]:
    """Settings that give the length of a training of this kind."""
    return {SECTIONS[name]: values}


def expected_start(known: Known, name: str, seed: int) -> Transformer:
    """The model that a training of this kind starts from."""
    if name == "baseline":
        return fresh(SMALL, seed)
    if name in ("scratch", "gates_from_scratch"):
        shape = known_model().shape
        return fresh(pruned_shape(shape, LEFT) if name == "scratch" else shape, seed)
    whole = load_folder(known.baseline)
    return whole if name == "gates" else prune(whole, LEFT)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_training_starts_from_its_own_weights_reads_its_own_data_and_says_so(
    known: Known, train: Train, name: str
) -> None:
    """One update reads all of train, so the losses on train and dev are those of the initial weights."""
    run = train(name, seed=4, **length(name, updates=1))
    start = expected_start(known, name, 4).eval()
    assert same(weights(run), start.state_dict())
    facts = read_json(run / "model.json")
    assert facts["shape"]["live_heads"] == {k: [list(x) for x in v] for k, v in start.shape.live_heads.items()}
    losses = {
        (split, smoothing): value
        for split in ("train", "dev", "test")
        for smoothing, value in losses_by_smoothing(start, known.pairs(split), (0.0, 0.1)).items()
    }
    assert len({round(value, 3) for value in losses.values()}) == 6, "one of them for another would be seen"
    assert facts["dev_loss"] == pytest.approx(losses["dev", 0.0], rel=1e-4)
    [line] = read_jsonl(run / "train.jsonl")
    assert line["dev_loss"] == pytest.approx(losses["dev", 0.0], rel=1e-4)
    if name not in WITH_GATES:
        assert line["loss"] == pytest.approx(losses["train", 0.1], rel=1e-4)
    assert facts["provenance"]["seed"] == 4


@pytest.mark.parametrize("name", slow_but(["scratch"], ["baseline", "scratch", "gates_from_scratch"]))
def test_another_seed_draws_another_model_and_the_same_seed_the_same(train: Train, name: str) -> None:
    first, again, other = (weights(train(name, seed=seed)) for seed in (1, 1, 2))
    assert same(first, again)
    drawn = [key for key, value in first.items() if value.dim() == 2]
    assert all(not torch.equal(first[key], other[key]) for key in drawn if first[key].numel())


@pytest.mark.parametrize("name", ["gates", "selected"])
def test_the_seed_also_decides_on_the_order_of_the_data(train: Train, known: Known, name: str) -> None:
    """With small batches, two updates see only a part of the text, which differs between seeds."""
    changes: dict[str, Any] = {"training": {**RATE, "batch_tokens": 30}}
    first, again, other = (weights(train(name, seed=seed, **changes)) for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)
    assert not same(first, expected_start(known, name, 1).state_dict())


@pytest.mark.parametrize(("name", "updates", "before"), [
    ("baseline", 4, 0), ("gates", 2, UPDATES_BEFORE), ("scratch", 3, 0), ("selected", 2, UPDATES_BEFORE),
    ("gates_from_scratch", 3, 0),
])  # fmt: skip
def test_a_training_is_as_long_as_its_section_says_and_goes_on_with_the_schedule_of_what_it_started_from(
    train: Train, name: str, updates: int, before: int
) -> None:
    run = train(name, training=RATE, scratch={"learning_rate_factor": 3.0})
    facts, lines = read_json(run / "model.json"), read_jsonl(run / "train.jsonl")
    assert (facts["updates"], facts["total_updates"]) == (updates, before + updates)
    assert [line["update"] for line in lines] == list(range(1, updates + 1))
    # Warm-up over five updates to the top, then the inverse square root.
    top = 0.06 if SECTIONS[name] == "scratch" else 0.02
    rates = [top * (n * 5**-1.5 if n < 5 else n**-0.5) for n in range(before + 1, before + updates + 1)]
    assert [line["learning_rate"] for line in lines] == pytest.approx(rates)


@pytest.mark.parametrize("name", slow_but(["gates"], SECTIONS))
def test_over_the_last_share_of_its_updates_the_rate_of_a_training_falls_towards_zero(train: Train, name: str) -> None:
    """The last two of five updates have two thirds and one third of their usual rate."""
    plain, falling = (
        [
            line["learning_rate"]
            for line in read_jsonl(train(name, training=RATE | decay, **length(name, updates=5)) / "train.jsonl")
        ]
        for decay in ({}, {"decay_share": 0.4})
    )
    assert falling == pytest.approx([*plain[:3], plain[3] * 2 / 3, plain[4] / 3])


def test_a_model_with_a_penalty_from_the_start_learns_in_all_its_parts_and_is_trained_as_long_as_from_scratch(
    train: Train,
) -> None:
    """Its decoder is not frozen, since it is untrained; patience is off, as it would leave gates half closed."""
    lengths: dict[str, Any] = {"scratch": {"updates": 3, "patience": 1}, "gates": {"updates": 9}}
    run = train("gates_from_scratch", training=RATE, flags={"scope": "enc_self"}, **lengths)
    start = fresh(known_model().shape, 1).state_dict()
    assert not [name for name, value in weights(run).items() if torch.equal(value, start[name])]
    assert {row["attention"] for row in read_tsv(run / "heads.tsv")} == {"enc_self"}
    assert len(read_jsonl(run / "train.jsonl")) == 3


@pytest.mark.parametrize("name", slow_but(["gates"], SECTIONS))
def test_an_average_is_that_of_the_last_states_and_of_no_more(train: Train, name: str) -> None:
    """The averaged states come from trainings of the same lengths without averaging."""
    training = {**RATE, "batch_tokens": 60}

    def after(updates: int, average: int) -> dict[str, Tensor]:
        plan = {"updates": updates, "average_last": average, "average_every": 2}
        return weights(train(name, training=training, **length(name, **plan)))

    states = [after(updates, 1) for updates in (2, 4, 6)]
    found = after(6, 2)
    for key, value in found.items():
        mean = (states[1][key].double() + states[2][key].double()) / 2
        torch.testing.assert_close(value, mean.float(), rtol=0, atol=1e-7)
    assert not same(found, states[2])


def test_the_moments_asked_for_are_kept_as_the_weights_then_were(train: Train) -> None:
    changes: dict[str, Any] = {"training": RATE}
    run = train("baseline", **changes, baseline={"checkpoint_updates": [1, 3], "average_last": 3})
    assert {path.name for path in (run / "checkpoints").iterdir()} == {
        f"checkpoint-0000000{n}.safetensors" for n in (1, 3)
    }
    for update in (1, 3):
        checkpoint = load_tensors(run / f"checkpoints/checkpoint-0000000{update}.safetensors")[0]
        assert same(checkpoint, weights(train("baseline", **changes, baseline={"updates": update})))
        assert not same(checkpoint, weights(run))


@pytest.mark.parametrize(("name", "patience", "updates"), [("baseline", 2, 3), ("scratch", 1, 2), ("baseline", 0, 6)])
def test_patience_ends_a_training_that_gets_no_better_and_its_moments_stay_unkept(
    train: Train, name: str, patience: int, updates: int
) -> None:
    """At a learning rate of zero nothing improves after the first evaluation."""
    changes: dict[str, Any] = {name: {"updates": 6, "patience": patience}}
    if name == "baseline":
        changes[name]["checkpoint_updates"] = [2, 5]
    run = train(name, **changes)
    assert read_json(run / "model.json")["updates"] == updates
    assert len(read_jsonl(run / "train.jsonl")) == updates
    if name == "baseline":
        assert len(list((run / "checkpoints").iterdir())) == 1 + (updates > 5)


@pytest.mark.parametrize(("count", "longest"), [(1, 20), (6, 20), (6, 5)])
def test_dev_bleu_is_of_the_first_dev_sentences_short_enough_each_against_its_own_reference(
    known: Known, train: Train, count: int, longest: int
) -> None:
    told = {"dev_bleu_sentences": count, "max_subwords": longest}
    run = train("selected", selected={"updates": 1}, training=told)
    references, sources = read_lines(known.text("dev", "target")), known.ids("dev", "source")
    short = [n for n, pair in enumerate(known.pairs("dev")) if max(map(len, pair)) <= longest][:count]
    assert len(short) == count or 1 < len(short) < len(sources)
    right = [known.right("dev")[number] for number in short]
    score = sacrebleu.corpus_bleu(right, [[references[number] for number in short]]).score
    assert read_json(run / "model.json")["dev_bleu"] == pytest.approx(score, abs=0.006)
    assert (longest == 5) == (short != list(range(count)))


def test_dev_bleu_is_of_greedy_search(train: Train, tmp_path: Path) -> None:
    """The likeliest first word leads to a path that is less likely overall than the other one."""
    ways = {"": {"i": 0.6, "j": 0.4}, "i": {"l": 0.4, "m": 0.3, "n": 0.3}, "j": {"": 1.0}, "l": {"o": 1.0}}
    start = save(path_model({**ways, "o": {"p": 1.0}, **{word: {"": 1.0} for word in "mnp"}}), tmp_path / "start")
    write_lines(tmp_path / "references", ["i l o p"] * 10)
    flags = {"references": tmp_path / "references"}
    run = train("gates", start=start, flags=flags, gates={"updates": 1}, training={"dev_bleu_sentences": 10})
    assert read_json(run / "model.json")["dev_bleu"] == 100.0


@pytest.mark.parametrize(("pre_norm", "dropout"), [(True, 0.0), (False, 0.25)])
def test_the_unpruned_model_has_the_sizes_of_the_settings(train: Train, dropout: float, *, pre_norm: bool) -> None:
    sizes = {"layers": 1, "heads": 5, "width": 20, "feedforward": 9, "dropout": dropout, "pre_norm": pre_norm}
    run = train("baseline", model=sizes, baseline={"updates": 1})
    shape = ModelShape(20, 4, 9, dropout, pre_norm=pre_norm, source_subwords=SUBWORDS["source"],
                       target_subwords=SUBWORDS["target"], original_heads=5,
                       live_heads=full_heads(layers=1, heads=5))  # fmt: skip
    assert ModelShape.from_dict(read_json(run / "model.json")["shape"]) == shape
    assert {name: value.shape for name, value in weights(run).items()} == {
        name: value.shape for name, value in Transformer(shape).state_dict().items()
    }


def test_a_text_is_cut_at_the_number_of_subwords_in_the_settings(known: Known, train: Train) -> None:
    """Pairs with more than five subwords on either side are left out, of train and of dev."""
    run = train("selected", selected={"updates": 1}, training={"max_subwords": 5})
    start = expected_start(known, "selected", 1).eval()
    for split, smooth, found in (
        ("train", 0.1, read_jsonl(run / "train.jsonl")[0]["loss"]),
        ("dev", 0.0, read_json(run / "model.json")["dev_loss"]),
    ):
        short = [pair for pair in known.pairs(split) if max(map(len, pair)) <= 5]
        assert 0 < len(short) < len(known.pairs(split))
        assert found == pytest.approx(loss(start, short, smooth), rel=1e-4)


@pytest.mark.parametrize("name", slow_but(["selected"], ["scratch", "selected"]))
def test_a_model_without_any_head_is_trained_as_any_other(
    known: Known, train: Train, tmp_path: Path, name: str
) -> None:
    """Its loss starts at that of its initial weights and improves, though words depend only on the word before."""
    shape = pruned_shape(known_model().shape, EVERY_KIND)
    write_tsv(tmp_path / "none.tsv", head_rows(shape), ("attention", "layer", "head", "open"))
    flags = {"heads": tmp_path / "none.tsv"}
    start = prune(known_model(), EVERY_KIND) if name == "selected" else fresh(shape, 1)
    still = train(name, flags=flags)
    assert same(weights(still), start.state_dict())
    first = read_json(still / "model.json")
    assert first["shape"]["live_heads"] == {kind: [[], []] for kind in ATTENTIONS}
    assert first["dev_loss"] == pytest.approx(loss(start.eval(), known.pairs("dev"), 0.0), rel=1e-4)
    run = train(name, flags=flags, training=RATE, **length(name, updates=12))
    moved = load_folder(run)
    assert read_json(run / "model.json")["dev_loss"] == pytest.approx(loss(moved, known.pairs("dev"), 0.0), rel=1e-4)
    losses = [line["loss"] for line in read_jsonl(run / "train.jsonl")]
    assert losses[0] == pytest.approx(loss(start, known.pairs("train"), 0.1), rel=1e-4)
    assert losses[-1] < losses[0] - 0.1


def test_all_the_known_heads_are_in_the_table_that_these_tests_prune_by() -> None:
    assert all(LEFT[kind][layer][head] for kind, layer, head in KNOWN)
    assert sum(map(sum, (layer for layers in LEFT.values() for layer in layers))) == len(KNOWN) + 4
