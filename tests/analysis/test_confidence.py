"""Confidence against a literal version of its definition, one sentence at a time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray
from safetensors.numpy import save_file

from heads.analysis.confidence import confidence, sum_of_largest
from heads.base.files import read_tsv
from heads.base.names import ATTENTIONS
from heads.cli import confidence as command
from heads.model.attention import Trace
from heads.model.folder import save_folder
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.batches import make_batch

Ids = NDArray[np.int32]
PRUNED = {"enc_self": ((2,), (0, 1)), "dec_self": ((), (1,)), "dec_enc": ((0, 2), ())}


def tiny(live: Any = None) -> Transformer:
    """A random model in float64."""
    torch.manual_seed(5)
    live = live or full_heads(layers=2, heads=3)
    sizes: dict[str, Any] = {"source_subwords": 13, "target_subwords": 11, "original_heads": 3}
    shape = ModelShape(8, 4, 10, 0.3, pre_norm=True, **sizes, live_heads=live)
    return Transformer(shape).double().eval()


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


@pytest.mark.parametrize("live", [None, PRUNED])
def test_confidence_is_the_mean_largest_weight_of_every_live_head(live: Any) -> None:
    model = tiny(live)
    rows = confidence(model, [make_batch(SOURCES, TARGETS)])
    expected = [
        (attention, layer, head, *slowly(model, attention, layer, row))
        for attention in ATTENTIONS
        for layer, heads in enumerate(model.shape.live_heads[attention])
        for row, head in enumerate(heads)
    ]
    assert [list(row.values()) for row in rows] == [pytest.approx(list(row)) for row in expected]


def test_companions_and_padding_change_no_confidence() -> None:
    model = tiny()
    together = confidence(model, [make_batch(SOURCES, TARGETS)])
    alone = [make_batch([source], [target]) for source, target in zip(SOURCES, TARGETS, strict=True)]
    apart = confidence(model, [alone[2], alone[0], alone[3], alone[1]])
    assert [row["tokens"] for row in together] == [row["tokens"] for row in apart]
    assert [row["confidence"] for row in together] == pytest.approx([row["confidence"] for row in apart])


def test_the_end_sign_neither_attends_nor_is_attended_to() -> None:
    weights = torch.tensor([[[[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]]]])
    real = torch.tensor([[True, True, False]])
    assert sum_of_largest(weights, real, real).tolist() == pytest.approx([0.2 + 0.6])


def test_the_last_step_of_the_decoder_counts_in_no_attention() -> None:
    rows = confidence(tiny(), [make_batch(SOURCES, TARGETS)])
    tokens = {str(row["attention"]): row["tokens"] for row in rows}
    assert tokens == {"enc_self": 3 + 1 + 6 + 4, "dec_self": 2 + 5 + 3 + 7, "dec_enc": 2 + 5 + 3 + 7}


def test_without_sentences_confidence_is_unknown_rather_than_zero() -> None:
    assert {row["confidence"] for row in confidence(tiny(), [])} == {None}


def test_the_command_writes_the_table_of_the_first_sentences(tmp_path: Path) -> None:
    model = tiny(PRUNED).float()
    save_folder(model, tmp_path / "model", {}, {})
    for name, side in [("source", SOURCES), ("target", TARGETS)]:
        offsets = np.cumsum([0, *map(len, side)]).astype(np.int64)
        save_file({"ids": np.concatenate(side), "offsets": offsets}, tmp_path / name)
    settings = {"confidence": {"sentences": 3, "batch_tokens": 6}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    paths = {"model": "model", "settings": "settings.yaml", "out": "out.tsv"}
    flags = [f"--{flag}={tmp_path / name}" for flag, name in {**paths, "source": "source", "target": "target"}.items()]
    command.run(parser.parse_args([*flags, "--device=cpu"]))
    expected = confidence(model, [make_batch(SOURCES[:3], TARGETS[:3])])
    written = read_tsv(tmp_path / "out.tsv")
    assert [row["head"] for row in written] == [str(row["head"]) for row in expected]
    assert [float(row["confidence"]) for row in written] == pytest.approx([row["confidence"] for row in expected], 1e-5)
