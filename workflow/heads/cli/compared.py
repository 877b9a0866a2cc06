"""Test whether each fine-tuned model with fewer heads scores differently from its unpruned model."""

from heads.analysis.choices import compared_rows, metric_of
from heads.base.columns import COMPARED_COLUMNS
from heads.base.files import read_lines, write_tsv
from heads.base.runs import name_of
from heads.cli._flags import Baseline, ComparedRuns, References, Settings, Table, tokeniser_named
from heads.config.analyses import SelectionSettings
from heads.config.settings import section


def run(
    *,
    settings: Settings,
    baseline: Baseline,
    runs: ComparedRuns = (),
    references: References,
    out: Table,
) -> None:
    """Read all translations, test them against the unpruned model's, and write the table."""
    how = section(SelectionSettings, settings["selection"])
    named = [(name_of(folder), folder) for folder in runs]
    rows = compared_rows(baseline, named, read_lines(references), how.resamples, tokeniser_named(settings))
    write_tsv(out, rows, metric_of(baseline)[0].named(COMPARED_COLUMNS))
