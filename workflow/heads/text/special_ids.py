"""The ids of the special tokens, the first ones of every vocabulary here, and names of rows without a subword."""

import re
from collections.abc import Sequence

PAD, BOS, EOS, UNK = range(4)
"""Padding, start, end, and unknown."""
NAMELESS = re.compile(r"<no subword \d+>")
"""The name of a row of an imported model's matrices that no subword has, as where they are padded to a round number."""


def named_first(names: Sequence[str]) -> list[int]:
    """The numbers of rows with these names in order, but those without a subword last."""
    return sorted(range(len(names)), key=lambda number: NAMELESS.fullmatch(names[number]) is not None)


def nameless(row: int) -> str:
    """The name of a row without a subword, which no text is ever cut into: see `NAMELESS`."""
    return f"<no subword {row}>"
