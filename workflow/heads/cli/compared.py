"""Test what every fine-tuned model with fewer heads scores against the unpruned model it came from."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.ablation import paired_bootstrap
from heads.base.files import UserError, read_lines, read_yaml, write_tsv
from heads.base.runs import run_of
from heads.config.settings import SelectionSettings, section
from heads.model.shape import facts_of, shape_of

COLUMNS = ("run", "kept", "of", "updates", "bleu", "bleu_change", "p_value")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads compared`."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--baseline", type=Path, required=True, help="folder of the unpruned run")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="folders of the runs to compare with it")
    parser.add_argument("--references", type=Path, required=True, help="plain text of the target side")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Read all translations, test them against the unpruned model's, write the table."""
    settings = section(SelectionSettings, read_yaml(arguments.settings)["selection"])
    unpruned = read_lines(arguments.baseline / "translations.txt")
    references = read_lines(arguments.references)[: len(unpruned)]
    texts = [read_lines(folder / "translations.txt") for folder in arguments.runs]
    for folder, text in zip(arguments.runs, texts, strict=True):
        if len(text) != len(references):
            raise UserError(f"{folder}/translations.txt has {len(text)} lines, not {len(references)}: score it again.")
    (base, _), *scores = paired_bootstrap(unpruned, texts, references, settings.resamples)
    rows = []
    for folder, (bleu, p_value) in zip(arguments.runs, scores, strict=True):
        kept, of = (len(shape_of(run).heads()) for run in (folder, arguments.baseline))
        updates = facts_of(folder)["total_updates"] - facts_of(arguments.baseline)["total_updates"]
        values = (run_of(folder.resolve())[1].folder, kept, of, updates, bleu, bleu - base, p_value)
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    write_tsv(arguments.out, rows, COLUMNS)
