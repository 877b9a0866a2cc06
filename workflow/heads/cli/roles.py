"""Which encoder heads are positional, syntactic (if there are trees) or look at rare words."""

from typing import Annotated

from heads.analysis.role_trees import roles_on_trees, sentences_of
from heads.analysis.roles import frequency_ranks
from heads.base.columns import COLUMNS_OF
from heads.base.files import write_tsv
from heads.cli._flags import OutFile, Roles
from heads.config.analyses import RolesSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(
    given: Roles,
    coverage: Annotated[OutFile, "table to write: counts of sentences measured and left out"],
    positions: Annotated[OutFile, "table to write: positions of the dependents of each relation"],
) -> str:
    """Measure heads on the trees of every source and write all tables; report on standard error what is missing."""
    asked = section(RolesSettings, given.settings["roles"])
    treebanks, settings = sentences_of(dict(given.trees), given.text, asked)
    vocabulary = vocabulary_of(given.source_bpe)
    device = pick(given.device, given.threads)
    model = load_model(given.model).to(device)
    ranks = frequency_ranks(Tokens(given.train_source).ids, len(vocabulary))
    rows, counts, stand = roles_on_trees(model, treebanks, vocabulary, ranks, settings)
    write_tsv(given.out, rows, COLUMNS_OF["roles.tsv"])
    write_tsv(coverage, counts, COLUMNS_OF["coverage.tsv"])
    write_tsv(positions, stand, COLUMNS_OF["positions.tsv"])
    return label_of(device)
