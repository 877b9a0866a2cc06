"""Remove the heads whose gates closed, and prove that nothing else changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import write_tsv
from heads.base.provenance import made_by
from heads.model.folder import load_model, save_folder
from heads.model.head_removal import COLUMNS, check_equal, head_rows, prune, read_open_heads
from heads.model.shape import facts_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads pruned`."""
    parser.add_argument("--start-model", type=Path, required=True, help="folder of the model trained with gates")
    parser.add_argument("--gates", type=Path, required=True, help="its table of gates")
    parser.add_argument("--model", type=Path, required=True, help="folder to write the smaller model into")
    parser.add_argument("--heads", type=Path, required=True, help="table of all heads, open or not, to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the smaller model and the table of all heads of the original."""
    model = load_model(arguments.start_model, with_closed=True)
    open_heads = read_open_heads(arguments.gates, model.shape)
    smaller = prune(model, open_heads)
    check_equal(model, smaller, open_heads)
    save_folder(smaller, arguments.model, facts_of(arguments.start_model), made_by())
    write_tsv(arguments.heads, head_rows(smaller.shape), COLUMNS)
