"""Confidence and roles of encoder heads at several checkpoints of one training."""

import argparse
import sys

from heads.analysis.role_trees import DYNAMICS_COLUMNS, dynamics_rows, measurable, sentences_of
from heads.analysis.roles import frequency_ranks
from heads.base.files import write_tsv
from heads.cli._flags import add_path_argument, add_roles_arguments, settings_of
from heads.config.analyses import ConfidenceSettings, RolesSettings
from heads.model.folder import load_model
from heads.text.batches import measured_pairs
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.checkpointing import course_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_roles_arguments(parser)
    add_path_argument(parser, "--checkpoints", "folder of the training's checkpoints")
    add_path_argument(parser, "--source", "token file of the sentences for confidence")
    add_path_argument(parser, "--target", "token file of their reference translations")


def run(arguments: argparse.Namespace) -> str:
    """Measure every checkpoint and the final model on the first treebank; write the table."""
    asked = settings_of(arguments, RolesSettings, "roles")
    how = settings_of(arguments, ConfidenceSettings, "confidence")
    treebanks, roles = sentences_of(dict(arguments.trees), arguments.text, asked)
    treebank = next(iter(treebanks.values()))
    vocabulary = vocabulary_of(arguments.source_bpe)
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    ranks = frequency_ranks(Tokens(arguments.train_source).ids, len(vocabulary))
    sentences, _ = measurable(treebank, vocabulary, roles)
    pairs = measured_pairs(Tokens(arguments.source), Tokens(arguments.target), labelled=model.shape.encoder_only)
    weights = course_of(arguments.model, arguments.checkpoints)
    print(f"measuring {len(weights)} models on {treebank.name}", file=sys.stderr, flush=True)
    rows = dynamics_rows(model, weights, pairs, sentences, ranks, settings=roles, how=how)
    write_tsv(arguments.out, rows, DYNAMICS_COLUMNS)
    return label_of(device)
