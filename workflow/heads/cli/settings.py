"""`settings`: what one stage or corpus is given, as a sealed file of its own. No torch."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from heads.base.files import write_yaml


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads settings`."""
    parser.add_argument("--content", type=json.loads, required=True, help="the settings, JSON")
    parser.add_argument("--out", type=Path, required=True, help="YAML file to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the file."""
    write_yaml(arguments.out, arguments.content)
