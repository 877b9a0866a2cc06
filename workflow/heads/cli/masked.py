"""BLEU of the unpruned model when the heads that each choice closes are masked, without any update."""

from pathlib import Path
from typing import Annotated

from heads.analysis.choices import choices_of, masked_rows
from heads.analysis.masking import evaluation_of, read_text
from heads.base.columns import MASKED_COLUMNS
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import Grams, Masking, Table
from heads.config.analyses import SelectionSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.pruning.closed_form import load_output_maps
from heads.training.devices import label_of, pick


def run(
    *,
    given: Masking,
    selection: Annotated[Path, "table of the heads that each choice keeps"],
    grams: Grams = None,
    out: Table,
) -> str:
    """Mask, translate and score; write the table."""
    device = pick(given.device, given.threads)
    settings = section(SelectionSettings, given.settings["selection"])
    search = section(TranslateSettings, given.settings["translate"])
    model = load_model(given.model).to(device)
    text = evaluation_of(model, device, read_text(*given.text), search)
    choices = choices_of(read_tsv(selection))
    maps = load_output_maps(grams, model) if grams else None
    rows = masked_rows(model, choices, *text, resamples=settings.resamples, maps=maps)
    write_tsv(out, rows, text[2].named(MASKED_COLUMNS))
    return label_of(device)
