"""Relevance of each head for the logits of the model's own translations of dev sentences."""

from typing import Annotated

from heads.analysis.lrp.rows import CONSERVATION_COLUMNS, generated, relevance_rows
from heads.base.columns import RELEVANCE_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Measure, OutFile
from heads.config.analyses import LrpSettings
from heads.config.settings import section
from heads.model.folder import load_answering
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(given: Measure, conservation: Annotated[OutFile, "table to write: how much each sub-layer keeps"]) -> str:
    """Translate greedily, propagate relevance back from every step by every rule, and write the tables."""
    device = pick(given.device, given.threads)
    settings = section(LrpSettings, given.settings["lrp"])
    model = load_answering(given.model).to(device)
    # A sentence longer than a batch would break the bound on memory.
    bound, labelled = (settings.batch_tokens, "lrp.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(given.source), Tokens(given.target), *bound, labelled=labelled)
    in_order = pairs.in_order(settings.batch_tokens, settings.sentences or None)
    batches = (generated(model, batch.to(device)) for _, batch in in_order)
    heads, kept = relevance_rows(model, batches, settings)
    write_tsv(given.out, heads, RELEVANCE_COLUMNS)
    write_tsv(conservation, kept, CONSERVATION_COLUMNS)
    return label_of(device)
