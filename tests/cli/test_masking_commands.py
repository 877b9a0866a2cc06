"""`ablation`, `ablation_out_of_domain`, `masking_curve` and `checkpoints` by their values: which text each reads, how
much of it, and what is masked. References beyond the configured number are nonsense, so reading too far shows."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from few_heads import HEAD_WIDTH, KNOWN
from heads.analysis.ablation import gates_without
from heads.base.files import read_tsv, write_lines, write_text, write_tsv
from heads.base.names import ATTENTIONS
from heads.model.checkpoint import save_tensors
from heads.model.head_removal import module_name
from heads.model.shape import Head
from heads.model.transformer import Transformer
from heads.text.special_ids import EOS
from heads.translation.beam_search import beam_search
from heads.translation.text_scores import bleu
from known_experiment import SETTINGS, Known, as_text, command, known_model, save

SEARCH = {"beam": 2, "length_penalty": 0.6, "batch_tokens": 200}
FIRST, SECOND = ("enc_self", 0, 0), ("enc_self", 0, 1)
"""Heads of the same layer as a known one, with little effect of their own."""
BEST = KNOWN[0]
NONSENSE = "x x x x x"
HEADS = known_model().shape.heads()
Rows = list[dict[str, str]]


def translations(sources: Sequence[list[int]], without: Collection[Head] = ()) -> list[str]:
    """The hand-made model's translations with some heads masked, one sentence at a time."""
    model, lines = known_model(), []
    for ids in sources:
        read = torch.tensor([[*ids, EOS]])
        (found,) = beam_search(
            model, read, torch.ones_like(read, dtype=torch.bool), beam=2, length_penalty=0.6,
            gates=gates_without(model, without),
        )  # fmt: skip
        lines.append(as_text(found, "target"))
    return lines


def references(path: Path, lines: Sequence[str], of: int) -> Path:
    """Write references for the first sentences of a text, and nonsense for the rest."""
    write_lines(path, [*lines, *[NONSENSE] * (of - len(lines))])
    return path


def masking(known: Known, stage: str, out: Path, split: str, wanted: Path, **changes: Any) -> dict[str, object]:
    """Flags of every command that masks heads; `changes` are the settings of its stage."""
    write_text(out / "s.yaml", yaml.safe_dump({**SETTINGS, stage: {**SEARCH, **changes}}))
    run = known.baseline
    return {
        "settings": out / "s.yaml", "model": run,
        "source": known.tokens(split, "source"), "references": wanted, "target_bpe": known.bpe / "target.model",
        "device": "cpu",
    }  # fmt: skip


def of_head(rows: Rows, head: Head) -> dict[str, float]:
    """The numbers of one head's row."""
    (row,) = (r for r in rows if (r["attention"], int(r["layer"]), int(r["head"])) == head)
    return {name: float(row[name]) for name in ("bleu", "bleu_change", "p_value")}


