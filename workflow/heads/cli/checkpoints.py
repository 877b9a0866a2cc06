"""The masking curve by importance at several checkpoints of one training (Michel et al. 2019, sec. 6)."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.analysis.masking import answers_of, load_with_heads, read_text
from heads.analysis.masking_curve import CHECKPOINT_COLUMNS, checkpoint_rows
from heads.base.files import write_tsv
from heads.cli._flags import add_masking_arguments
from heads.config.analyses import CheckpointsSettings, ImportanceSettings
from heads.config.settings import section
from heads.config.trainings import TrainingSettings
from heads.text.batches import measured_pairs, pairs_of
from heads.text.vocabulary import Tokens
from heads.training.checkpointing import course_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder of the training's checkpoints")
    parser.add_argument("--dev-source", type=Path, required=True, help="token file that importance is measured on")
    parser.add_argument("--dev-target", type=Path, required=True, help="token file of its reference translations")
    parser.add_argument(
        "--train-source", type=Path, required=True, help="token file of the training source, to count epochs"
    )
    parser.add_argument("--train-target", type=Path, required=True, help="token file of the training target")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(arguments: argparse.Namespace) -> str:
    """At each checkpoint and the final model, measure importance and mask heads in its order; write the table."""
    device, content = pick(arguments.device, arguments.threads), arguments.settings
    settings = section(CheckpointsSettings, content["checkpoints"])
    how = section(ImportanceSettings, content["importance"])
    training = section(TrainingSettings, content["training"])
    weights = course_of(arguments.model, arguments.checkpoints)
    model = load_with_heads(arguments.model, device)
    train = Tokens(arguments.train_source), Tokens(arguments.train_target)
    trained_on = pairs_of(*train, training.max_subwords, labelled=model.shape.alone)
    bound, alone = (how.batch_tokens, "importance.batch_tokens"), model.shape.alone
    pairs = measured_pairs(Tokens(arguments.dev_source), Tokens(arguments.dev_target), *bound, labelled=alone)
    given = read_text(arguments.source, arguments.references, arguments.target_bpe)
    text = answers_of(model, device, given, settings)
    rows = checkpoint_rows(model, weights, pairs, trained_on, *text, settings=settings, how=how, training=training)
    write_tsv(arguments.out, rows, text[2].named(CHECKPOINT_COLUMNS))
    return label_of(device)
