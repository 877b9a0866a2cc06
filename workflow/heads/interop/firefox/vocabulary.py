"""Read Marian's vocabularies other than SentencePiece's: the ids of subwords by name, as YAML or JSON.

Source: src/data/default_vocab.cpp of browsermt/marian-dev. OPUS-MT's archives have them beside source.spm and
target.spm.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from heads.base.files import UserError

EOS, UNK = "</s>", "<unk>"
"""Names that Marian gives its end and unknown token."""


def read_vocabulary(path: Path) -> dict[str, int]:
    """The ids of subwords by name. Raises UserError unless all have one of their own, EOS and the unknown token too."""
    try:
        text = path.read_text(encoding="utf-8")
        entries = json.loads(text).items() if text.lstrip().startswith("{") else _entries(text)
        found = {name: int(number) for name, number in entries}
    except (OSError, yaml.YAMLError, ValueError, TypeError):
        raise UserError(f"{path} is not a vocabulary of Marian, names and their numbers: copy it again.") from None
    if len({*found.values()}) < len(found) or min(found.values(), default=-1) < 0:
        raise UserError(f"{path} does not give each subword a number of its own: copy it again.")
    for name, what in ((EOS, "end"), (UNK, "unknown")):
        if name not in found:
            raise UserError(f"{path} has no {what} token, {name}: take the vocabulary that Marian made.")
    return found


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Names and numbers in YAML as Marian writes it: one of each in a line, or a long name before its number.

    A reader of all YAML would take subwords such as `no`, `1` and `null` for something else, and rare letters for ends
    of lines.
    """
    name = ""
    for line in text.split("\n"):
        if line.startswith("? "):
            name = line[2:]
        elif line.strip() not in ("", "---") and not line.startswith("#"):
            before, _, number = line.rpartition(":")
            yield _name((before or name).strip(" \r")), number
            name = ""


def _name(written: str) -> str:
    if written.startswith("'"):
        return written[1:-1].replace("''", "'")
    if not written.startswith('"'):
        return written
    return str(yaml.safe_load(written)) if "\\" in written else written[1:-1]
