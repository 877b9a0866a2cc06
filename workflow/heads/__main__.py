"""The command line: `python -m heads STAGE --long-flags`, or `heads STAGE`, one file of `heads.cli` a stage."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from heads import cli
from heads.base.files import UserError
from heads.base.provenance import record

FOR_PEOPLE = ("export", "import", "inspect", "keep", "progress", "prune", "translate", "why")
"""Commands that no rule calls."""

INTERRUPTED = 130
"""The exit status of what was stopped from the keyboard, as shells have it."""

EXTRAS = {
    "pulp": "training",
    "stanza": "parsing",
    "PIL": "figures",
    "matplotlib": "figures",
    "pandas": "figures",
    "seaborn": "figures",
    "snakemake": "workflow",
}
"""By package that not every stage needs, what it is installed with."""


def main(arguments: list[str] | None = None) -> int:
    """Run one stage; an error of the user is one sentence and exit status 1."""
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        print(f"error: {package} is not installed: pip install 'heads[{EXTRAS[package]}]'", file=sys.stderr)
    return 1


def run(words: list[str]) -> int:
    """Run the stage that the first word names; gives the exit status."""
    program = "heads" if Path(sys.argv[0]).name == "heads" else "python -m heads"
    stages = sorted(module.name for module in pkgutil.iter_modules(cli.__path__) if not module.name.startswith("_"))
    parser = argparse.ArgumentParser(prog=program, description=__doc__, allow_abbrev=False)
    parser.add_argument("stage", choices=stages, metavar="STAGE", help=", ".join(stages))
    stage = parser.parse_args(words[:1]).stage
    module = imported(stage)
    stage_parser = argparse.ArgumentParser(prog=f"{program} {stage}", description=module.__doc__)
    module.add_arguments(stage_parser)
    given = stage_parser.parse_args(words[1:])
    try:
        device = module.run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        if stage not in FOR_PEOPLE:
            raise
        # Whoever reads on, such as head, has seen enough; nothing may be flushed at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if stage not in FOR_PEOPLE:
        had = {name: getattr(given, name, None) for name in ("seed", "threads", "processes")}
        print(record(device=device, **had), file=sys.stderr)
    return 0


def imported(stage: str) -> ModuleType:
    """The module of a stage, without any search for garbage in what is imported, neither now nor later.

    There is none, and to search it takes a third of the time that a stage needs to start and to end.
    """
    gc.disable()
    try:
        return importlib.import_module(f"heads.cli.{stage}")
    finally:
        # Once: in a process of many stages, such as that of the tests, there is garbage later on.
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
