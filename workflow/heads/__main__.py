"""The command line: `heads COMMAND --long-flags`, or `python -m heads COMMAND`; one file of `heads.cli` a command."""

from __future__ import annotations

import argparse
import ast
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

GROUPS = {
    "look": ("inspect",),
    "prune": ("prune",),
    "translate": ("translate", "import", "export"),
    "workflow": ("progress", "keep", "why"),
}
"""Commands that no rule calls, by what people want."""
FOR_PEOPLE = tuple(name for names in GROUPS.values() for name in names)
STAGE = "stage"
"""In front of the name of a stage, which goes without it as well."""

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
    if words[:1] == [STAGE]:
        words, listed = words[1:], "stages of the workflow: " + ", ".join(sorted({*stages} - {*FOR_PEOPLE}))
    else:
        # Every job of the workflow comes this way: help is read from the commands where it is asked for.
        listed = _commands() if words[:1] in ([], ["-h"], ["--help"]) else ""
    parser = argparse.ArgumentParser(
        prog=program, description=listed, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=stages, metavar="COMMAND", help="its own flags: COMMAND --help")
    stage = parser.parse_args(words[:1]).stage
    module, own = command(stage, program)
    given = own.parse_args(words[1:])
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


def command(stage: str, program: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """The module of a stage, and the parser of its flags."""
    module = imported(stage)
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=f"{program} {stage}", description=module.__doc__, formatter_class=plain)
    module.add_arguments(parser)
    return module, parser


def _commands() -> str:
    """What `heads --help` says: the commands for people, in groups, with the first line of what each says of itself."""
    lines = []
    for group, names in GROUPS.items():
        lines.append(f"{group}:")
        for name in names:
            tree = ast.parse((Path(cli.__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
            lines.append(f"  {name:<11}{str(ast.get_docstring(tree)).splitlines()[0]}")
    return "\n".join([*lines, f"  {STAGE} NAME One stage of the workflow; {STAGE} --help names them."])


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
