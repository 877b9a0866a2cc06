"""Remove subwords from a SentencePiece model so that texts of the others are cut as before.

A unigram model cuts a text by the best sum of scores (Kudo 2018): without pieces that are not used, the best stays the
best. A BPE model merges neighbours step by step (Sennrich et al. 2016), so all pieces on the way to one that is used
have to stay.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from pathlib import Path

from heads.base.files import UserError
from heads.text.renumbering import proto_of

SPECIAL = {"pad": "pad_id", "bos": "bos_id", "eos": "eos_id", "unk": "unk_id"}
"""The fields with the ids of special tokens."""


def needed_pieces(content: bytes, used: Collection[str]) -> set[str]:
    """The names `used`, and those that a SentencePiece model needs besides to cut the same texts, and to write any.

    These are all bytes or, without any, all single characters; single characters of `used`; pieces that users defined;
    of a unigram model, the most and the least likely piece, from which it derives the scores of pieces that users
    defined and of unknown characters; of a BPE model, all pieces that those `used` are merged from.
    """
    written, model = proto_of(content)
    kind = written.ModelProto.SentencePiece
    plain = {piece.piece: piece.score for piece in model.pieces if piece.type == kind.NORMAL}
    always = {piece.piece for piece in model.pieces if piece.type in (kind.BYTE, kind.USER_DEFINED)}
    by_bytes = any(piece.type == kind.BYTE for piece in model.pieces)
    letters = {letter for name in used for letter in name}
    found = {*used} | always | {name for name in plain if len(name) == 1 and (not by_bytes or name in letters)}
    if model.trainer_spec.model_type == written.TrainerSpec.UNIGRAM:
        return found | {choose(plain, key=plain.__getitem__) for choose in (min, max) if plain}
    if model.trainer_spec.model_type == written.TrainerSpec.BPE:
        merged = {
            piece.piece: piece.score
            for piece in model.pieces
            if piece.type in (kind.NORMAL, kind.USER_DEFINED, kind.UNUSED)
        }

        def rank(first: str, second: str) -> float | None:
            """The less, the sooner the two are merged; None: never."""
            return -merged[first + second] if first + second in merged else None

        for name in found & merged.keys():
            found = found.union(merged_on_the_way([*name], rank))
    return found


def merged_on_the_way(
    symbols: list[str], rank: Callable[[str, str], float | None], joined: Callable[[str, str], str] = str.__add__
) -> Iterator[str]:
    """What byte-pair encoding makes of the symbols of a subword, merge by merge.

    rank: of a pair, the lowest and leftmost is merged first; None: never. joined: the symbol that a pair becomes.
    Merges inside a subword are the same in any text, since none crosses its ends.
    """
    while True:
        ranks = [rank(*pair) for pair in pairwise(symbols)]
        best = min((number for number in ranks if number is not None), default=None)
        if best is None:
            return
        place = ranks.index(best)
        symbols = [*symbols[:place], joined(*symbols[place : place + 2]), *symbols[place + 2 :]]
        yield symbols[place]


def with_pieces(content: bytes, origin: Path, stays: Callable[[int, str], bool]) -> bytes:
    """The SentencePiece model of `content` with those pieces, by number and name, that stay, in their order.

    The unknown token always stays. Raises UserError if `content`, read from `origin`, is no SentencePiece model.
    """
    written, model = proto_of(content)
    if not model.pieces:
        raise UserError(f"{origin} is not a SentencePiece model, or is damaged: copy it again.")
    kind = written.ModelProto.SentencePiece
    kept = [
        number for number, piece in enumerate(model.pieces) if piece.type == kind.UNKNOWN or stays(number, piece.piece)
    ]
    smaller, place = written.ModelProto(), {old: new for new, old in enumerate(kept)}
    smaller.pieces.extend([model.pieces[number] for number in kept])
    # Field by field: sentences that a model is tested with when it is opened may be cut otherwise.
    for part in ("trainer_spec", "normalizer_spec", "denormalizer_spec"):
        if model.HasField(part):
            getattr(smaller, part).CopyFrom(getattr(model, part))
    spec = smaller.trainer_spec
    for field in SPECIAL.values():
        setattr(spec, field, place.get(getattr(spec, field), -1))
    spec.vocab_size = len(kept)
    return bytes(smaller.SerializeToString())
