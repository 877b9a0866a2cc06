"""Predict the label of every test example, and compute accuracy and Matthews' correlation."""

import argparse
import sys

from heads.analysis.masking import evaluation_of, read_text
from heads.analysis.metrics import labels_scored
from heads.base.files import write_json, write_lines
from heads.base.provenance import made_by
from heads.cli._flags import add_masking_arguments, add_output_argument, settings_of
from heads.config.analyses import TranslateSettings
from heads.model.folder import load_classifier
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_masking_arguments(parser)
    add_output_argument(parser, "--predictions", what="labels to write, one per line")
    add_output_argument(parser, "--accuracy", what="score to write, JSON")


def run(arguments: argparse.Namespace) -> str:
    """Classify and score; write predictions and scores."""
    device = pick(arguments.device, arguments.threads)
    settings = settings_of(arguments, TranslateSettings, "translate")
    model = load_classifier(arguments.model).to(device)
    text = read_text(arguments.source, arguments.references, arguments.target_bpe)
    answer, wanted, _ = evaluation_of(model, device, text, settings)
    labels = answer(None)
    score = {"split": "test", **labels_scored(labels, wanted)}
    write_lines(arguments.predictions, labels)
    made = made_by(device=label_of(device), threads=arguments.threads)
    write_json(arguments.accuracy, {**score, "provenance": made})
    print(f"accuracy {score['accuracy']:.2f} %, Matthews {score['matthews']:.3f}", file=sys.stderr)
    return label_of(device)
