"""Remove the heads and hidden units whose gates closed, and check that the model computes the same function."""

from pathlib import Path
from typing import Annotated

from heads.cli._flags import OutFile, OutFolder
from heads.pruning.removal import remove_closed


def run(
    start_model: Annotated[Path, "folder of the model trained with gates"],
    gates: Annotated[Path, "its table of gates"],
    model: Annotated[OutFolder, "folder to write the smaller model into"],
    heads: Annotated[OutFile, "table to write: all heads, open or closed"],
) -> None:
    """Write the smaller model and the table of all heads of the original."""
    remove_closed(start_model, gates, model, heads)
