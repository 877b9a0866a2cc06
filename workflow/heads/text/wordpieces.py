"""Subwords of imported models that `tokenizers` segments: BERT's WordPieces, and any others in a `tokenizer.json`.

See Wu et al. 2016, sec. 4.1; those of a BART are of bytes (Radford et al. 2019, sec. 2.2). The file is a description
for that library, so text is segmented as before.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.interop.hub import DESCRIBED
from heads.text.special_ids import NAMELESS, UNK, nameless
from heads.text.stored import Stored, facts_beside, stored_at
from heads.text.vocabulary import FRAMED, PREFIX, ROWS, SUFFIX, Span, Vocabulary

WORD_PIECES, NAMES = "word_pieces", "names"
BYTES = "byte_subwords"
"""Marks a BART's subwords, with our ids in their description, in folders written until November 2026."""
FRAMED_WORDS: Mapping[str, Any] = {WORD_PIECES: True, FRAMED: True}
"""The facts beside the WordPieces of a BERT."""
GOES_ON, BLANK = "##", "\u2581"
"""Prefixes: in the vocabulary, of a subword that continues a word; when shown, of any other subword."""
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

    def __init__(self, model: Path, stored: Stored | None = None) -> None:
        """model, stored: as in `Vocabulary`."""
        self.path = model
        self.stored = stored or stored_at(model)
        facts = self.stored.facts
        try:
            self.framed = bool(facts.get(FRAMED))
            self.prefix, self.suffix = ([int(number) for number in facts.get(end, [])] for end in (PREFIX, SUFFIX))
            self.tokenizer: Any = library().Tokenizer.from_str(self.stored.content.decode("utf-8"))
            self.size = int(facts.get(ROWS, self.tokenizer.get_vocab_size()))
        except UserError:
            raise
        # tokenizers raises bare exceptions.
        except Exception as error:
            raise UserError(
                f"{model} holds no WordPieces, or it or {facts_beside(model).name} beside it is damaged: delete both "
                "and run the stage that made them again."
            ) from error

    def _plain(self, sentences: Iterable[str]) -> list[list[int]]:
        return [self._ended(one.ids) for one in self.tokenizer.encode_batch(list(sentences))]

    def _ended(self, ids: Iterable[int]) -> list[int]:
        """Ids of the prefix, of the subwords of a sentence and of the suffix."""
        return [*self.prefix, *ids, *self.suffix]

    def subword(self, index: int) -> str:
        """The written form of one subword."""
        name = self.tokenizer.id_to_token(index)
        return nameless(index) if name is None else str(name)

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
        return self._ended(cut.ids), [(0, 0)] * len(self.prefix) + spans + [(0, 0)] * len(self.suffix)


class DescribedSubwords(WordPieces):
    """The subwords of an imported model's own `tokenizer.json`; the names beside it give each of our ids its subword.

    What `tokenizers` finds in a text and the model has no row for is unknown.
    """

    def __init__(self, model: Path, stored: Stored | None = None) -> None:
        """model, stored: as in `Vocabulary`."""
        super().__init__(model, stored)
        described = range(self.tokenizer.get_vocab_size())
        self.names: list[str] = self.stored.facts.get(NAMES) or [self.tokenizer.id_to_token(i) for i in described]
        self.size = len(self.names)
        self.theirs = [self.tokenizer.token_to_id(name) for name in self.names]
        """The description's id for each of ours; None for those that it does not have."""
        self.ours = {number: place for place, number in enumerate(self.theirs)}
        self.of_bytes = isinstance(self.tokenizer.decoder, library().decoders.ByteLevel)

    def _ended(self, ids: Iterable[int]) -> list[int]:
        return super()._ended(self.ours.get(number, UNK) for number in ids)

    def subword(self, index: int) -> str:
        """The written form of one subword."""
        return self.names[index]

    def subwords(self, ids: Iterable[int]) -> list[str]:
        """The text of each subword; a blank before it is shown as U+2581."""
        names = [self.subword(int(number)) for number in ids]
        if not self.of_bytes:
            return names
        texts = [str(self.tokenizer.decoder.decode([name])) for name in names]
        return [BLANK + text[1:] if text.startswith(" ") else text for text in texts]

    def spans(self, sentence: str) -> tuple[list[int], list[Span]]:
        """Subword ids of a sentence, and the characters each covers: none for a blank that the text does not have."""
        ids, found = super().spans(sentence)
        spans = []
        for shown, (start, end) in zip(self.subwords(ids), found, strict=True):
            # `tokenizers` gives a blank that it puts before a word the word's first letter.
            put = shown == BLANK and sentence[start:end].strip().strip(BLANK)
            spans.append((start, start) if put else (start, end))
        return ids, spans

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of each sequence of subword ids, without special tokens."""
        theirs = ([self.theirs[int(number)] for number in sequence] for sequence in ids)
        return super().decode([number for number in sequence if number is not None] for sequence in theirs)


def word_pieces(described: Mapping[str, Any], order: Sequence[str]) -> Stored:
    """A BERT's description for `tokenizers`, with the subwords numbered by their place in `order`.

    It adds no special tokens to a text and truncates nothing: that is left to the code that makes examples of texts.
    Rows without a subword are at the end of `order`, and are not written.
    """
    number = {name: place for place, name in enumerate(order) if not NAMELESS.fullmatch(name)}
    # The order that `tokenizers` expects.
    added = sorted(described["added_tokens"], key=lambda one: number[one["content"]])
    changed = {
        **_alone(described),
        "added_tokens": [{**one, "id": number[one["content"]]} for one in added],
        "model": {**described["model"], "vocab": number},
    }
    return Stored(json.dumps(changed, ensure_ascii=False).encode(), {**FRAMED_WORDS, ROWS: len(order)})


def _alone(described: Mapping[str, Any]) -> dict[str, Any]:
    return {**described, "truncation": None, "padding": None, "post_processor": None}


def subwords_as_described(
    described: Mapping[str, Any], names: Sequence[str], prefix: Sequence[int], suffix: Sequence[int] = ()
) -> Stored:
    """A description as it is, and the name of each of our ids; texts begin with the ids `prefix`."""
    facts = {NAMES: [*names], PREFIX: [*prefix], SUFFIX: [*suffix]}
    return Stored(json.dumps(_alone(described), ensure_ascii=False).encode(), facts)


def described_subwords(folder: Path, vocab: str = "", merges: str = "") -> dict[str, Any]:
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
    return described


def byte_subwords(signs: Sequence[str], extras: Sequence[str]) -> dict[str, Any]:
    """A description for `tokenizers` in which each byte is a subword, after these signs and before further ones."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(sorted({*range(256)} - {*shown}))}
    tokenizers, names = library(), [*signs, *(letters[byte] for byte in range(256)), *extras]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({name: number for number, name in enumerate(names)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([*signs, *extras])
    described: dict[str, Any] = json.loads(made.to_str())
    return described


def numbered_by(described: Mapping[str, Any]) -> dict[str, int]:
    """The ids in a description by name, added subwords included; of two with the same name, the one that is used."""
    vocabulary = described["model"]["vocab"]
    if not isinstance(vocabulary, Mapping):
        vocabulary = {name: number for number, (name, _) in enumerate(vocabulary)}
    return {**vocabulary, **{one["content"]: one["id"] for one in described["added_tokens"]}}
