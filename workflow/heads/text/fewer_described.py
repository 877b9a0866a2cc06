"""Remove subwords from a description for `tokenizers` so that texts of the others are cut as before."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from heads.text.fewer_pieces import merged_on_the_way
from heads.text.wordpieces import library, numbered_by


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
