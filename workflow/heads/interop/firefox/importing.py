"""Convert a model in Marian's own format, such as Firefox's translators, to an equivalent one of ours.

Marian starts its decoder from a zero embedding and has no padding token: our BOS and padding are rows of zeros, and
their logits are so low that no other token loses any probability that a float could show.
V tokens of a vocabulary, D width.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.firefox.file import read
from heads.interop.firefox.items import MarianFile
from heads.interop.firefox.parts import MarianParts, find_parts, model_files
from heads.interop.firefox.search import searched_by_marian
from heads.interop.firefox.shape import MarianShape, check_tensors, shape_of
from heads.interop.firefox.vocabulary import EOS, UNK, read_vocabulary
from heads.interop.marian.importing import ACTIVATIONS
from heads.interop.numbering import NEVER_LIKELY, Numbering, language_prefix
from heads.interop.origin import Origin, Vocabularies
from heads.interop.original import OriginalFiles
from heads.model.shape import SSRU, ModelShape
from heads.model.transformer import Transformer
from heads.text.renumbering import renumbered
from heads.text.special_ids import BOS, PAD, named_first, nameless
from heads.text.stored import Stored
from heads.text.vocabulary import PREFIX, ROWS, pieces_of, read_segmenter

EPSILON = 1e-9
"""Epsilon of Marian's layer norms."""
NOTHING = -1
"""Row number of a token that Marian does not have."""
WORDS = ("<pad>", "<s>")
"""Names of those, unless the vocabulary has them."""
STACKS = {"encoder": ("self",), "decoder": ("self", "context")}
PARTS = {"query": "q", "key": "k", "value": "v", "output": "o"}


@dataclass(frozen=True, slots=True)
class FirefoxFolder:
    """The contents of a folder with a model in Marian's own format, read and checked."""

    path: Path
    parts: MarianParts
    file: MarianFile
    shape: MarianShape
    numberings: tuple[Numbering, Numbering]


def parts_of(files: OriginalFiles) -> MarianParts:
    """As `find_parts`."""
    return find_parts(files.place)


def read_firefox(files: OriginalFiles) -> FirefoxFolder:
    """Read a model folder of Firefox, translateLocally, Bergamot or Marian itself, or the model file in it.

    Raises UserError if it is not such a model, is damaged, or is of a kind that ours cannot be.
    """
    parts = files.once(parts_of)
    file = read(parts.model)
    shape = shape_of(parts.model, file.options())
    check_tensors(parts.model, file, shape)
    if shape.recurrent_norm or shape.final_norm != shape.pre_norm:
        raise UserError(f"{parts.model} has an unsupported arrangement of layer norms: give another model.")
    return FirefoxFolder(parts.model.parent, parts, file, shape, files.once(numberings_in, shape.vocabularies))


def numberings_in(files: OriginalFiles, sizes: tuple[int, int]) -> tuple[Numbering, Numbering]:
    """Our numberings, V + 2 ids, of the tokens of source and target. sizes: of the model's vocabularies.

    Raises UserError for a vocabulary with more tokens than the model, or without an EOS or unknown token.
    """
    parts = files.once(parts_of)
    paths, tokens = (parts.numbers, _in_numbers) if parts.numbers else (parts.vocabularies, _in_sentencepiece)
    source, target = (_numbering(path, *tokens(path), size) for path, size in zip(paths, sizes, strict=True))
    return source, target


def _in_numbers(path: Path) -> tuple[dict[str, int], int, int]:
    """The ids of tokens by name, and those of EOS and of the unknown token."""
    found = read_vocabulary(path)
    return found, found[EOS], found[UNK]


def _in_sentencepiece(path: Path) -> tuple[dict[str, int], int, int]:
    """The same of a SentencePiece model, which numbers its tokens as Marian does."""
    processor = read_segmenter(path)
    eos, unk = processor.eos_id(), processor.unk_id()
    if min(eos, unk) < 0:
        raise UserError(f"{path} has no {'end' if eos < 0 else 'unknown'} token: take the vocabulary that Marian made.")
    return {name: number for number, name in enumerate(pieces_of(processor))}, eos, unk


