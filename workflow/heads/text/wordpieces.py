"""Subwords of imported models that `tokenizers` segments: BERT's WordPieces, and byte-level BPE as in BART.

See Wu et al. 2016, sec. 4.1, and Radford et al. 2019, sec. 2.2. The file is a description for that library with our ids
in it, so text is segmented as before.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.seals import checksum
from heads.text.vocabulary import CHECKSUM, FRAMED, PREFIX, Span, Vocabulary, facts_beside, facts_of, write_model

WORD_PIECES, BYTES = "word_pieces", "byte_subwords"
FRAMED_WORDS: Mapping[str, Any] = {WORD_PIECES: True, FRAMED: True}
"""The facts beside the WordPieces of a BERT."""
GOES_ON, BLANK = "##", "\u2581"
"""Prefixes: in the vocabulary, of a subword that continues a word; when shown, of any other subword."""
DESCRIBED = "tokenizer.json"
SIGNS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""Special tokens of byte-level BPE."""


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


class ByteSubwords(WordPieces):
    """The byte-level BPE vocabulary of an imported model."""

    def subwords(self, ids: Iterable[int]) -> list[str]:
        """The text of each subword; a blank before it is shown as U+2581."""
        decode = self.tokenizer.decoder.decode
        texts = [str(decode([self.subword(int(number))])) for number in ids]
        return [BLANK + text[1:] if text.startswith(" ") else text for text in texts]


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


def described_subwords(folder: Path, vocab: str, merges: str) -> dict[str, Any]:
    """A folder's `tokenizers` description, or one of its `vocab` and `merges`. Raises UserError if it is damaged."""
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


def write_byte_subwords(model: Path, described: Mapping[str, Any], order: Sequence[str], first: int) -> None:
    """Write a description with the subwords numbered by their place in `order`; texts begin with the id `first`."""
    write_word_pieces(model, described, order, {BYTES: True, PREFIX: [first]})
