"""The masking curve by importance at several checkpoints of one training (Michel et al. 2019, sec. 6)."""

from pathlib import Path
from typing import Annotated

from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.analysis.masking_curve import checkpoint_rows
from heads.base.columns import CHECKPOINT_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Checkpoints, Masking, Table
from heads.config.analyses import CheckpointsSettings, ImportanceSettings
from heads.config.settings import section
from heads.config.trainings import TrainingSettings
from heads.model.shape import check_answers
from heads.text.batches import measured_pairs, pairs_of
from heads.text.vocabulary import Tokens
from heads.training.checkpointing import course_of
from heads.training.devices import label_of, pick


def run(
    given: Masking,
    checkpoints: Checkpoints,
    dev_source: Annotated[Path, "token file that importance is measured on"],
    dev_target: Annotated[Path, "token file of its reference translations"],
    train_source: Annotated[Path, "token file of the training source, to count epochs"],
    train_target: Annotated[Path, "token file of the training target"],
    out: Table,
) -> str:
    """At each checkpoint and the final model, measure importance and mask heads in its order; write the table."""
    device = pick(given.device, given.threads)
    settings = section(CheckpointsSettings, given.settings["checkpoints"])
    how = section(ImportanceSettings, given.settings["importance"])
    training = section(TrainingSettings, given.settings["training"])
    weights = course_of(given.model, checkpoints)
    model = load_with_heads(given.model, device)
    check_answers(model.shape, given.model)
    train = Tokens(train_source), Tokens(train_target)
    trained_on = pairs_of(*train, training.max_subwords, labelled=model.shape.encoder_only)
    bound, labelled = (how.batch_tokens, "importance.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(dev_source), Tokens(dev_target), *bound, labelled=labelled)
    text = evaluation_of(model, device, read_text(*given.text), settings)
    rows = checkpoint_rows(model, weights, pairs, trained_on, *text, settings=settings, how=how, training=training)
    write_tsv(out, rows, text[2].named(CHECKPOINT_COLUMNS))
    return label_of(device)
