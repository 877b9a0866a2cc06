"""The sizes of a Marian model, from its training options, and the names and shapes of its tensors.

Source: src/models/transformer.h, src/rnn/cells.h, and defaults of src/common/config_parser.cpp of browsermt/marian-dev.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.interop.firefox.items import OPTIONS, MarianFile

FEEDFORWARD = "transformer-dim-ffn"
"""The option with the number of hidden units of every feed-forward network."""
DEFAULTS: Mapping[str, Any] = {
    "type": "amun",
    "enc-depth": 1,
    "dec-depth": 1,
    "transformer-heads": 8,
    "dim-emb": 512,
    FEEDFORWARD: 2048,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-decoder-autoreg": "self-attention",
    "dec-cell": "gru",
    "layer-normalization": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": False,
    "output-omit-bias": False,
}
"""Marian's defaults for options that a file leaves out."""
KNOWN: Mapping[str, tuple[str | int, ...]] = {
    "type": ("transformer",),
    "transformer-ffn-activation": ("relu", "swish", "gelu"),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
}
"""The only supported values of these options."""
COUNTS = ("enc-depth", "dec-depth", "transformer-heads", "dim-emb", FEEDFORWARD)
FLAGS = ("layer-normalization", "tied-embeddings", "tied-embeddings-src", "tied-embeddings-all", "output-omit-bias")
OFF = (
    *("transformer-no-projection", "transformer-pool", "transformer-train-position-embeddings", "transformer-no-bias"),
    *("transformer-train-positions", "transformer-tied-layers", "transformer-no-affine", "transformer-rnn-projection"),
    *("transformer-decoder-dim-ffn", "transformer-decoder-ffn-depth", "ulr", "right-left", "lemma-dim-emb"),
)
"""Options that make it a different model, unless they are absent, false, zero or empty."""
NORMS = {("", "an"): False, ("n", "a"): True}
"""Whether norms come first, by the operations before and after a sub-layer; dropout, `d`, is left out."""
ALPHA = "_QuantMultA"
"""Ending of the names of activation multipliers, which are not part of the model."""


@dataclass(frozen=True, slots=True)
class MarianShape:
    """Sizes and variants of a Marian Transformer. Head width is width / heads; positions are sines, then cosines."""

    encoder_layers: int
    decoder_layers: int
    heads: int
    width: int
    feed_forward: int
    activation: str
    """relu, swish or gelu."""
    pre_norm: bool
    """Norms come before each sub-layer, not after its residual sum."""
    final_norm: bool
    """Each stack ends with a norm of its own."""
    recurrent: bool
    """The decoder has SSRU layers in place of self-attention."""
    recurrent_norm: bool
    """An SSRU normalises the outputs of its two matrices."""
    vocabularies: tuple[int, int]
    """Numbers of subwords of source and target."""
    one_embedding: bool
    """Source and target share one embedding."""
    tied_output: bool
    """The target embedding is also the output matrix."""
    output_bias: bool


def shape_of(path: Path, options: Mapping[str, Any]) -> MarianShape:
    """The sizes of a model from its options. Raises UserError, naming the file, for an unsupported model."""
    options = {**DEFAULTS, **options}
    _check(path, options)
    pre_norm, final_norm = _norms(path, options)
    recurrent = options["transformer-decoder-autoreg"] == "rnn"
    if recurrent and options["dec-cell"] != "ssru":
        _refuse(path, "dec-cell", options["dec-cell"], "the only supported recurrent layer is ssru")
    sizes: Any = options.get("dim-vocabs")
    if not isinstance(sizes, list) or len(sizes) != 2 or not all(map(_is_count, sizes)):
        _refuse(path, "dim-vocabs", sizes, "there must be two sizes, of source and target")
    one_embedding = options["tied-embeddings-all"] or options["tied-embeddings-src"]
    if one_embedding and sizes[0] != sizes[1]:
        _refuse(path, "dim-vocabs", sizes, "one embedding for both sides needs one size")
    return MarianShape(
        encoder_layers=options["enc-depth"],
        decoder_layers=options["dec-depth"],
        heads=options["transformer-heads"],
        width=options["dim-emb"],
        feed_forward=options[FEEDFORWARD],
        activation=options["transformer-ffn-activation"],
        pre_norm=pre_norm,
        final_norm=final_norm,
        recurrent=recurrent,
        recurrent_norm=recurrent and options["layer-normalization"],
        vocabularies=(sizes[0], sizes[1]),
        one_embedding=one_embedding,
        tied_output=options["tied-embeddings-all"] or options["tied-embeddings"],
        output_bias=not options["output-omit-bias"],
    )