@pytest.fixture(scope="module")
def ablated(known: Known, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The five tables of `ablation`. Dev has the right references; those of test are the output when only the first
    head is left in a layer, so that another head is best there than on dev."""
    out = tmp_path_factory.mktemp("ablation")
    alone = translations(known.ids("test", "source")[:9], {SECOND, BEST})
    flags = masking(
        known,
        "ablation",
        out,
        "test",
        references(out / "test.txt", alone, 14),
        sentences=9,
        dev_sentences=6,
        resamples=199,
    )
    flags |= {
        "dev_source": known.tokens("dev", "source"),
        "dev_references": references(out / "dev.txt", known.right("dev")[:6], 10),
    }
    names = ("masked", "masked_dev", "alone", "alone_dev", "layers")
    command("ablation", **flags, **{name: out / f"{name}.tsv" for name in names})
    return {name: read_tsv(out / f"{name}.tsv") for name in names}


def test_each_head_is_masked_alone_on_test_and_on_dev(known: Known, ablated: dict[str, Rows]) -> None:
    sources, alone = known.ids("test", "source")[:9], translations(known.ids("test", "source")[:9], {SECOND, BEST})
    full = bleu(translations(sources), alone)["bleu"]
    assert full < 90
    for head in (FIRST, *KNOWN):
        left = bleu(translations(sources, {head}), alone)["bleu"]
        row = of_head(ablated["masked"], head)
        assert (row["bleu"], row["bleu_change"]) == pytest.approx((left, left - full), abs=2e-4)
    assert of_head(ablated["masked"], BEST)["bleu_change"] > 0 > of_head(ablated["masked_dev"], BEST)["bleu_change"]
    right = known.right("dev")[:6]
    for head in KNOWN:
        lost = bleu(translations(known.ids("dev", "source")[:6], {head}), right)["bleu"] - 100
        assert of_head(ablated["masked_dev"], head)["bleu_change"] == pytest.approx(lost, abs=2e-4)
    for head in set(HEADS) - set(KNOWN):
        assert of_head(ablated["masked_dev"], head) == pytest.approx({"bleu": 100, "bleu_change": 0, "p_value": 1})


def test_each_head_is_left_alone_in_its_layer_on_test_and_on_dev(ablated: dict[str, Rows]) -> None:
    assert of_head(ablated["alone"], FIRST)["bleu"] == pytest.approx(100)
    assert of_head(ablated["alone_dev"], FIRST)["bleu"] < 90
    for head in KNOWN:
        assert of_head(ablated["alone_dev"], head)["bleu"] == pytest.approx(100), "the others were not needed"
    assert [len(ablated[name]) for name in ("alone", "alone_dev", "masked", "masked_dev")] == [18] * 4


def test_the_head_of_a_layer_is_chosen_on_dev_and_scored_on_test_and_the_oracle_is_chosen_where_it_is_scored(
    ablated: dict[str, Rows],
) -> None:
    rows = {(row["attention"], int(row["layer"])): row for row in ablated["layers"]}
    assert len(rows) == 6
    for kind, layer, head in KNOWN:
        assert int(rows[kind, layer]["head_chosen"]) == head
    row = rows[BEST[:2]]
    assert (row["head_oracle"], row["heads"]) == (str(FIRST[2]), "3")
    assert float(row["bleu_oracle"]) == pytest.approx(100)
    for chosen, suffix in ((BEST, ""), (FIRST, "_oracle")):
        on_test = of_head(ablated["alone"], chosen)
        assert [float(row[f"{name}{suffix}"]) for name in on_test] == list(on_test.values())
    assert float(row["bleu_change"]) == pytest.approx(0, abs=1e-6)
    assert float(row["bleu_change_oracle"]) > 10


def test_the_other_domain_is_translated_as_far_as_the_settings_say(known: Known, tmp_path: Path) -> None:
    wanted = references(tmp_path / "other.txt", known.right("train")[:12], 40)
    flags = masking(known, "ablation", tmp_path, "train", wanted, sentences=12, dev_sentences=3, resamples=199)
    command("ablation_out_of_domain", **flags, masked=tmp_path / "other.tsv")
    rows = read_tsv(tmp_path / "other.tsv")
    assert len(rows) == 18
    for head in (FIRST, *KNOWN[:2]):
        left = bleu(translations(known.ids("train", "source")[:12], {head}), known.right("train")[:12])["bleu"]
        assert of_head(rows, head)["bleu"] == pytest.approx(left, abs=1e-3)
    assert of_head(rows, KNOWN[3])["p_value"] == pytest.approx(1 / 200)


def head_table(path: Path, scores: Mapping[Head, float], **facts: object) -> None:
    """Write a table of single heads with these BLEU changes."""
    rows = [
        {"attention": kind, "layer": layer, "head": head, "bleu": 50.0, "bleu_change": change, "p_value": 0.5, **facts}
        for (kind, layer, head), change in scores.items()
    ]
    write_tsv(path, rows, list(rows[0]))


@pytest.fixture(scope="module")
def curve(known: Known, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Rows]:
    """The curves of `masking_curve` with one step, which leaves as many heads as there are known ones. By the paper's
    importance and on dev the known heads matter; by everything else they go first."""
    out = tmp_path_factory.mktemp("masking_curve")
    known_last = {head: -5.0 if head in KNOWN else 0.1 for head in HEADS}
    head_table(out / "dev.tsv", known_last)
    head_table(out / "test.tsv", {head: -change for head, change in known_last.items()})
    importance = [
        {"attention": kind, "layer": layer, "head": head, "form": form,
         "importance": 0.0 if (kind, layer, head) in KNOWN else 1.0,
         "importance_normalised": float(((kind, layer, head) in KNOWN) == (form == "example"))}
        for form in ("signed", "batch", "example", "token") for kind, layer, head in HEADS
    ]  # fmt: skip
    write_tsv(out / "importance.tsv", importance, list(importance[0]))
    wanted = references(out / "test.txt", known.right("test")[:8], 14)
    flags = masking(
        known, "masking_curve", out, "test", wanted, sentences=8, step=7 / 9, random_orders=2, resamples=100
    )
    flags |= {"importance": out / "importance.tsv", "ablation_dev": out / "dev.tsv", "ablation_test": out / "test.tsv"}
    command("masking_curve", **flags, out=out / "masking_curve.tsv")
    walks: dict[tuple[str, str], Rows] = {}
    for row in read_tsv(out / "masking_curve.tsv"):
        walks.setdefault((row["order"], row["attention"]), []).append(row)
    return walks


def test_every_walk_begins_with_all_heads_and_masks_as_many_as_a_step_says(curve: dict[tuple[str, str], Rows]) -> None:
    orders = ("example", "token", "batch", "signed", "ablation", "ablation_oracle", "random-1", "random-2")
    assert list(curve) == [*((order, "all") for order in orders), *(("example", kind) for kind in ATTENTIONS)]
    for (_, attention), rows in curve.items():
        steps = [(row["masked"], row["of"]) for row in rows]
        assert steps == ([("0", "18"), ("14", "18")] if attention == "all" else [("0", "6"), ("5", "6")])
        assert float(rows[0]["bleu"]) == pytest.approx(100)


def test_the_least_important_heads_go_first_and_the_order_of_dev_is_not_the_oracles(
    known: Known, curve: dict[tuple[str, str], Rows]
) -> None:
    for order in ("example", "ablation"):
        assert float(curve[order, "all"][1]["bleu"]) == pytest.approx(100), order
        assert float(curve[order, "all"][1]["bleu_behind"]) == 0
    others = [head for head in HEADS if head not in KNOWN]
    # Ties go to the head that comes first in tables: the first four unknown ones stay.
    sources, right = known.ids("test", "source")[:8], known.right("test")[:8]
    kept = others[:4]
    left = bleu(translations(sources, set(HEADS) - set(kept)), right)["bleu"]
    assert left < 50
    for order in ("token", "batch", "signed", "ablation_oracle"):
        row = curve[order, "all"][1]
        assert (float(row["bleu"]), float(row["bleu_behind"])) == pytest.approx((left, 100 - left), abs=1e-3), order
        assert float(row["bleu_change_high"]) < -20


def test_one_kind_of_attention_is_masked_by_itself(known: Known, curve: dict[tuple[str, str], Rows]) -> None:
    """Both kinds of self-attention keep the one head that matters; cross-attention loses one of its two."""
    lost = {kind: float(curve["example", kind][1]["bleu"]) for kind in ATTENTIONS}
    masked = {head for head in HEADS if head[0] == "dec_enc"} - {KNOWN[2]}
    left = bleu(translations(known.ids("test", "source")[:8], masked), known.right("test")[:8])["bleu"]
    assert lost == pytest.approx({"enc_self": 100, "dec_self": 100, "dec_enc": left}, abs=1e-3)
    assert left < 50
    assert {curve["example", kind][1]["bleu_behind"] for kind in ATTENTIONS} == {""}


def swapped(model: Transformer, kind: str, layer: int, first: int, second: int) -> Transformer:
    """The same model with two heads of a layer swapped."""
    attention = dict(model.named_modules())[module_name(kind, layer)]
    one, other = (slice(head * HEAD_WIDTH, (head + 1) * HEAD_WIDTH) for head in (first, second))
    with torch.no_grad():
        for name in ("query", "key", "value"):
            weight = getattr(attention, name).weight
            weight[one], weight[other] = weight[other].clone(), weight[one].clone()
        output = attention.output.weight
        output[:, one], output[:, other] = output[:, other].clone(), output[:, one].clone()
    return model


def without_the_last(model: Transformer) -> Transformer:
    """The model before its last known head has learnt anything."""
    kind, layer, head = KNOWN[3]
    output = dict(model.named_modules())[f"{module_name(kind, layer)}.output"]
    assert isinstance(output, torch.nn.Linear)
    with torch.no_grad():
        output.weight[:, head * HEAD_WIDTH : (head + 1) * HEAD_WIDTH] = 0
    return model


def test_each_moment_is_a_model_of_its_own_whose_importance_is_measured_anew(known: Known, tmp_path: Path) -> None:
    """After update 3 a head has not learnt its job yet; after 11 a known head's job is done by another of its layer."""
    checkpoints = {3: without_the_last(known_model()), 11: swapped(known_model(), "enc_self", 0, 2, 0)}
    for update, model in checkpoints.items():
        save_tensors(tmp_path / f"checkpoints/checkpoint-{update:05}.safetensors", model.state_dict(), {})
    finished = save(known_model(), tmp_path / "finished", updates=20)
    flags = masking(
        known, "checkpoints", tmp_path, "test", references(tmp_path / "test.txt", known.right("test")[:8], 14),
        sentences=8, step=7 / 9, resamples=100,
    ) | {"model": finished}  # fmt: skip
    training = {**SETTINGS["training"], "batch_tokens": 60, "max_subwords": 6}
    own = {**SEARCH, "sentences": 8, "step": 7 / 9, "resamples": 100}
    write_text(tmp_path / "s.yaml", yaml.safe_dump({**SETTINGS, "training": training, "checkpoints": own}))
    sides = {
        f"{split}_{side}": known.tokens(split, side) for split in ("dev", "train") for side in ("source", "target")
    }
    command("checkpoints", **flags, **sides, checkpoints=tmp_path / "checkpoints", out=tmp_path / "checkpoints.tsv")
    rows = read_tsv(tmp_path / "checkpoints.tsv")
    assert [(row["update"], row["finished"], row["masked"]) for row in rows] == [
        ("3", "0", "0"), ("3", "0", "14"), ("11", "0", "0"), ("11", "0", "14"), ("20", "1", "0"), ("20", "1", "14"),
    ]  # fmt: skip
    unlearnt, _, *learnt = (float(row["bleu"]) for row in rows)
    assert unlearnt < 50
    assert learnt == pytest.approx([100] * 4)
    read = [len(source) + 1 for source, target in known.pairs("train") if max(len(source), len(target)) <= 6]
    assert len(read) < 40
    an_epoch = round(sum(read) / 60)
    assert [float(row["epoch"]) for row in rows[::2]] == pytest.approx(
        [3 / an_epoch, 11 / an_epoch, 20 / an_epoch], rel=1e-4
    )
