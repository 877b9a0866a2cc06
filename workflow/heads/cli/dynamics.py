"""Confidence and roles of encoder heads at several checkpoints of one training."""

import sys
from pathlib import Path
from typing import Annotated

from heads.analysis.role_trees import dynamics_rows, measurable, sentences_of
from heads.analysis.roles import frequency_ranks
from heads.base.columns import DYNAMICS_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Checkpoints, Roles
from heads.config.analyses import ConfidenceSettings, RolesSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.text.batches import measured_pairs
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.checkpointing import course_of
from heads.training.devices import label_of, pick


def run(
    given: Roles,
    checkpoints: Checkpoints,
    source: Annotated[Path, "token file of the sentences for confidence"],
    target: Annotated[Path, "token file of their reference translations"],
) -> str:
    """Measure every checkpoint and the final model on the first treebank; write the table."""
    asked = section(RolesSettings, given.settings["roles"])
    how = section(ConfidenceSettings, given.settings["confidence"])
    treebanks, roles = sentences_of(dict(given.trees), given.text, asked)
    treebank = next(iter(treebanks.values()))
    vocabulary = vocabulary_of(given.source_bpe)
    device = pick(given.device, given.threads)
    model = load_model(given.model).to(device)
    ranks = frequency_ranks(Tokens(given.train_source).ids, len(vocabulary))
    sentences, _ = measurable(treebank, vocabulary, roles)
    pairs = measured_pairs(Tokens(source), Tokens(target), labelled=model.shape.encoder_only)
    weights = course_of(given.model, checkpoints)
    print(f"measuring {len(weights)} models on {treebank.name}", file=sys.stderr, flush=True)
    rows = dynamics_rows(model, weights, pairs, sentences, ranks, settings=roles, how=how)
    write_tsv(given.out, rows, DYNAMICS_COLUMNS)
    return label_of(device)
