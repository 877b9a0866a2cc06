"""BERT's WordPieces (Wu et al. 2016, sec. 4.1), segmented by the `tokenizers` library, with ids in our order.

The file is a description for `tokenizers` with other ids in it, so text is segmented as before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.seals import checksum
from heads.text.vocabulary import CHECKSUM, FRAMED, PREFIX, Span, Vocabulary, facts_beside, facts_of, write_model

WORD_PIECES = "word_pieces"
FRAMED_WORDS: Mapping[str, Any] = {WORD_PIECES: True, FRAMED: True}
"""The facts beside the WordPieces of a BERT."""
GOES_ON, BLANK = "##", "\u2581"
"""Prefixes: in the vocabulary, of a subword that continues a word; when shown, of any other subword."""


def library() -> Any:
    """The module `tokenizers`. Raises UserError if it is not installed."""
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise UserError('tokenizers is not installed: pip install "heads[import]".') from error


class WordPieces(Vocabulary):
    """The WordPieces of an imported model, framed for examples, or with a prefix before each text."""

    def __init__(self, model: Path) -> None:
        self.path = model
        try:
            content = model.read_bytes()
            facts = facts_of(model)
            if facts[CHECKSUM] != checksum([content]):
                raise ValueError("its checksum is wrong")
            self.framed, self.prefix = bool(facts.get(FRAMED)), [int(number) for number in facts.get(PREFIX, [])]
            self.suffix = []
            self.tokenizer: Any = library().Tokenizer.from_str(content.decode("utf-8"))
            self.size = int(self.tokenizer.get_vocab_size())
        except UserError:
            raise
        # tokenizers raises bare exceptions.
        except Exception as error:
            raise UserError(
                f"{model} holds no WordPieces, or it or {facts_beside(model).name} beside it is damaged: delete both "
                "and run the stage that made them again."
            ) from error

    def _plain(self, sentences: Iterable[str]) -> list[list[int]]:
        return [[*self.prefix, *one.ids] for one in self.tokenizer.encode_batch(list(sentences))]

    def subword(self, index: int) -> str:
        """The written form of one subword."""
        return str(self.tokenizer.id_to_token(index))

    def subwords(self, ids: Iterable[int]) -> list[str]:
        """The text of each subword; a blank before it is shown as U+2581."""
        found = [self.subword(int(number)) for number in ids]
        return [name.removeprefix(GOES_ON) if name.startswith(GOES_ON) else BLANK + name for name in found]

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of each sequence of subword ids, without special tokens."""
        return [str(self.tokenizer.decode([int(i) for i in sequence])) for sequence in ids]

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        """Subword ids of a sentence, and the characters each subword covers."""
        cut = self.tokenizer.encode(sentence)
        spans = [(int(start), int(end)) for start, end in cut.offsets]
        return [*self.prefix, *cut.ids], [(0, 0)] * len(self.prefix) + spans


def write_word_pieces(
    model: Path, described: Mapping[str, Any], order: Sequence[str], facts: Mapping[str, Any] = FRAMED_WORDS
) -> None:
    """Write a description for `tokenizers` with the subwords numbered by their place in `order`.

    It adds no special tokens to a text and truncates nothing: that is left to the code that makes examples of texts.
    """
    number = {name: place for place, name in enumerate(order)}
    # The order that `tokenizers` expects.
    added = sorted(described["added_tokens"], key=lambda one: number[one["content"]])
    changed = {
        **described,
        "truncation": None,
        "padding": None,
        "post_processor": None,
        "added_tokens": [{**one, "id": number[one["content"]]} for one in added],
        "model": {**described["model"], "vocab": number},
    }
    write_model(model, json.dumps(changed, ensure_ascii=False).encode(), facts)
