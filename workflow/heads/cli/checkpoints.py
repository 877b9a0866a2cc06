"""The masking curve by importance at several checkpoints of one training (Michel et al. 2019, sec. 6)."""

import argparse

from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.analysis.masking_curve import CHECKPOINT_COLUMNS, checkpoint_rows
from heads.base.files import write_tsv
from heads.cli._flags import add_masking_arguments, add_output_argument, add_path_argument, settings_of, tokeniser_named
from heads.config.analyses import CheckpointsSettings, ImportanceSettings
from heads.config.trainings import TrainingSettings
from heads.model.shape import check_answers
from heads.text.batches import measured_pairs, pairs_of
from heads.text.vocabulary import Tokens
from heads.training.checkpointing import course_of
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_path_argument(parser, "--checkpoints", "folder of the training's checkpoints")
    add_path_argument(parser, "--dev-source", "token file that importance is measured on")
    add_path_argument(parser, "--dev-target", "token file of its reference translations")
    add_path_argument(parser, "--train-source", "token file of the training source, to count epochs")
    add_path_argument(parser, "--train-target", "token file of the training target")
    add_output_argument(parser, "--out", what="table to write")


def run(arguments: argparse.Namespace) -> str:
    """At each checkpoint and the final model, measure importance and mask heads in its order; write the table."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, CheckpointsSettings, "checkpoints")
    how = settings_of(arguments, ImportanceSettings, "importance")
    training = settings_of(arguments, TrainingSettings, "training")
    weights = course_of(arguments.model, arguments.checkpoints)
    model = load_with_heads(arguments.model, device)
    check_answers(model.shape, arguments.model)
    train = Tokens(arguments.train_source), Tokens(arguments.train_target)
    trained_on = pairs_of(*train, training.max_subwords, labelled=model.shape.encoder_only)
    bound, alone = (how.batch_tokens, "importance.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(arguments.dev_source), Tokens(arguments.dev_target), *bound, labelled=alone)
    paths = arguments.source, arguments.references, arguments.target_bpe
    text = evaluation_of(model, device, read_text(*paths, tokeniser_named(arguments)), settings)
    rows = checkpoint_rows(model, weights, pairs, trained_on, *text, settings=settings, how=how, training=training)
    write_tsv(arguments.out, rows, text[2].named(CHECKPOINT_COLUMNS))
    return label_of(device)
