"""The command line: `python -m heads STAGE --long-flags`, one file of `heads.cli` a stage."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

from heads import cli
from heads.files import UserError


def main(arguments: list[str] | None = None) -> int:
    """Run one stage; an error of the user is one sentence and exit status 1."""
    stages = sorted(module.name for module in pkgutil.iter_modules(cli.__path__) if not module.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m heads", description=__doc__, allow_abbrev=False)
    parser.add_argument("stage", choices=stages, metavar="STAGE", help=", ".join(stages))
    words = sys.argv[1:] if arguments is None else arguments
    stage = parser.parse_args(words[:1]).stage
    module = importlib.import_module(f"heads.cli.{stage}")
    stage_parser = argparse.ArgumentParser(prog=f"python -m heads {stage}", description=module.__doc__)
    module.add_arguments(stage_parser)
    try:
        module.run(stage_parser.parse_args(words[1:]))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
