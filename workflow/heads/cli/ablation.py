"""BLEU with each head masked alone, and with each head left alone in its layer (Michel et al. 2019, 3)."""

from functools import partial
from pathlib import Path
from typing import Annotated

from heads.analysis.ablation import ablation_rows, choice_rows, columns_of, kept_alone, masked_alone
from heads.analysis.masking import evaluation_of, load_with_heads, read_text
from heads.base.columns import CHOICE_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Masking, OutFile
from heads.config.analyses import AblationSettings
from heads.config.settings import section
from heads.training.devices import label_of, pick


def run(
    given: Masking,
    dev_source: Annotated[Path, "token file of the dev sentences"],
    dev_references: Annotated[Path, "plain text of their translations"],
    masked: Annotated[OutFile, "table to write: each head masked, on test"],
    masked_dev: Annotated[OutFile, "table to write: the same on dev"],
    alone: Annotated[OutFile, "table to write: each head alone in its layer, on test"],
    alone_dev: Annotated[OutFile, "table to write: the same on dev"],
    layers: Annotated[OutFile, "table to write: each layer with its best head only"],
) -> str:
    """Mask, translate and score; write the five tables."""
    device = pick(given.device, given.threads)
    settings = section(AblationSettings, given.settings["ablation"])
    model = load_with_heads(given.model, device)
    dev = settings.model_copy(update={"sentences": settings.dev_sentences})
    answers = partial(evaluation_of, model, device, much_alike=True)
    on_test = answers(read_text(*given.text), settings)
    on_dev = answers(read_text(dev_source, dev_references, *given.text[2:]), dev)
    by_split = {}
    for name, text, masked_out, alone_out in (
        ("test", on_test, masked, alone),
        ("dev", on_dev, masked_dev, alone_dev),
    ):
        rows = ablation_rows(model, masked_alone(model.shape), *text, resamples=settings.resamples)
        by_split[name] = ablation_rows(model, kept_alone(model.shape), *text, resamples=settings.resamples)
        write_tsv(masked_out, rows, columns_of(text[2]))
        write_tsv(alone_out, by_split[name], columns_of(text[2]))
    metric = on_test[2]
    write_tsv(layers, choice_rows(by_split["dev"], by_split["test"], metric), metric.named(CHOICE_COLUMNS))
    return label_of(device)
