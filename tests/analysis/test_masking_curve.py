"""Masking heads, by one, by layers, and more and more: which are masked at each step, the translations, the orders."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from test_permutations import REFERENCES, worsened

from few_heads import random_batch
from heads.analysis.ablation import ablation_rows, gates_without, kept_alone, masked_alone
from heads.analysis.masking import load_with_heads, read_text
from heads.analysis.masking_curve import Row, by_attention, curve_rows, importance_orders, random_orders
from heads.base.files import UserError, write_lines
from heads.model.folder import save_folder
from heads.model.head_removal import prune
from heads.model.shape import Head, ModelShape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.pruning.selection import random_scores
from heads.translation.bleu import bleu_of
from heads.translation.text_scores import bleu, bleu_statistics

NewModel = Callable[..., Transformer]
LIVE = {"enc_self": ((0, 2), ()), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((2,), (0, 1))}
SENTENCE = "the old farmers sold their excellent tools yesterday at the large market in town before it rained ."


def test_a_head_masked_by_its_gate_is_the_same_as_one_that_is_gone(tiny_model: NewModel) -> None:
    model, batch = tiny_model(live_heads=LIVE), random_batch(3, 1)
    gates = gates_without(model, [("dec_self", 1, 2), ("enc_self", 0, 0)])
    smaller = prune(model, {kind: [[bool(g) for g in gate] for gate in layers] for kind, layers in gates.items()})
    assert smaller.shape.live_heads["dec_self"] == ((1,), (0, 1))
    assert smaller.shape.live_heads["enc_self"] == ((2,), ())
    inputs = (batch.source, batch.source_mask, batch.target_input)
    torch.testing.assert_close(model(*inputs, gates), smaller(*inputs))


def test_each_head_is_masked_alone_or_left_alone_in_its_layer(tiny_shape: Callable[..., ModelShape]) -> None:
    shape = tiny_shape(live_heads=LIVE)
    assert masked_alone(shape) == {head: {head} for head in shape.heads()}
    alone = kept_alone(shape)
    assert tuple(alone) == shape.heads()
    assert alone["dec_self", 1, 1] == {("dec_self", 1, 0), ("dec_self", 1, 2)}
    assert alone["dec_self", 0, 1] == set()


def test_a_case_that_masks_nothing_is_not_translated_again(tiny_model: NewModel) -> None:
    model, calls = tiny_model(live_heads=LIVE), []

    def translate(gates: Gates | None) -> list[str]:
        calls.append(gates)
        return REFERENCES

    rows = ablation_rows(model, kept_alone(model.shape), translate, REFERENCES, resamples=10)
    assert len(rows) == 9
    assert len(calls) == 1 + 7  # dec_self and dec_enc of layer 0 have one head each


class Recorder:
    """A stand-in for translation that drops one last word per closed head and records the closed heads."""

    def __init__(self) -> None:
        self.closed: list[set[Head]] = []

    def __call__(self, gates: Gates | None) -> list[str]:
        assert gates is not None
        closed = {
            (kind, layer, head)
            for kind, layers in gates.items()
            for layer, values in enumerate(layers)
            for head, value in enumerate(values.tolist())
            if value == 0
        }
        self.closed.append(closed)
        return [" ".join(SENTENCE.split()[: 18 - len(closed)])]


def numbers(rows: Sequence[Row], column: str) -> list[float]:
    return [float(row[column] or 0) for row in rows]


def test_each_step_masks_the_lowest_scores_that_are_left(tiny_model: NewModel) -> None:
    model, translate = tiny_model(), Recorder()
    heads = model.shape.heads()
    scores = {head: float((7 * number) % 18) for number, head in enumerate(heads)}
    rows = curve_rows(model, {("mine", "all"): scores}, translate, [SENTENCE], step=0.25, resamples=100)
    assert [row["masked"] for row in rows] == [0, 5, 9, 14, 18]
    assert [row["share"] for row in rows] == [0, 5 / 18, 0.5, 14 / 18, 1]
    assert translate.closed == [{h for h in heads if scores[h] < count} for count in (0, 5, 9, 14, 18)]
    assert rows[0]["bleu"] == pytest.approx(100)
    scores_of_steps = numbers(rows, "bleu")
    assert scores_of_steps == sorted(set(scores_of_steps), reverse=True)


def test_what_several_orders_mask_alike_is_translated_once(tiny_model: NewModel) -> None:
    model, translate = tiny_model(), Recorder()
    scores = {head: float(number) for number, head in enumerate(model.shape.heads())}
    walks = {("one", "all"): scores, ("two", "all"): {head: 2 * score for head, score in scores.items()}}
    rows = curve_rows(model, walks, translate, [SENTENCE], step=0.5, resamples=100)
    assert len(rows) == 6
    assert len(translate.closed) == 3
    assert [row["bleu"] for row in rows[:3]] == [row["bleu"] for row in rows[3:]]


def test_bleu_of_summed_counts_is_that_of_the_text() -> None:
    wanted = REFERENCES
    for said in (worsened(REFERENCES, 0.2, 2), ["the cats", *wanted[:-1]], ["dogs bark"] * 40):
        counts = np.array([list(row.values()) for row in bleu_statistics(said, wanted)])
        assert float(bleu_of(counts.sum(0))) == pytest.approx(bleu(said, wanted)["bleu"], abs=1e-9)
        assert float(bleu_of(counts[:7].sum(0))) == pytest.approx(bleu(said[:7], wanted[:7])["bleu"], abs=1e-9)


def test_what_is_lost_has_an_interval_of_sentences_drawn_in_pairs(tiny_model: NewModel) -> None:
    """The reference resamples both texts with the same sentences and scores them as text."""
    model, wanted = tiny_model(), REFERENCES
    heads = model.shape.heads()
    full = worsened(REFERENCES, 0.3, 2)
    # Only every tenth sentence changes, so resampling one text alone would vary far more.
    half = [
        worse if number % 10 == 0 else line
        for number, (line, worse) in enumerate(zip(full, worsened(REFERENCES, 0.9, 3), strict=True))
    ]
    texts = {0: full, 9: half, 18: worsened(REFERENCES, 0.6, 4)}
    recorder = Recorder()

    def translate(gates: Gates | None) -> list[str]:
        recorder(gates)
        return texts[len(recorder.closed[-1])]

    upwards = {head: float(number) for number, head in enumerate(heads)}
    rows = curve_rows(model, {("one", "all"): upwards}, translate, wanted, step=0.5, resamples=1000)
    draw = np.random.default_rng(99)
    differences, shares = [], []
    for _ in range(300):
        chosen = draw.integers(40, size=40).tolist()
        before, after = (bleu([texts[n][i] for i in chosen], [wanted[i] for i in chosen])["bleu"] for n in (0, 9))
        differences.append(after - before)
        shares.append(after / before)
    for name, drawn in (("change", differences), ("kept", shares)):
        low, high = np.quantile(drawn, [0.025, 0.975])
        assert numbers(rows, f"bleu_{name}_low")[1] == pytest.approx(low, abs=0.2 * (high - low))
        assert numbers(rows, f"bleu_{name}_high")[1] == pytest.approx(high, abs=0.2 * (high - low))
    assert (rows[0]["bleu_change_low"], rows[0]["bleu_change_high"]) == (0, 0)
    assert (rows[0]["bleu_kept_low"], rows[0]["bleu_kept_high"]) == (1, 1)
    assert numbers(rows, "bleu_change_high")[2] < -20


def test_an_order_is_set_against_the_first_one_with_as_many_heads_masked(tiny_model: NewModel) -> None:
    model, wanted = tiny_model(), REFERENCES
    heads = model.shape.heads()
    good, bad = worsened(REFERENCES, 0.1, 2), worsened(REFERENCES, 0.5, 3)

    def translate(gates: Gates | None) -> list[str]:
        assert gates is not None
        return bad if gates["enc_self"][0][0] == 0 else good

    upwards = {head: float(number) for number, head in enumerate(heads)}
    downwards = {head: -score for head, score in upwards.items()}
    part = {head: score for head, score in upwards.items() if head[0] == "dec_enc"}
    walks = {("late", "all"): downwards, ("early", "all"): upwards, ("late", "dec_enc"): part}
    rows = curve_rows(model, walks, translate, wanted, step=0.5, resamples=200)
    gap = bleu(good, wanted)["bleu"] - bleu(bad, wanted)["bleu"]
    assert numbers(rows[:3], "bleu_behind") == [0, 0, 0]
    assert numbers(rows[3:6], "bleu_behind") == pytest.approx([0, gap, 0]), (
        "late masks the head at half that early masks"
    )
    assert 0 < numbers(rows, "bleu_behind_low")[4] < gap < numbers(rows, "bleu_behind_high")[4]
    assert {row["bleu_behind"] for row in rows[6:]} == {None}


def test_the_kinds_of_attention_share_out_all_heads(tiny_model: NewModel) -> None:
    model = tiny_model(live_heads={"enc_self": [[0, 2], []], "dec_self": [[], []], "dec_enc": [[1], [0]]})
    orders = random_orders(model, 2)
    assert orders == {f"random-{seed}": random_scores(model.shape.heads(), seed) for seed in (1, 2)}
    assert orders["random-1"] != orders["random-2"]
    parts = by_attention(orders["random-1"])
    assert list(parts) == ["enc_self", "dec_enc"]
    assert {head: score for part in parts.values() for head, score in part.items()} == orders["random-1"]


def test_orders_by_importance_take_the_normalised_score_of_their_form() -> None:
    place = {"attention": "enc_self", "layer": 0, "head": 2}
    forms = {"token": 0.1, "example": 0.2, "signed": -0.3, "batch": 0.4}
    rows = [{**place, "form": form, "importance": 9.0, "importance_normalised": value} for form, value in forms.items()]
    orders = importance_orders(rows)
    assert next(iter(orders)) == "example", "the paper's own comes first"
    assert {form: scores["enc_self", 0, 2] for form, scores in orders.items()} == forms


def test_a_text_and_references_of_different_length_are_refused(tmp_path: Path) -> None:
    save_file({"ids": np.array([5, 6], np.int32), "offsets": np.array([0, 1, 2])}, tmp_path / "text.safetensors")
    write_lines(tmp_path / "text.txt", ["one", "two", "three"])
    with pytest.raises(UserError, match=r"has 2 lines and .* 3"):
        read_text(tmp_path / "text.safetensors", tmp_path / "text.txt", tmp_path / "bpe.model")


def test_a_model_without_heads_has_none_to_mask(tiny_model: NewModel, tmp_path: Path) -> None:
    save_folder(
        tiny_model(live_heads={kind: [[], []] for kind in ("enc_self", "dec_self", "dec_enc")}), tmp_path, {}, {}
    )
    with pytest.raises(UserError, match="without any head"):
        load_with_heads(tmp_path, torch.device("cpu"))


def test_a_model_without_bleu_keeps_no_share_of_it_in_any_draw(tiny_model: NewModel) -> None:
    heads = dict.fromkeys(tiny_model().shape.heads(), 0.0)
    rows = curve_rows(tiny_model(), {("one", "all"): heads}, lambda _: [""] * 9, [SENTENCE] * 9, step=1, resamples=20)
    assert {(row["bleu_kept_low"], row["bleu_kept_high"]) for row in rows} == {(None, None)}
