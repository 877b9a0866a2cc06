"""Which encoder heads are positional, syntactic (if there are trees) or look at rare words."""

import argparse

from heads.analysis.role_trees import roles_on_trees, sentences_of
from heads.analysis.roles import COLUMNS, POSITION_COLUMNS, frequency_ranks
from heads.base.files import write_tsv
from heads.cli._flags import add_output_argument, add_roles_arguments, settings_of
from heads.config.analyses import RolesSettings
from heads.model.folder import load_model
from heads.syntax.words import COVERAGE_COLUMNS
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_roles_arguments(parser)
    add_output_argument(parser, "--coverage", what="table to write: counts of sentences measured and left out")
    add_output_argument(parser, "--positions", what="table to write: positions of the dependents of each relation")


def run(arguments: argparse.Namespace) -> str:
    """Measure heads on the trees of every source and write all tables; report on standard error what is missing."""
    asked = settings_of(arguments, RolesSettings, "roles")
    treebanks, settings = sentences_of(dict(arguments.trees), arguments.text, asked)
    vocabulary = vocabulary_of(arguments.source_bpe)
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    ranks = frequency_ranks(Tokens(arguments.train_source).ids, len(vocabulary))
    rows, coverage, stand = roles_on_trees(model, treebanks, vocabulary, ranks, settings)
    write_tsv(arguments.out, rows, ("trees", *COLUMNS))
    write_tsv(arguments.coverage, coverage, ("trees", *COVERAGE_COLUMNS))
    write_tsv(arguments.positions, stand, ("trees", *POSITION_COLUMNS))
    return label_of(device)
