"""Choose which heads of the unpruned model each method keeps, for every budget."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heads.base.files import write_tsv
from heads.base.targets import Target
from heads.cli._flags import Settings, Table
from heads.config.analyses import SelectionSettings
from heads.config.settings import section
from heads.pruning.selection import CHOSEN_COLUMNS, read_measured, selection_rows


def run(
    *,
    settings: Settings,
    baseline: Annotated[Path, "folder of the unpruned run and its measures"],
    targets: Annotated[Sequence[str], "choices to make, such as example_layer-9 random2-12"] = (),
    out: Table,
) -> None:
    """Read the measures that the methods need, choose heads, and write the table."""
    how = section(SelectionSettings, settings["selection"])
    choices = [Target.parse(text, by_gates=False) for text in targets]
    measured = read_measured(baseline, choices)
    write_tsv(out, selection_rows(choices, measured, how.at_least), CHOSEN_COLUMNS)
