"""Byte-level BPE subwords (Radford et al. 2019, sec. 2.2), as in BART, segmented by `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.text.vocabulary import PREFIX
from heads.text.wordpieces import BLANK, WordPieces, library, write_word_pieces

BYTES = "byte_subwords"
DESCRIBED = "tokenizer.json"


class ByteSubwords(WordPieces):
    """The byte-level BPE vocabulary of an imported model."""

    def subwords(self, ids: Iterable[int]) -> list[str]:
        """The text of each subword; a blank before it is shown as U+2581."""
        decode = self.tokenizer.decoder.decode
        texts = [str(decode([self.subword(int(number))])) for number in ids]
        return [BLANK + text[1:] if text.startswith(" ") else text for text in texts]


def described_subwords(folder: Path, vocab: str, merges: str) -> dict[str, Any]:
    """A folder's `tokenizers` description, or one made from its files `vocab` and `merges`.

    Raises UserError if it is damaged.
    """
    tokenizers, path = library(), folder / DESCRIBED
    try:
        if path.is_file():
            made = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        else:
            path = folder / merges
            made = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(folder / vocab), str(path)))
            made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            made.decoder = tokenizers.decoders.ByteLevel()
            made.add_special_tokens([sign for sign in SIGNS if made.token_to_id(sign) is not None])
        described: dict[str, Any] = json.loads(made.to_str())
    # tokenizers raises bare exceptions.
    except Exception as error:
        raise UserError(f"{path} does not describe subwords ({error}): copy it again.") from error
    if described["model"]["type"] != "BPE" or "ByteLevel" not in json.dumps(described["pre_tokenizer"]):
        raise UserError(f"{path} describes subwords that are not byte-level BPE: copy it again.")
    return described


SIGNS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""Special tokens."""


def write_byte_subwords(model: Path, described: Mapping[str, Any], order: Sequence[str], first: int) -> None:
    """Write a description with the subwords numbered by their place in `order`; texts begin with the id `first`."""
    write_word_pieces(model, described, order, {BYTES: True, PREFIX: [first]})
