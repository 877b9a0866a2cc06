"""The methods of choosing heads, and the file that each one reads. Imported by the Snakefile, so kept light."""

from collections.abc import Iterable, Mapping

from heads.base.files import UserError
from heads.base.names import CAUSAL_FILE

RANDOM, STRATIFIED = DRAWN = ("random", "stratified")
"""Random choices, of all heads or within each kind of attention. Each has several draws: random1, random2 and so on."""

LIKE = "example_layer"
"""The method of which a stratified draw keeps as many heads of each kind of attention."""

SURGEON = "surgeon"
GRAMS = "grams.safetensors"
"""What the surgeon read of the outputs of all heads, by which the heads that stay make up for the others."""

METHOD_FILES = {
    "example": "importance.tsv",
    "example_layer": "importance.tsv",
    "token": "importance.tsv",
    "token_layer": "importance.tsv",
    "batch": "importance.tsv",
    "batch_layer": "importance.tsv",
    "signed": "importance.tsv",
    "signed_layer": "importance.tsv",
    "ablation": "ablation.dev.tsv",
    "confidence": "confidence.tsv",
    "lrp": "lrp.tsv",
    "causal": CAUSAL_FILE,
    SURGEON: "surgeon.tsv",
    "optimal": "importance.tsv",
    "reversed": "importance.tsv",
    RANDOM: "model.json",
    STRATIFIED: "importance.tsv",
}
"""The file of the unpruned model that each method reads. Importance has four forms, `_layer` divided by the l2 norm
of the layer; `reversed` is the reverse of `example_layer`, the way of Michel et al. 2019, and `optimal` keeps the most
importance, by sentence, that the limits allow; `lrp` uses absolute shares, see `heads.pruning.selection`; `surgeon`
takes as many heads from each layer as move the answers least."""


def files_read_by(methods: Iterable[str]) -> list[str]:
    """The files of the unpruned model that choices by these methods read, each once."""
    return list(dict.fromkeys(["model.json", *(METHOD_FILES[name] for name in methods)]))


def least_of(
    at_least: Mapping[str, int], heads: Mapping[tuple[str, int], int], where: str
) -> dict[tuple[str, int], int]:
    """The smallest number of heads to keep in each (attention, layer).

    A key such as `dec_enc` is for each of its layers, and `dec_enc.2` for one layer, which takes precedence. A kind of
    attention that the model lacks is passed over. heads: the number in each layer. where: the setting's name. Raises
    UserError for a layer that the model does not have, and for more heads than a layer has.
    """
    kinds = {kind for kind, _ in heads}
    least: dict[tuple[str, int], int] = {}
    for key in sorted(at_least, key=lambda key: "." in key):
        kind, _, number = key.partition(".")
        named = [layer for layer in heads if layer[0] == kind and number in ("", str(layer[1]))]
        if kind in kinds and not named:
            raise UserError(f"{where} names {key}, a layer that the model does not have: take it out.")
        if too_small := [layer for layer in named if at_least[key] > heads[layer]]:
            raise UserError(f"{where}.{key} is {at_least[key]}, but a layer has {heads[too_small[0]]} heads: lower it.")
        least |= dict.fromkeys(named, at_least[key])
    return {layer: number for layer, number in least.items() if number}
