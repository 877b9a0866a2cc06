"""`importance`: how much the loss depends on each head, to first order, on dev pairs (Michel et al. 2019, sec. 4.1)."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.importance import COLUMNS, importance_rows
from heads.base.files import write_tsv
from heads.cli._flags import add_device_arguments, add_settings_argument
from heads.config.analyses import ImportanceSettings
from heads.config.settings import section
from heads.config.trainings import TrainingSettings
from heads.model.folder import load_model
from heads.text.batches import measured_pairs
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads importance`."""
    add_settings_argument(parser)
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--source", type=Path, required=True, help="token file of the source sentences")
    parser.add_argument("--target", type=Path, required=True, help="token file of the reference translations")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Measure and write the table."""
    content = arguments.settings
    settings = section(ImportanceSettings, content["importance"])
    smoothing = section(TrainingSettings, content["training"]).label_smoothing
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    # A sentence longer than a batch would break the bound on memory.
    bound, alone = (settings.batch_tokens, "importance.batch_tokens"), model.shape.alone
    pairs = measured_pairs(arguments.source, arguments.target, *bound, labelled=alone)
    batches = (batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None))
    write_tsv(arguments.out, importance_rows(model, batches, label_smoothing=smoothing), COLUMNS)
    return label_of(device)