def _numbering(path: Path, subwords: Mapping[str, int], eos: int, unk: int, size: int) -> Numbering:
    last = max(subwords.values())
    if last >= size:
        raise UserError(f"{path} has {last + 1} tokens, but its model {size}: take both from the same place.")
    # Marian rounds the vocabulary size up; ids beyond the last token are never generated.
    names = [nameless(number) for number in range(size)]
    for name, number in subwords.items():
        names[number] = name
    others = [number for number in named_first(names) if number not in (eos, unk)]
    pad, start = (next(name for name in (word, f"{word[:-1]} of ours>") if name not in subwords) for word in WORDS)
    rows = (NOTHING, NOTHING, eos, unk, *others)
    return Numbering(rows, (pad, start, *(names[number] for number in rows[2:])))


def our_shape(folder: FirefoxFolder) -> ModelShape:
    """The model's shape as one of ours."""
    theirs = folder.shape
    heads = tuple(range(theirs.heads))
    layers = {"enc_self": theirs.encoder_layers, "dec_self": theirs.decoder_layers * (not theirs.recurrent)}
    return ModelShape(
        width=theirs.width,
        head_width=theirs.width // theirs.heads,
        feedforward=theirs.feed_forward,
        dropout=0.0,
        pre_norm=theirs.pre_norm,
        source_subwords=len(folder.numberings[0].rows),
        target_subwords=len(folder.numberings[1].rows),
        original_heads=theirs.heads,
        live_heads={kind: (heads,) * count for kind, count in {**layers, "dec_enc": theirs.decoder_layers}.items()},
        attention_biases=True,
        activation=ACTIVATIONS[theirs.activation],
        positions="tensor2tensor",
        norm_epsilon=EPSILON,
        tied_projection=theirs.tied_output,
        shared_embedding=theirs.one_embedding,
        decoder_past=SSRU if theirs.recurrent else "self_attention",
        nameless_subwords=folder.numberings[1].nameless,
    )


def model_of_firefox(folder: FirefoxFolder) -> Transformer:
    """Our Transformer with the weights of the folder, in evaluation mode."""
    tensors = folder.file.tensors()
    model = Transformer(our_shape(folder)).eval()
    weights = {ours: _weight(tensors[theirs], ours) for ours, theirs in weight_names(folder.shape)}
    weights |= _embeddings(folder, tensors)
    expected = model.state_dict()
    model.load_state_dict({name: weights[name] for name in expected})
    return model


def _weight(theirs: NDArray[np.float32], name: str) -> Tensor:
    """A weight of Marian in our layout; its matrices are input x output, its vectors 1 x output."""
    plain = torch.from_numpy(np.array(theirs))
    return plain.flatten() if theirs.shape[0] == 1 and not name.endswith("projection.weight") else plain.T.contiguous()


def _embeddings(folder: FirefoxFolder, tensors: dict[str, NDArray[np.float32]]) -> dict[str, Tensor]:
    """Both embeddings, the projection and its bias, with rows for our own tokens."""
    theirs, (source, target) = folder.shape, folder.numberings
    one = tensors["Wemb"] if theirs.one_embedding else None
    found = {
        "source_embedding.subwords.weight": _rows(tensors["encoder_Wemb"] if one is None else one, source),
        "target_embedding.subwords.weight": _rows(tensors["decoder_Wemb"] if one is None else one, target),
    }
    output = found["target_embedding.subwords.weight"]
    if not theirs.tied_output:
        output = _rows(np.ascontiguousarray(tensors["decoder_ff_logit_out_W"].T), target)
    size = theirs.vocabularies[1]
    bias = tensors["decoder_ff_logit_out_b"] if theirs.output_bias else np.zeros((1, size), np.float32)
    found |= {"projection.weight": output, "projection.bias": _rows(bias.T, target).flatten()}
    found["projection.bias"][[PAD, BOS]] = NEVER_LIKELY
    return found


