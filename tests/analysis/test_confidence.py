"""Confidence against a literal version of its definition, one sentence at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heads.analysis.confidence import confidence
from heads.base.names import ATTENTIONS
from heads.model.attention import Trace
from heads.model.transformer import Transformer
from heads.text.batches import make_batch

Ids = NDArray[np.int32]
NewModel = Callable[..., Transformer]
PRUNED = {"enc_self": ((2,), (0, 1)), "dec_self": ((), (1,)), "dec_enc": ((0, 2), ())}


def sentences(lengths: Sequence[int], subwords: int, seed: int) -> list[Ids]:
    generator = np.random.default_rng(seed)
    return [generator.integers(4, subwords, length).astype(np.int32) for length in lengths]


SOURCES, TARGETS = sentences([3, 1, 6, 4], 13, 1), sentences([2, 5, 3, 7], 11, 2)


def slowly(model: Transformer, attention: str, layer: int, row: int) -> tuple[float, int]:
    """Mean maximum weight and number of tokens, computed sentence by sentence and weight by weight."""
    largest = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        batch = make_batch([source], [target])
        trace: Trace = {}
        model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        weights = trace[f"{attention}.{layer}.weights"][0, row].tolist()
        queries = len(source) if attention == "enc_self" else len(target)
        keys = len(target) + 1 if attention == "dec_self" else len(source)
        largest += [max(weights[query][key] for key in range(keys)) for query in range(queries)]
    return sum(largest) / len(largest), len(largest)


@pytest.mark.parametrize("changes", [{}, {"live_heads": PRUNED}])
def test_confidence_is_the_mean_largest_weight_of_every_live_head(
    tiny_model: NewModel, changes: dict[str, Any]
) -> None:
    model = tiny_model(**changes)
    rows = confidence(model, [make_batch(SOURCES, TARGETS)])
    expected = [
        (attention, layer, head, *slowly(model, attention, layer, row))
        for attention in ATTENTIONS
        for layer, heads in enumerate(model.shape.live_heads[attention])
        for row, head in enumerate(heads)
    ]
    assert [list(row.values()) for row in rows] == [pytest.approx(list(row)) for row in expected]


def test_companions_and_padding_change_no_confidence(tiny_model: NewModel) -> None:
    model = tiny_model()
    together = confidence(model, [make_batch(SOURCES, TARGETS)])
    alone = [make_batch([source], [target]) for source, target in zip(SOURCES, TARGETS, strict=True)]
    apart = confidence(model, [alone[2], alone[0], alone[3], alone[1]])
    assert [row["tokens"] for row in together] == [row["tokens"] for row in apart]
    assert [row["confidence"] for row in together] == pytest.approx([row["confidence"] for row in apart])


def test_without_sentences_confidence_is_unknown_rather_than_zero(tiny_model: NewModel) -> None:
    assert {row["confidence"] for row in confidence(tiny_model(), [])} == {None}
