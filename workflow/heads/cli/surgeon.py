"""How far a model's answers move if each layer has fewer heads and these make up for the others, in closed form."""

import argparse

from heads.base.files import write_tsv
from heads.cli._flags import add_measure_arguments, add_output_argument, add_path_argument, settings_of
from heads.config.analyses import SurgeonSettings
from heads.model.folder import load_model
from heads.pruning.closed_form import BATCH_TOKENS, Surgeon, gram_matrices, output_maps, save_grams
from heads.pruning.ladders import COLUMNS, COMPARED, HeldOut, every_number, ladder_rows, ladders_of
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_measure_arguments(parser)
    add_path_argument(parser, "--train-source", "token file of the training sentences")
    add_path_argument(parser, "--train-target", "token file of their translations, or labels")
    add_output_argument(parser, "--grams", what="file to write, with which heads make up for others")


def run(arguments: argparse.Namespace) -> str:
    """Read training pairs, compare answers to dev, and write both files."""
    settings = settings_of(arguments, SurgeonSettings, "surgeon")
    device = pick(arguments.device, arguments.threads)
    model = load_model(arguments.model).to(device)
    train, dev = (
        measured_pairs(Tokens(source), Tokens(target), labelled=model.shape.encoder_only)
        for source, target in ((arguments.train_source, arguments.train_target), (arguments.source, arguments.target))
    )
    read = train.drawn(settings.subwords).in_order(BATCH_TOKENS)
    grams = gram_matrices(model, (batch.to(device) for _, batch in read), model.shape.kinds)
    surgeon = Surgeon(model, output_maps(model, grams))
    asked = dev.in_order(COMPARED, settings.sentences or None)
    ladders = ladders_of(surgeon, HeldOut(model, [batch.to(device) for _, batch in asked]), every_number)
    save_grams(arguments.grams, grams)
    write_tsv(arguments.out, [*ladder_rows(surgeon, ladders)], COLUMNS)
    return label_of(device)
