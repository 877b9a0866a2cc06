"""How much the loss depends on each head, to first order, on dev pairs (Michel et al. 2019, sec. 4.1)."""

from heads.analysis.importance import importance_rows
from heads.base.columns import IMPORTANCE_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Measure
from heads.config.analyses import ImportanceSettings
from heads.config.settings import section
from heads.config.trainings import TrainingSettings
from heads.model.folder import load_answering
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(given: Measure) -> str:
    """Measure and write the table."""
    settings = section(ImportanceSettings, given.settings["importance"])
    smoothing = section(TrainingSettings, given.settings["training"]).label_smoothing
    device = pick(given.device, given.threads)
    model = load_answering(given.model).to(device)
    # A sentence longer than a batch would break the bound on memory.
    bound, labelled = (settings.batch_tokens, "importance.batch_tokens"), model.shape.encoder_only
    pairs = measured_pairs(Tokens(given.source), Tokens(given.target), *bound, labelled=labelled)
    batches = (batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None))
    write_tsv(given.out, importance_rows(model, batches, label_smoothing=smoothing), IMPORTANCE_COLUMNS)
    return label_of(device)
