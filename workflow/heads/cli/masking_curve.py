"""Test BLEU as more and more heads are masked, by importance or ablation (Michel et al. 2019, 4)."""

from pathlib import Path
from typing import Annotated

from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.analysis.masking_curve import curve_rows, walks_of
from heads.base.columns import MASKING_CURVE_COLUMNS
from heads.base.files import read_tsv, write_tsv
from heads.cli._flags import Masking, Table
from heads.config.analyses import MaskingCurveSettings
from heads.config.settings import section
from heads.training.devices import label_of, pick


def run(
    given: Masking,
    importance: Annotated[Path, "table of the importance stage"],
    ablation_dev: Annotated[Path, "table of heads masked alone on dev"],
    ablation_test: Annotated[Path, "table of heads masked alone on test"],
    out: Table,
) -> str:
    """Mask heads in every order, and write the table."""
    device = pick(given.device, given.threads)
    settings = section(MaskingCurveSettings, given.settings["masking_curve"])
    model = load_with_heads(given.model, device)
    text = evaluation_of(model, device, read_text(*given.text), settings)
    measured = (importance, ablation_dev, ablation_test)
    walks = walks_of(model, *map(read_tsv, measured), random=settings.random_orders)
    rows = curve_rows(model, walks, *text, step=settings.step, resamples=settings.resamples)
    write_tsv(out, rows, text[2].named(MASKING_CURVE_COLUMNS))
    return label_of(device)
