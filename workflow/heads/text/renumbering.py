"""Reorder the subwords of an imported SentencePiece model so that its ids match the rows of a translation model.

Text is segmented as before. Subwords without a row go to the end, where `heads.text.vocabulary` treats them as unknown;
rows without a subword in the SentencePiece model get one that never occurs in segmented text.
"""

from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.text.special_ids import BOS, EOS, PAD, UNK


def proto_of(content: bytes) -> tuple[Any, Any]:
    """The module of SentencePiece's messages, and the model of `content`; an empty one if it is none.

    Raises UserError without protobuf.
    """
    try:
        message: Any = import_module("google.protobuf.message")
        written: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    except ImportError as error:
        raise UserError('protobuf is not installed: pip install "heads[import]".') from error
    model = written.ModelProto()
    try:
        model.ParseFromString(content)
    except message.DecodeError:
        model.Clear()
    return written, model


def renumbered(
    content: bytes, names: Sequence[str], origin: Path, signs: Collection[int] = (), added: Collection[int] = ()
) -> bytes:
    """The SentencePiece model of `content`, read from `origin`, with `names` for its first ids.

    The first four of them are padding, start, end and unknown; `signs` are the ids of further special tokens, `added`
    those of subwords that texts are split at before. Raises UserError if it is not a SentencePiece model.
    """
    written, model = proto_of(content)
    kind = written.ModelProto.SentencePiece
    cut_out = {piece.piece: piece for piece in model.pieces if piece.type not in (kind.CONTROL, kind.UNKNOWN)}
    if not cut_out:
        raise UserError(f"{origin} is not a SentencePiece model, or is damaged: copy it again.")
    # A BPE model would still merge through UNUSED subwords; a unigram model leaves them out.
    unigram = model.trainer_spec.model_type == written.TrainerSpec.UNIGRAM
    never = kind.UNUSED if unigram else kind.CONTROL
    # CONTROL is no text when it is decoded.
    special = dict.fromkeys(added, kind.UNUSED if unigram else kind.USER_DEFINED)
    special |= {**dict.fromkeys((PAD, BOS, EOS, *signs), kind.CONTROL), UNK: kind.UNKNOWN}
    found = [
        cut_out[name]
        if name in cut_out and number not in special
        else kind(piece=name, score=0.0, type=special.get(number, never))
        for number, name in enumerate(names)
    ]
    known = {*names}
    found += [piece for name, piece in cut_out.items() if name not in known]
    copies = [kind.FromString(piece.SerializeToString()) for piece in found]
    del model.pieces[:]
    model.pieces.extend(copies)
    spec = model.trainer_spec
    spec.pad_id, spec.bos_id, spec.eos_id, spec.unk_id = PAD, BOS, EOS, UNK
    spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece = (names[i] for i in (PAD, BOS, EOS, UNK))
    spec.vocab_size = len(copies)
    return bytes(model.SerializeToString())
