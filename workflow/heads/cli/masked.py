"""BLEU of the unpruned model with the heads masked that each choice closes, without any update."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from heads.analysis.ablation import Translate, gates_without, paired_bootstrap
from heads.base.files import read_tsv, read_yaml, write_tsv
from heads.base.targets import Target
from heads.cli._masking import add_masking_arguments, translation_of
from heads.config.analyses import SelectionSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.model.shape import Head
from heads.model.transformer import Transformer
from heads.training.devices import pick

COLUMNS = ("target", "kept", "of", "bleu", "bleu_change", "p_value")
Choices = dict[Target, dict[Head, bool]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads masked`."""
    add_masking_arguments(parser)
    parser.add_argument("--selection", type=Path, required=True, help="table of the heads that each choice keeps")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> None:
    """Mask, translate, score; write the table."""
    device, content = pick(arguments), read_yaml(arguments.settings)
    settings = section(SelectionSettings, content["selection"])
    search = section(TranslateSettings, content["translate"])
    model = load_folder(arguments.model).to(device)
    text = translation_of(model, device, arguments.source, arguments.references, arguments.target_bpe, search)
    rows = masked_rows(model, choices_of(read_tsv(arguments.selection)), *text, resamples=settings.resamples)
    write_tsv(arguments.out, rows, COLUMNS)


def choices_of(rows: Sequence[dict[str, str]]) -> Choices:
    """By choice, such as `random2-12`, whether each head is open."""
    choices: Choices = {}
    for row in rows:
        head = row["attention"], int(row["layer"]), int(row["head"])
        choices.setdefault(Target.of_choice(row["method"], row["budget"]), {})[head] = row["open"] == "1"
    return choices


def masked_rows(
    model: Transformer, choices: Choices, translate: Translate, references: Sequence[str], *, resamples: int
) -> list[dict[str, object]]:
    """A row as in COLUMNS for every choice; choices of the same heads are translated once."""
    closed = {
        target: frozenset(head for head, is_open in heads.items() if not is_open) for target, heads in choices.items()
    }
    # A dict and not a set, whose order would change from run to run.
    texts = {heads: translate(gates_without(model, heads)) for heads in dict.fromkeys(closed.values())}
    (base, _), *found = paired_bootstrap(translate(None), list(texts.values()), references, resamples)
    scores = dict(zip(texts, found, strict=True))
    rows: list[dict[str, object]] = []
    for target, heads in closed.items():
        bleu, p_value = scores[heads]
        of = len(choices[target])
        rows.append(dict(zip(COLUMNS, (str(target), of - len(heads), of, bleu, bleu - base, p_value), strict=True)))
    return rows