def _rows(matrix: NDArray[np.float32], numbering: Numbering) -> Tensor:
    """Rows [V] in our order, with zeros for tokens that Marian does not have."""
    rows = torch.tensor(numbering.rows)
    found = torch.from_numpy(np.array(matrix))[rows.clamp(min=0)]
    found[rows == NOTHING] = 0.0
    return found


def weight_names(shape: MarianShape) -> Iterator[tuple[str, str]]:
    """Our name and Marian's name of every weight in the layers and in the norms after each stack, as pairs."""
    for stack, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{stack}.{layer}", f"{stack}_l{layer + 1}"
            for kind in STACKS[stack]:
                recurrent = kind == "self" and stack == "decoder" and shape.recurrent
                yield from _recurrence(ours, theirs) if recurrent else _attention(ours, theirs, kind)
                residual = "recurrence" if recurrent else "cross" if kind == "context" else "self"
                before = f"{theirs}_rnn" + "_ffn" * (not shape.pre_norm) if recurrent else f"{theirs}_{kind}_Wo"
                yield from _norm(f"{ours}.{residual}_residual.norm", before, pre_norm=shape.pre_norm)
            for part, number in (("inner", 1), ("outer", 2)):
                yield f"{ours}.feedforward.{part}.weight", f"{theirs}_ffn_W{number}"
                yield f"{ours}.feedforward.{part}.bias", f"{theirs}_ffn_b{number}"
            yield from _norm(f"{ours}.feedforward_residual.norm", f"{theirs}_ffn_ffn", pre_norm=shape.pre_norm)
        if shape.final_norm:
            yield from _norm(f"{stack}_norm", f"{stack}_top", pre_norm=False)


def _attention(ours: str, theirs: str, kind: str) -> Iterator[tuple[str, str]]:
    module = "cross_attention" if kind == "context" else "self_attention"
    for part, letter in PARTS.items():
        yield f"{ours}.{module}.{part}.weight", f"{theirs}_{kind}_W{letter}"
        yield f"{ours}.{module}.{part}.bias", f"{theirs}_{kind}_b{letter}"


def _recurrence(ours: str, theirs: str) -> Iterator[tuple[str, str]]:
    yield f"{ours}.recurrence.candidate.weight", f"{theirs}_rnn_W"
    yield f"{ours}.recurrence.forget.weight", f"{theirs}_rnn_Wf"
    yield f"{ours}.recurrence.forget.bias", f"{theirs}_rnn_bf"


def _norm(ours: str, theirs: str, *, pre_norm: bool) -> Iterator[tuple[str, str]]:
    for part, word in (("weight", "scale"), ("bias", "bias")):
        yield f"{ours}.{part}", f"{theirs}_ln_{word}{'_pre' if pre_norm else ''}"


def vocabularies_of(folder: FirefoxFolder, prefix: str = "") -> Vocabularies:
    """Both SentencePiece models in our ids, and where the model is from.

    Raises UserError if the vocabulary does not have the prefix, or needs one.
    """
    first = language_prefix(folder.parts.numbers[0], folder.numberings[0], prefix) if folder.parts.numbers else []
    found = []
    for side, ours, path in zip(SIDES, folder.numberings, folder.parts.vocabularies, strict=True):
        model = renumbered(path.read_bytes(), ours.names, path)
        found.append(Stored(model, {ROWS: len(ours.rows), PREFIX: first * (side == SIDES[0])}))
    files = model_files(folder.parts)
    # All files: an export back to Marian keeps what it does not change as it was.
    about = {"prefix": prefix, **searched_by_marian(folder.parts.model)}
    source, target = found
    return Vocabularies(source, target, Origin(folder.path, files, [path.name for path in files], about))
