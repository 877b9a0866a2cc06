"""What a user asks to have measured: a text, and what is to be measured on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base.names import AUTO, BLEU


@dataclass(frozen=True)
class Text:
    """The text that a model is measured on. Without references, its own outputs are used instead."""

    sentences: Sequence[str]
    references: Sequence[str] | None = None
    trees: Path | None = None
    stanza: str = ""
    """The language whose Stanza models parse the sentences, if no trees are given."""
    shown: Sequence[int] = ()
    """Numbers, from 1, of the lines whose attention is shown; by default the first ones of suitable length."""
    masked: int = 25
    """The number of sentences on which each head is masked alone."""
    causal: bool = False
    """Whether causal gates are fitted as well."""
    max_subwords: int = 200
    """Lines with more subwords are left out, and those with longer references."""
    tokeniser: str = AUTO
    """Of BLEU and ROUGE-L, as in `tokeniser_of`."""
    metric: str = BLEU
    """What outputs are scored by, if they are text."""
