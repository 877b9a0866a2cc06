"""Take subwords out of a vocabulary: which must stay so that a text is cut as before, and the files without the others.

Ids are renumbered in their order, so special tokens keep theirs.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from heads.text.fewer_described import needed_for_unknown_words, needed_names, with_names
from heads.text.fewer_pieces import needed_pieces, with_pieces
from heads.text.special_ids import NAMELESS, UNK
from heads.text.stored import CHECKSUM, Stored
from heads.text.vocabulary import PREFIX, ROWS, SUFFIX, Vocabulary, pieces_of
from heads.text.wordpieces import NAMES, DescribedSubwords, WordPieces, numbered_by

NO_TEXT = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]|__\w+__|[a-z]{2,3}_[A-Z][A-Za-z]+")
"""Names of special tokens, bytes and languages: `<mask>`, `<0x0A>`, `<extra_id_7>`, `[SEP]`, `__de__`, `deu_Latn`."""


def all_subwords(vocabulary: Vocabulary) -> list[str]:
    """The written form of each id."""
    return [vocabulary.subword(number) for number in range(len(vocabulary))]


def staying(vocabulary: Vocabulary, used: Collection[int], lines: Iterable[str] = ()) -> list[int]:
    """The ids, in order, that a vocabulary needs for texts in which it uses those `used`.

    They are these, special tokens, languages, and what cuts texts as before and can write any: see
    `heads.text.fewer_pieces`. Rows without a subword go. lines: the text, whose unknown words are to stay unknown.
    """
    names, added = all_subwords(vocabulary), None if isinstance(vocabulary, WordPieces) else vocabulary.added
    kept = {*range(UNK + 1), *used, *vocabulary.prefix, *vocabulary.suffix}
    kept |= {
        number for number, name in enumerate(names) if NO_TEXT.fullmatch(name) or (added and added.fullmatch(name))
    }
    wanted = {names[number] for number in kept}
    if isinstance(vocabulary, WordPieces):
        described = description_of(vocabulary)
        needed = needed_names(described, wanted | needed_for_unknown_words(described, lines))
    else:
        content = vocabulary.stored.content
        # SentencePiece also cuts texts into pieces that the model has no row for.
        without_a_row = pieces_of(vocabulary.processor)[len(vocabulary) :]
        needed = needed_pieces(content, {*wanted, *without_a_row})
    return [
        number
        for number, name in enumerate(names)
        if number in kept or (name in needed and not NAMELESS.fullmatch(name))
    ]


def description_of(vocabulary: WordPieces) -> dict[str, Any]:
    """The description for `tokenizers` in the file of a vocabulary."""
    described: dict[str, Any] = json.loads(vocabulary.stored.content)
    return described


def fewer_of(vocabulary: Vocabulary, kept: Sequence[int]) -> Stored:
    """What a vocabulary with these ids alone, in this order, is made of."""
    place = {old: new for new, old in enumerate(kept)}
    facts = {name: value for name, value in vocabulary.stored.facts.items() if name not in (CHECKSUM, "sha256")}
    facts |= {end: [place[number] for number in facts[end]] for end in (PREFIX, SUFFIX) if end in facts}
    if ROWS in facts:
        facts[ROWS] = len(kept)
    if not isinstance(vocabulary, WordPieces):
        content, size = vocabulary.stored.content, len(vocabulary)
        return Stored(with_pieces(content, vocabulary.path, lambda i, _: i in place or i >= size), facts)
    names = [vocabulary.subword(number) for number in kept]
    if isinstance(vocabulary, DescribedSubwords):
        facts[NAMES] = names
    described = with_names(description_of(vocabulary), {*names})
    return Stored(json.dumps(described, ensure_ascii=False).encode(), facts)


def without_names(model: Path, gone: Collection[str]) -> bytes:
    """A third-party SentencePiece model without the subwords of these names."""
    return with_pieces(model.read_bytes(), model, lambda _, name: name not in gone)


def take_from_described(path: Path, gone: Collection[str]) -> None:
    """Take the subwords of these names out of a third-party description for `tokenizers`."""
    described = json.loads(path.read_text(encoding="utf-8"))
    smaller = with_names(described, numbered_by(described).keys() - gone)
    path.write_text(json.dumps(smaller, ensure_ascii=False, indent=2), encoding="utf-8")
