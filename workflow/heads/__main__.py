"""The command line, `heads COMMAND` or `python -m heads COMMAND`; each command is a file in `heads.cli`."""

import argparse
import ast
import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from heads import cli
from heads.base.files import UserError
from heads.base.outputs import check_outputs
from heads.base.provenance import record
from heads.cli._signature import called, outputs_of, parser_of

GROUPS = {
    "look": ("inspect",),
    "prune": ("prune",),
    "translate": ("translate", "import", "export"),
    "workflow": ("progress", "keep"),
}
"""Commands for people, by purpose."""
FOR_PEOPLE = tuple(name for names in GROUPS.values() for name in names)
STAGE = "stage"
"""Optional word before the name of a stage."""

INTERRUPTED = 130
"""The exit status after Ctrl-C, as in shells."""

SPINS = "3000"
"""How long torch's idle threads look for new work before they sleep, in rounds of a loop, in place of 300,000.

Beside other processes, a thread that looks on takes its core from those that have work: with 3,000, the demo's baseline
on two cores of a Xeon is a tenth slower on an idle machine, and ten times as fast beside one busy process.
"""

EXTRAS = {
    "huggingface_hub": "import",
    "pulp": "training",
    "stanza": "parsing",
    "PIL": "figures",
    "matplotlib": "figures",
    "pandas": "training",
    "scipy": "training",
    "seaborn": "figures",
    "snakemake": "workflow",
}
"""Packages that only some stages need, and the extra that installs each."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; a UserError prints one sentence and gives status 1."""
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS  # read when torch is loaded, which is later
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
    """Run the command that the first word names, and return the exit status."""
    program = "heads" if Path(sys.argv[0]).name == "heads" else "python -m heads"
    stages = sorted(module.name for module in pkgutil.iter_modules(cli.__path__) if not module.name.startswith("_"))
    if words[:1] == [STAGE]:
        words, wanted = words[1:], {"stages of the workflow": tuple(sorted({*stages} - {*FOR_PEOPLE}))}
    else:
        wanted = GROUPS
    # Every job of the workflow passes here, so the commands are read for help only when it is shown.
    listed = _commands(wanted) if words[:1] in ([], ["-h"], ["--help"]) else ""
    parser = argparse.ArgumentParser(
        prog=program, description=listed, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=stages, metavar="COMMAND", help="COMMAND --help shows its flags")
    stage = parser.parse_args(words[:1]).stage
    module, own = command(stage, program)
    given = vars(own.parse_args(words[1:]))
    check_outputs(given, outputs_of(module.run))
    try:
        device = called(module.run, given)
        sys.stdout.flush()
    except BrokenPipeError:
        if stage not in FOR_PEOPLE:
            raise
        # The reader, such as head, has closed the pipe; the flush at exit must not fail on it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if stage not in FOR_PEOPLE:
        had = {name: given.get(name) for name in ("seed", "threads", "processes")}
        print(record(device=device, **had), file=sys.stderr)
    return 0


def command(stage: str, program: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """The module of a command, and the parser of its flags."""
    module = imported(stage)
    return module, parser_of(module.run, f"{program} {stage}", str(module.__doc__))


def _commands(groups: Mapping[str, Sequence[str]]) -> str:
    """The text of `heads --help` or `heads stage --help`: commands with the first line of each docstring."""
    lines, width = [], 1 + max(len(name) for names in groups.values() for name in (*names, f"{STAGE} NAME"))
    for group, names in groups.items():
        lines.append(f"{group}:")
        for name in names:
            tree = ast.parse((Path(cli.__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
            lines.append(f"  {name:<{width}}{str(ast.get_docstring(tree)).splitlines()[0]}")
    if groups is GROUPS:
        lines.append(f"  {f'{STAGE} NAME':<{width}}Run one stage of the workflow; {STAGE} --help lists them.")
    return "\n".join(lines)


def imported(stage: str) -> ModuleType:
    """Import the module of a stage with garbage collection off, and exempt what it imports for good.

    It holds no garbage, and searching it takes a third of the time that a stage needs to start and to end.
    """
    name = f"heads.cli.{stage}"
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        # Only once: in a process of many stages, such as the tests, garbage appears later.
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
