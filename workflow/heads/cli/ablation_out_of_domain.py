"""BLEU on an out-of-domain test set with each head masked alone (Michel et al. 2019, Fig 2)."""

from typing import Annotated

from heads.analysis.ablation import ablation_rows, columns_of, masked_alone
from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.base.files import write_tsv
from heads.cli._flags import Masking, OutFile
from heads.config.analyses import AblationSettings
from heads.config.settings import section
from heads.training.devices import label_of, pick


def run(given: Masking, masked: Annotated[OutFile, "table to write: each head masked"]) -> str:
    """Mask, translate and score; write the table."""
    device = pick(given.device, given.threads)
    settings = section(AblationSettings, given.settings["ablation"])
    model = load_with_heads(given.model, device)
    text = evaluation_of(model, device, read_text(*given.text), settings, much_alike=True)
    rows = ablation_rows(model, masked_alone(model.shape), *text, resamples=settings.resamples)
    write_tsv(masked, rows, columns_of(text[2]))
    return label_of(device)
