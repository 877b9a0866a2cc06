"""Predict the label of every test example, and compute accuracy and Matthews' correlation."""

import sys
from typing import Annotated

from heads.analysis.masking import evaluation_of, read_text
from heads.analysis.metrics import labels_scored
from heads.base.files import write_json, write_lines
from heads.base.provenance import made_by
from heads.cli._flags import Masking, OutFile
from heads.config.analyses import TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_classifier
from heads.training.devices import label_of, pick


def run(
    given: Masking,
    predictions: Annotated[OutFile, "labels to write, one per line"],
    accuracy: Annotated[OutFile, "score to write, JSON"],
) -> str:
    """Classify and score; write predictions and scores."""
    device = pick(given.device, given.threads)
    settings = section(TranslateSettings, given.settings["translate"])
    model = load_classifier(given.model).to(device)
    text = read_text(given.source, given.references, given.target_bpe)
    answer, wanted, _ = evaluation_of(model, device, text, settings)
    labels = answer(None)
    score = {"split": "test", **labels_scored(labels, wanted)}
    write_lines(predictions, labels)
    made = made_by(device=label_of(device), threads=given.threads)
    write_json(accuracy, {**score, "provenance": made})
    print(f"accuracy {score['accuracy']:.2f} %, Matthews {score['matthews']:.3f}", file=sys.stderr)
    return label_of(device)