def shapes_of(model: MarianShape) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor by its name; matrices are input x output."""
    width, (source, target) = model.width, model.vocabularies
    embeddings = {"Wemb": source} if model.one_embedding else {"encoder_Wemb": source, "decoder_Wemb": target}
    shapes: dict[str, tuple[int, ...]] = {name: (size, width) for name, size in embeddings.items()}
    if not model.tied_output:
        shapes["decoder_ff_logit_out_W"] = (width, target)
    if model.output_bias:
        shapes["decoder_ff_logit_out_b"] = (1, target)
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        if model.final_norm:
            shapes |= _norm(f"{stack}_top", "", width)
        for layer in range(1, layers + 1):
            before = f"{stack}_l{layer}"
            recurrent = stack == "decoder" and model.recurrent
            shapes |= _ssru(model, f"{before}_rnn") if recurrent else _attention(model, f"{before}_self")
            if stack == "decoder":
                shapes |= _attention(model, f"{before}_context")
            shapes |= _feed_forward(model, f"{before}_ffn")
    return shapes


def check_tensors(path: Path, file: MarianFile, model: MarianShape) -> None:
    """Raise UserError unless a file has each tensor of the model in its shape, and no others."""
    if model.encoder_layers + model.decoder_layers > len(file.items):
        raise UserError(f"{path} has fewer tensors than layers: copy it again.")
    found = {name: item.shape for name, item in file.items.items() if name != OPTIONS and not name.endswith(ALPHA)}
    wanted = shapes_of(model)
    for name in sorted(found.keys() | wanted.keys()):
        if name not in wanted:
            raise UserError(f"{path} has {name}, which its options do not name: only plain Transformers are supported.")
        if name not in found:
            raise UserError(f"{path} lacks {name}, which its options name: copy it again.")
        if found[name] != wanted[name]:
            raise UserError(f"{path}: {name} is {found[name]}, but {wanted[name]} by its options: copy it again.")


def _check(path: Path, options: Mapping[str, Any]) -> None:
    """Raise UserError for an option that is not supported, or that Marian itself could not use."""
    for key, values in KNOWN.items():
        if options[key] not in values:
            _refuse(path, key, options[key], f"only {' or '.join(map(str, values))} is supported")
    for key in OFF:
        if options.get(key):
            _refuse(path, key, options[key], "only models without it are supported")
    for key in COUNTS:
        if not _is_count(options[key]):
            _refuse(path, key, options[key], "it must be a whole number above 0")
    for key in FLAGS:
        if not isinstance(options[key], bool):
            _refuse(path, key, options[key], "it must be true or false")
    if options["dim-emb"] % options["transformer-heads"] or options["dim-emb"] % 2:
        _refuse(path, "dim-emb", options["dim-emb"], "it must be even and divisible by transformer-heads")


def _refuse(path: Path, key: str, value: object, wanted: str) -> None:
    """Raise UserError for an option."""
    raise UserError(f"{path} was trained with {key} {value!r}: {wanted}.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _norms(path: Path, options: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether norms come first, and whether each stack ends with one."""
    keys = [f"transformer-{name}" for name in ("preprocess", "postprocess", "postprocess-emb", "postprocess-top")]
    before, after, embedding, top = (str(options[key]).replace("d", "") for key in keys)
    if (before, after) not in NORMS:
        _refuse(path, keys[1], f"{options[keys[0]]} ... {options[keys[1]]}", "norms must be '' ... dan, or n ... da")
    if embedding:
        _refuse(path, keys[2], options[keys[2]], "only dropout is supported after embeddings")
    if top not in ("", "n"):
        _refuse(path, keys[3], options[keys[3]], "only a norm, or nothing, is supported")
    return NORMS[before, after], top == "n"


def _norm(name: str, ending: str, width: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Names and shapes of a layer norm's scale and bias."""
    return ((f"{name}_ln_{part}{ending}", (1, width)) for part in ("scale", "bias"))


def _attention(model: MarianShape, name: str) -> dict[str, tuple[int, ...]]:
    width = model.width
    affine = {f"{name}_{letter}{part}": (width if letter == "W" else 1, width) for letter in "Wb" for part in "qkvo"}
    return {**affine, **dict(_norm(f"{name}_Wo", "_pre" if model.pre_norm else "", width))}


def _feed_forward(model: MarianShape, name: str) -> dict[str, tuple[int, ...]]:
    width, inner = model.width, model.feed_forward
    affine = {"W1": (width, inner), "b1": (1, inner), "W2": (inner, width), "b2": (1, width)}
    norm = _norm(f"{name}_ffn", "_pre" if model.pre_norm else "", width)
    return {**{f"{name}_{part}": shape for part, shape in affine.items()}, **dict(norm)}


def _ssru(model: MarianShape, name: str) -> dict[str, tuple[int, ...]]:
    width = model.width
    parts = {"W": (width, width), "Wf": (width, width), "bf": (1, width)}
    if model.recurrent_norm:
        parts |= {"gamma": (1, width), "gammaf": (1, width)}
    norm = _norm(name, "_pre", width) if model.pre_norm else _norm(f"{name}_ffn", "", width)
    return {**{f"{name}_{part}": shape for part, shape in parts.items()}, **dict(norm)}
