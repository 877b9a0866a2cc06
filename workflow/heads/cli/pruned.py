"""Remove the heads whose gates closed, and prove that nothing else changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from heads.base.files import write_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import made_by
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune, read_open_heads
from heads.model.shape import ModelShape, facts_of
from heads.model.transformer import Transformer

COLUMNS = ("attention", "layer", "head", "open")
TOLERANCE = 1e-9
"""How far, in float64, the removed model's output may lie from the masked one's: rounding and no more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads pruned`."""
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the model trained with gates")
    parser.add_argument("--gates", type=Path, required=True, help="its table of gates")
    parser.add_argument("--model", type=Path, required=True, help="folder to write the smaller model into")
    parser.add_argument("--heads", type=Path, required=True, help="table of all heads, open or not, to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the smaller model and the table of all heads of the original."""
    model = load_folder(arguments.start_model, with_closed=True)
    open_heads = read_open_heads(arguments.gates, model.shape)
    smaller = prune(model, open_heads)
    check_equal(model, smaller, open_heads)
    save_folder(smaller, arguments.model, facts_of(arguments.start_model), made_by(arguments))
    write_tsv(arguments.heads, head_rows(smaller.shape), COLUMNS)


def head_rows(shape: ModelShape) -> list[dict[str, Any]]:
    """One row for every head of the original model: is it still there?"""
    live = {*shape.heads()}
    return [
        {"attention": kind, "layer": layer, "head": head, "open": int((kind, layer, head) in live)}
        for kind in ATTENTIONS
        for layer in range(shape.layers)
        for head in range(shape.original_heads)
    ]


@torch.no_grad()
def check_equal(model: Transformer, smaller: Transformer, open_heads: dict[str, list[list[bool]]]) -> None:
    """Compare the removed with the masked model on random pieces in float64.

    Raises ArithmeticError when they differ by more than rounding.
    """
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(4, model.shape.source_pieces, (3, 11), generator=generator)
    target = torch.randint(4, model.shape.target_pieces, (3, 7), generator=generator)
    mask = torch.arange(11) < torch.tensor([[11], [8], [5]])
    gates = {k: [torch.tensor(layer, dtype=torch.float64) for layer in v] for k, v in open_heads.items()}
    expected = model.double()(source, mask, target, gates)
    difference = float((smaller.double()(source, mask, target) - expected).abs().max())
    model.float()
    smaller.float()
    if not difference <= TOLERANCE:
        raise ArithmeticError(f"removed and masked model differ by {difference}")
