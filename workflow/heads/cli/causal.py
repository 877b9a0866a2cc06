"""Which heads help, interfere or do neither, by gates fitted on frozen weights (Nam et al. 2025)."""

from heads.analysis.causal_gating import causal_rows
from heads.base.columns import CAUSAL_COLUMNS
from heads.base.files import UserError, write_tsv
from heads.cli._flags import Measure
from heads.config.analyses import CausalSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(given: Measure) -> str:
    """Fit the gates and write the table."""
    settings = section(CausalSettings, given.settings["causal"])
    if not settings.updates:
        raise UserError("causal.updates is 0, so no gates are fitted: set a number, such as 60.")
    device = pick(given.device, given.threads)
    model = load_folder(given.model).to(device)
    pairs = measured_pairs(Tokens(given.source), Tokens(given.target), settings.batch_tokens, "causal.batch_tokens")
    batches = [batch for _, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None)]
    write_tsv(given.out, causal_rows(model, batches, settings), CAUSAL_COLUMNS)
    return label_of(device)
