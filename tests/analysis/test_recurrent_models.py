"""Every head measure on a model without decoder self-attention: rows only for the kinds that exist."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from test_importance import slope

from few_heads import RECURRENT, random_batch, translator
from heads.analysis.ablation import ablation_rows, choice_rows, gates_without, kept_alone, masked_alone
from heads.analysis.attention_weights import attend, attend_to_source, attend_translating
from heads.analysis.confidence import confidence
from heads.analysis.importance import importance_rows
from heads.analysis.lrp.rows import relevance_rows
from heads.analysis.masking_curve import curve_rows, walks_of
from heads.analysis.speed import Contestant, compare
from heads.config.analyses import LrpSettings, SpeedSettings, TranslateSettings
from heads.model.attention import Trace
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.syntax.words import Words
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens

CPU, BATCH = torch.device("cpu"), random_batch(3, seed=2)
HEADS = [(kind, layer, head) for kind in ("enc_self", "dec_enc") for layer in range(2) for head in range(3)]


@pytest.fixture
def model(tiny_model: Callable[..., Transformer]) -> Transformer:
    return tiny_model(**RECURRENT)


@pytest.fixture
def source(tmp_path: Path) -> Tokens:
    """Five sentences of 1 to 5 subwords."""
    ids, ends = np.random.default_rng(2).integers(4, 13, 15).astype(np.int32), np.array([0, 1, 3, 6, 10, 15], np.int64)
    save_file({"ids": ids, "offsets": ends}, tmp_path / "source.safetensors")
    return Tokens(tmp_path / "source.safetensors")


def heads_of(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(row["attention"], row["layer"], row["head"]) for row in rows]


def traced(model: Transformer) -> Trace:
    trace: Trace = {}
    model(BATCH.source, BATCH.source_mask, BATCH.target_input, trace=trace)
    return trace


def test_confidence_has_a_row_for_each_head_that_there_is(model: Transformer) -> None:
    rows = confidence(model, [BATCH])
    assert heads_of(rows) == HEADS
    trace, real = traced(model), BATCH.source != EOS
    assert real.all() and (BATCH.target_output != EOS).all()
    for row in rows:
        weights = trace[f"{row['attention']}.{row['layer']}.weights"][:, int(str(row["head"]))]
        assert row["confidence"] == pytest.approx(float(weights.amax(-1).mean()))


def test_importance_is_the_gradient_at_the_gates_that_there_are(model: Transformer) -> None:
    rows = [row for row in importance_rows(model, [BATCH], label_smoothing=0.1) if row["form"] == "signed"]
    assert heads_of(rows) == HEADS
    for row, head in zip(rows, HEADS, strict=True):
        assert row["importance"] == pytest.approx(slope(model, BATCH, head) / 3, rel=1e-4, abs=1e-7)


def test_heads_are_masked_one_by_one_by_layers_and_along_curves(model: Transformer) -> None:
    translate = translator(model, BATCH)
    references = translate(None)
    alone = ablation_rows(model, masked_alone(model.shape), translate, references, resamples=5)
    kept = ablation_rows(model, kept_alone(model.shape), translate, references, resamples=5)
    assert heads_of(alone) == heads_of(kept) == HEADS
    assert [(row["attention"], row["layer"]) for row in choice_rows(kept, kept)] == [
        *dict.fromkeys(h[:2] for h in HEADS)
    ]
    smaller = prune(model, {"dec_enc": [[False, True, True], [True] * 3]})
    without = translator(smaller, BATCH)(None)
    assert without == translate(gates_without(model, {("dec_enc", 0, 0)})) != references
    walks = walks_of(model, importance_rows(model, [BATCH], label_smoothing=0.1), alone, alone, random=1)
    rows = curve_rows(model, walks, translate, references, step=0.5, resamples=5)
    assert {str(row["attention"]) for row in rows} == {"all", "enc_self", "dec_enc"}
    assert {row["of"] for row in rows if row["attention"] != "all"} == {6}


def test_time_is_measured_of_the_kinds_that_there_are(model: Transformer, source: Tokens) -> None:
    ticks = count()
    settings = SpeedSettings(batch_sizes=(2,), sentences=5, repeats=2, beam=2, length_penalty=0.6)
    smaller = prune(model, {"enc_self": [[False] * 3, [True] * 3]})
    contestants = {name: Contestant(one, 1.0, None) for name, one in (("all", model), ("less", smaller))}
    timed = compare(contestants, source, settings, CPU, lambda: float(next(ticks)))
    assert [(row["run"], row["heads"], row["of"]) for row in timed] == [("all", 12, 12), ("less", 9, 12)]
    assert len({row["subwords_per_example"] for row in timed}) == 1


def test_relevance_has_rows_of_the_heads_that_there_are_and_an_account_of_all_sub_layers(model: Transformer) -> None:
    settings = LrpSettings(rules=("plain", "z-plus", "attnlrp"))
    rows, account = relevance_rows(model, [BATCH], settings)
    assert heads_of(rows) == HEADS * 3
    assert [row["place"] for row in account if row["rule"] == "plain"] == [
        *(f"{part}.{layer}" for layer in (1, 0) for part in ("dec_ffn", "dec_enc", "dec_ssru")),
        *(f"{part}.{layer}" for layer in (1, 0) for part in ("enc_ffn", "enc_self")),
    ]
    for kind, layer in {head[:2] for head in HEADS}:
        shares = [row["relevance_absolute"] for row in rows[:12] if (row["attention"], row["layer"]) == (kind, layer)]
        assert sum(map(float, map(str, shares))) == pytest.approx(1.0)


def test_maps_have_the_kinds_that_there_are(model: Transformer) -> None:
    words = Words(0, ("a", "b"), (), np.array([5, 7], np.int32), np.eye(2))
    (found,) = attend_translating(model, [words], TranslateSettings(beam=2, length_penalty=0.6))
    wrote = len(found.target) + 1
    assert {kind: weights.shape for kind, weights in found.weights.items()} == {
        "enc_self": (6, 3, 3),
        "dec_enc": (6, wrote, 3),
    }
    ((_, read),) = attend(model, [words], 10)
    assert read.shape == (6, 2, 2)
    ((_, aligned),) = attend_to_source(model, [(words, words)], 10)
    assert aligned.shape == (6, 3, 2)
