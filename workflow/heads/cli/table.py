"""`python -m heads table`: gather one table from many runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from heads.base.files import UserError
from heads.tables.claims import claims_table, over_seeds
from heads.tables.corpus import corpus_table
from heads.tables.correlations import correlations_table
from heads.tables.measures import measures_table
from heads.tables.michel import checkpoints_table, curve_table, heads_table, layers_table
from heads.tables.needs import NEEDS
from heads.tables.parser import parser_table
from heads.tables.pruning import pruning_table
from heads.tables.reading import load_reference, load_runs
from heads.tables.roles import dependencies_table, role_drift_table, roles_table
from heads.tables.seeds import with_spread
from heads.tables.selection import selection_table
from heads.tables.speed import speed_table
from heads.tables.writing import write_frame

TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "pruning": pruning_table,
    "dependencies": dependencies_table,
    "roles": roles_table,
    "speed": speed_table,
    "role_drift": role_drift_table,
    "michel_table1": heads_table,
    "michel_table2": layers_table,
    "michel_masking_curve": curve_table,
    "michel_checkpoints": checkpoints_table,
    "measures": measures_table,
    "correlations": correlations_table,
    "selection": selection_table,
    "claims": claims_table,
}

KEYS = {
    "pruning": ("experiment", "kind", "scope", "lam", "keep"),
    "dependencies": ("experiment", "relation", "direction"),
    "roles": ("experiment", "kind", "scope", "lam", "keep"),
    "speed": ("experiment", "device", "kind", "scope", "lam", "keep", "batch_sentences"),
    "michel_table2": ("experiment", "attention", "layer"),
    "michel_masking_curve": ("experiment", "order", "attention", "masked"),
    "michel_checkpoints": ("experiment", "update", "finished", "masked"),
    "correlations": ("experiment", "attention", "measure_a", "measure_b"),
    "selection": ("experiment", "target", "treatment", "updates"),
    "claims": ("experiment", "claim", "measure", "rule"),
}
"""What rows agree in that differ only by their seed. Not single heads: head 3 of one seed is not that of another."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("--name", required=True, choices=[*TABLES, "corpus", "parser"], help="which table")
    parser.add_argument(
        "--runs",
        nargs="*",
        type=Path,
        default=[],
        help="folders results/EXPERIMENT/RUN of all runs to gather",
    )
    parser.add_argument("--experiments", nargs="*", type=Path, default=[], help="of corpus and parser")
    parser.add_argument(
        "--corpora", nargs="*", type=Path, default=[], help="corpus: the corpus folder of each experiment"
    )
    parser.add_argument("--out", required=True, type=Path, help="the tab-separated file to write")


def run(arguments: argparse.Namespace) -> None:
    """Read the runs, make the table, write it."""
    if arguments.name == "parser":
        table = parser_table(arguments.experiments)
    else:
        table = _corpus(arguments) if arguments.name == "corpus" else _gathered(arguments)
    write_frame(arguments.out, table)


def _gathered(arguments: argparse.Namespace) -> pd.DataFrame:
    need = NEEDS[arguments.name]
    frames = load_runs(need, arguments.runs)
    table = TABLES[arguments.name](frames, *(load_reference(name) for name in need.reference))
    if arguments.name not in KEYS:
        return table
    keys = KEYS[arguments.name]
    spread = with_spread(table, keys)
    return over_seeds(spread, list(keys)) if arguments.name == "claims" else spread


def _corpus(arguments: argparse.Namespace) -> pd.DataFrame:
    if len(arguments.experiments) != len(arguments.corpora):
        raise UserError("--experiments and --corpora differ in number: give one corpus folder for each experiment.")
    pairs = zip(arguments.experiments, arguments.corpora, strict=True)
    sources = {experiment.name: (corpus, experiment / "bpe") for experiment, corpus in pairs}
    return corpus_table(sources, load_reference("voita_data.csv"))
