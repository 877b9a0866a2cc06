"""Confidence, the mean maximum attention weight, of each head on dev pairs."""

from heads.analysis.confidence import confidence
from heads.base.columns import CONFIDENCE_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Measure
from heads.config.analyses import ConfidenceSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(given: Measure) -> str:
    """Measure and write the table."""
    settings = section(ConfidenceSettings, given.settings["confidence"])
    device = pick(given.device, given.threads)
    model = load_model(given.model).to(device)
    pairs = measured_pairs(Tokens(given.source), Tokens(given.target), labelled=model.shape.encoder_only)
    batches = (batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None))
    write_tsv(given.out, confidence(model, batches), CONFIDENCE_COLUMNS)
    return label_of(device)
