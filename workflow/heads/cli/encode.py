"""Encode texts into subword ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heads.base.files import UserError
from heads.cli._flags import Workers
from heads.cli._signature import Written
from heads.text.encoding import encode_file, vocabulary_or_labels


def run(
    text: Annotated[Sequence[Path], "one sentence, example or label per line"],
    bpe: Annotated[Sequence[Path], "SentencePiece model or labels of each text"],
    tokens: Annotated[Sequence[Path], Written(), "token file of each, to write"],
    threads: Workers = 1,
) -> None:
    """Encode and write."""
    if not len(text) == len(bpe) == len(tokens):
        raise UserError("--text, --bpe and --tokens differ in number: give a model and a token file for each text.")
    for read, subwords, written in zip(text, bpe, tokens, strict=True):
        encode_file(read, vocabulary_or_labels(subwords), written, threads)
