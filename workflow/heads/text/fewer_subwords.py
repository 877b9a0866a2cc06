"""Take subwords out of a vocabulary: which must stay so that a text is cut as before, and the files without the others.

Ids are renumbered in their order, so special tokens keep theirs.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.text.fewer_pieces import merged_on_the_way, needed_pieces, with_pieces
from heads.text.special_ids import NAMELESS, UNK
from heads.text.stored import CHECKSUM, Stored
from heads.text.vocabulary import PREFIX, ROWS, SUFFIX, Vocabulary, pieces_of
from heads.text.wordpieces import NAMES, DescribedSubwords, WordPieces, library, numbered_by

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


def needed_names(described: Mapping[str, Any], used: Collection[str]) -> set[str]:
    """The names `used`, and those that a description needs besides to cut the same texts, and to write any.

    These are all added subwords, all bytes or single characters, those that BPE merges the used ones from and, of a
    unigram model, the most and the least likely: see `heads.text.fewer_pieces`.
    """
    model = described["model"]
    kind, ids = model.get("type") or "BPE", numbered_by(described)
    start, end = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    found = {*used} | {one["content"] for one in described["added_tokens"]}
    by_bytes = bool(model.get("byte_fallback"))
    letters = {letter for name in used for letter in name}
    for name in ids:
        plain = name.removeprefix(start).removesuffix(end)
        is_byte = len(name) == 6 and name.startswith("<0x")
        if is_byte or (len(plain or name) == 1 and (not by_bytes or plain in letters)):
            found.add(name)
    if model.get("unk_token") in ids:
        found.add(model["unk_token"])
    if kind == "Unigram":
        scores = dict(model["vocab"])
        if model.get("unk_id") is not None:
            found.add(model["vocab"][model["unk_id"]][0])
        found |= {choose(scores, key=scores.__getitem__) for choose in (min, max)}
    elif kind == "BPE":
        ranks = {pair: number for number, pair in enumerate(_pairs(model["merges"]))}

        def joined(first: str, second: str) -> str:
            return first + second.removeprefix(start)

        for name in [*found]:
            found.update(merged_on_the_way(_symbols(name, start, end), lambda *pair: ranks.get(pair), joined))
    return found


def needed_for_unknown_words(described: Mapping[str, Any], lines: Iterable[str]) -> set[str]:
    """The WordPieces that are in words of a text which no sequence of them spells, so that these stay unknown."""
    tokenizer = library().Tokenizer.from_str(json.dumps(described))
    model, found = described["model"], set[str]()
    if model.get("type") != "WordPiece":
        return found
    vocabulary, start = model["vocab"], model.get("continuing_subword_prefix", "##")
    for line in lines:
        cut = tokenizer.encode(line, add_special_tokens=False)
        unknown = {span for name, span in zip(cut.tokens, cut.offsets, strict=True) if name == model["unk_token"]}
        for first, last in unknown:
            word = line[first:last]
            word = tokenizer.normalizer.normalize_str(word) if tokenizer.normalizer else word
            for begin in range(len(word)):
                names = (start * (begin > 0) + word[begin:stop] for stop in range(begin + 1, len(word) + 1))
                found.update(name for name in names if name in vocabulary)
    return found


def with_names(described: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
    """The description with these names alone, numbered in their order."""
    ids = numbered_by(described)
    names = sorted((name for name in ids if name in kept), key=ids.__getitem__)
    number = {name: place for place, name in enumerate(names)}
    place = {ids[name]: new for name, new in number.items()}
    model = {**described["model"]}
    if isinstance(model["vocab"], Mapping):
        model["vocab"] = {name: number[name] for name in model["vocab"] if name in number}
    else:
        model["vocab"] = [entry for entry in model["vocab"] if entry[0] in number]
    if model.get("unk_id") is not None:
        model["unk_id"] = place[model["unk_id"]]
    if "merges" in model:
        start = model.get("continuing_subword_prefix") or ""
        left = zip(model["merges"], _pairs(model["merges"]), strict=True)
        model["merges"] = [
            merge
            for merge, (first, second) in left
            if {first, second, first + second.removeprefix(start)} <= number.keys()
        ]
    added = [{**one, "id": number[one["content"]]} for one in described["added_tokens"] if one["content"] in number]
    smaller = {**described, "model": model, "added_tokens": sorted(added, key=lambda one: int(one["id"]))}
    padding = smaller.get("padding")
    if padding and padding.get("pad_id") in place:
        smaller["padding"] = {**padding, "pad_id": place[padding["pad_id"]]}
    return {**smaller, "post_processor": _renumbered(described.get("post_processor"), number)}


def _renumbered(frame: Any, number: Mapping[str, int]) -> Any:
    """A post-processor with other ids: where it puts special tokens it has their names too."""
    if isinstance(frame, list):
        named = len(frame) == 2 and isinstance(frame[0], str) and isinstance(frame[1], int)
        return [frame[0], number[frame[0]]] if named else [_renumbered(one, number) for one in frame]
    if not isinstance(frame, Mapping):
        return frame
    changed = {key: _renumbered(value, number) for key, value in frame.items()}
    if "ids" in frame and "tokens" in frame:
        changed["ids"] = [number[name] for name in frame["tokens"]]
    return changed


def _pairs(merges: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The pairs of a list of merges, each written as two names or as one text with a blank between them."""
    for merge in merges:
        first, second = merge.split(" ") if isinstance(merge, str) else merge
        yield first, second


def _symbols(name: str, start: str, end: str) -> list[str]:
    """The symbols that a subword is merged from."""
    going_on = bool(start) and name.startswith(start) and name != start
    plain = name.removeprefix(start) if going_on else name
    ends = bool(end) and plain.endswith(end) and plain != end
    letters = [*(plain.removesuffix(end) if ends else plain)]
    symbols = [start * (going_on or place > 0) + letter for place, letter in enumerate(letters)]
    return [*symbols[:-1], symbols[-1] + end] if ends else symbols
