"""Masking more and more heads: which are masked at each step, what is translated, and what the orders are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from heads.ablation import all_heads
from heads.checkpoints import save_model
from heads.cli._masking import load_with_heads, translation_of
from heads.curve import ablation_order, by_attention, curve_rows, importance_orders, random_orders
from heads.files import UserError, write_lines
from heads.selection import Head, ranked
from heads.settings import TranslateSettings
from heads.transformer import Gates, Transformer

NewModel = Callable[..., Transformer]
SENTENCE = "the old farmers sold their excellent tools yesterday at the large market in town before it rained ."


class Recorder:
    """Stands for a translation that loses its last word with every closed head, and remembers what was closed."""

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


def test_each_step_masks_the_lowest_scores_that_are_left(tiny_model: NewModel) -> None:
    model, translate = tiny_model(), Recorder()
    heads = all_heads(model.shape)
    scores = {head: float((7 * number) % 18) for number, head in enumerate(heads)}
    rows = curve_rows(model, {("mine", "all"): scores}, translate, [SENTENCE], step=0.25)
    assert [row["masked"] for row in rows] == [0, 5, 9, 14, 18]
    assert [row["share"] for row in rows] == [0, 5 / 18, 0.5, 14 / 18, 1]
    assert translate.closed == [{h for h in heads if scores[h] < count} for count in (0, 5, 9, 14, 18)]
    assert rows[0]["bleu"] == pytest.approx(100)
    scores_of_steps = [float(row["bleu"]) for row in rows]
    assert scores_of_steps == sorted(set(scores_of_steps), reverse=True)


def test_what_several_orders_mask_alike_is_translated_once(tiny_model: NewModel) -> None:
    model, translate = tiny_model(), Recorder()
    scores = {head: float(number) for number, head in enumerate(all_heads(model.shape))}
    walks = {("one", "all"): scores, ("two", "all"): {head: 2 * score for head, score in scores.items()}}
    rows = curve_rows(model, walks, translate, [SENTENCE], step=0.5)
    assert len(rows) == 6
    assert len(translate.closed) == 3
    assert [row["bleu"] for row in rows[:3]] == [row["bleu"] for row in rows[3:]]


def test_the_kinds_of_attention_share_out_all_heads(tiny_model: NewModel) -> None:
    orders = random_orders(
        tiny_model(live_heads={"enc_self": [[0, 2], []], "dec_self": [[], []], "dec_enc": [[1], [0]]}), 2
    )
    assert list(orders) == ["random-1", "random-2"]
    parts = by_attention(orders["random-1"])
    assert list(parts) == ["enc_self", "dec_enc"]
    assert {head: score for part in parts.values() for head, score in part.items()} == orders["random-1"]


def test_the_head_whose_absence_costs_most_ranks_first() -> None:
    place = {"attention": "dec_enc", "layer": "1"}
    rows = [{**place, "head": str(head), "bleu_change": change} for head, change in enumerate(("0.3", "-8", "-0.1"))]
    assert [head for _, _, head in ranked(ablation_order(rows))] == [1, 2, 0]


def test_orders_by_importance_take_the_normalised_score_of_their_form() -> None:
    place = {"attention": "enc_self", "layer": 0, "head": 2}
    forms = {"token": 0.1, "example": 0.2, "signed": -0.3, "batch": 0.4}
    rows = [{**place, "form": form, "importance": 9.0, "importance_normalised": value} for form, value in forms.items()]
    orders = importance_orders(rows)
    assert next(iter(orders)) == "example", "the paper's own comes first"
    assert {form: scores["enc_self", 0, 2] for form, scores in orders.items()} == forms


def test_a_text_and_references_of_different_length_are_refused(
    tiny_model: NewModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file({"ids": np.array([5, 6], np.int32), "offsets": np.array([0, 1, 2])}, tmp_path / "text.safetensors")
    write_lines(tmp_path / "text.txt", ["one", "two", "three"])
    monkeypatch.setattr("heads.cli._masking.Vocabulary", lambda path: None)
    search = TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=10, sentences=0)
    files = (tmp_path / "text.safetensors", tmp_path / "text.txt", tmp_path / "bpe.model")
    with pytest.raises(UserError, match=r"has 2 sentences and .* 3"):
        translation_of(tiny_model(), torch.device("cpu"), *files, search)


def test_a_model_without_heads_has_none_to_mask(tiny_model: NewModel, tmp_path: Path) -> None:
    files = (tmp_path / "model.safetensors", tmp_path / "model.json")
    save_model(tiny_model(live_heads={kind: [[], []] for kind in ("enc_self", "dec_self", "dec_enc")}), *files, {}, {})
    with pytest.raises(UserError, match="without any head"):
        load_with_heads(*files, torch.device("cpu"))
