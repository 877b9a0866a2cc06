"""Keep an experiment's results: its rows of every table, a few figures, and how all of it was made."""

from pathlib import Path
from typing import Annotated

from heads.base.keeping import keep
from heads.cli._flags import OutFolder


def run(
    experiment: Annotated[str, "a finished one; call this in the folder where Snakemake ran"],
    to: Annotated[OutFolder, "the folder to keep it in"] = Path("docs/measured"),
) -> None:
    """Write the folder of the experiment and print its size."""
    folder = keep(experiment, to)
    for place in (folder, to):
        files = [path for path in place.rglob("*") if path.is_file()]
        print(f"{place}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.2f} MB")
