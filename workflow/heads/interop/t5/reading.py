"""Read the folder of a T5, mT5, UMT5, FLAN-T5, MADLAD-400 or ByT5 that transformers wrote, without transformers.

Its subwords are SentencePiece's and, after them, `<extra_id_99>` to `<extra_id_0>`, the gaps of pretraining; or bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from heads.base.files import UserError
from heads.interop.hub import CONFIG, DESCRIBED, GENERATION, TOKENIZER
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import added_to, check_numbers, contradicts, read_config, read_object
from heads.interop.saved_weights import SavedWeights, weight_called
from heads.interop.t5.format import CLASSES, DESCRIBING, SEGMENTER
from heads.text.added import Added, named_rows
from heads.text.vocabulary import pieces_of, read_segmenter
from heads.text.wordpieces import byte_subwords, described_subwords, numbered_by

T5: Mapping[str, Any] = {
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": None,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "dropout_rate": 0.1,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
    "pad_token_id": 0,
    "eos_token_id": 1,
}
MT5: Mapping[str, Any] = {**T5, "d_ff": 1024, "num_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu"}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"t5": T5, "mt5": MT5, "umt5": MT5}
"""Values of T5Config, MT5Config and UMT5Config (transformers 5.23) for keys that config.json leaves out."""
WHOLE = (
    *("d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads"),
    *("relative_attention_num_buckets", "relative_attention_max_distance"),
)
"""Keys whose values are positive integers."""
SHARED, PROJECTION = "shared.weight", "lm_head.weight"
EMBEDDINGS = (SHARED, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""transformers' names of the embedding, which both sides share; it is saved under one of them, or under all."""
EXTRA, EXTRAS = re.compile(r"<extra_id_\d+>"), 100
BYTES = "ByT5Tokenizer"


@dataclass(frozen=True, slots=True)
class T5Folder:
    """The contents of a T5's folder."""

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    """The search settings of its authors."""
    names: list[str]
    """[V] names of subwords by their original ids; rows of matrices without a subword have one too."""
    segmenter: bytes | None
    """The SentencePiece model; None where `described`, a description for `tokenizers`, cuts texts."""
    described: Mapping[str, Any]
    added: Mapping[str, Added]
    """Subwords that texts are split at before SentencePiece cuts the rest."""
    tensors: Mapping[str, Tensor]

    @property
    def special(self) -> dict[str, Any]:
        """The ids of padding, the decoder's start and the end, as the folder has them."""
        pad, eos = (self.config[f"{name}_token_id"] for name in ("pad", "eos"))
        told = (one.get("decoder_start_token_id") for one in (self.generation, self.config))
        start = next((number for number in told if number is not None), pad)
        return {"pad": pad, "start": start, "eos": eos}

    @property
    def scaled(self) -> bool:
        """Whether logits are scaled by width ** -0.5, as in T5 1.0; what transformers 5 writes says so by its own key.

        There, mT5 never does, and UMT5 does unless its config.json has untied embeddings, as its authors' has.
        """
        tied = self.config.get("tie_word_embeddings") is not False
        kind = self.config["model_type"]
        return bool(self.config.get("scale_decoder_outputs", tied)) if kind == "t5" else tied and kind == "umt5"


def read_t5(files: OriginalFiles) -> T5Folder:
    """Read and check the folder of a T5, with its weights.

    Raises UserError for another kind of model, a missing or damaged file, or pickled weights.
    """
    tensors = SavedWeights(files.place, CLASSES[files.once(config_of)["model_type"]])
    rows = len(weight_called(files.place, tensors, embedding_in(tensors)))
    return replace(files.once(described_t5, rows), tensors=tensors)


def embedding_in(tensors: Mapping[str, Tensor]) -> str:
    """The name that the embedding was saved under."""
    return next((name for name in EMBEDDINGS if name in tensors), SHARED)


def config_of(files: OriginalFiles) -> dict[str, Any]:
    """The config.json of a folder, with the defaults. Raises UserError for an encoder alone, or impossible values."""
    path, config = files.place / CONFIG, read_config(files, DESCRIBING)
    for name in config.get("architectures") or ():
        if name not in CLASSES.values() and name != "T5WithLMHeadModel":
            known = ", ".join(CLASSES.values())
            raise UserError(f"{path} describes a {name}, which does not write texts: give one of {known}.")
    config = {**DEFAULTS[config["model_type"]], **config}
    config["num_decoder_layers"] = config["num_decoder_layers"] or config["num_layers"]
    check_numbers(path, config, WHOLE, ("dropout_rate",))
    buckets, farthest = (config[f"relative_attention_{key}"] for key in ("num_buckets", "max_distance"))
    if buckets % 4 or buckets // 2 >= farthest:
        raise UserError(
            f"{path}: relative_attention_num_buckets is {buckets}: it must be a multiple of 4, and less than twice "
            f"relative_attention_max_distance, {farthest}."
        )
    return config


def described_t5(files: OriginalFiles, rows: int) -> T5Folder:
    """The contents of a folder without its weights. rows: of its matrices of subwords. Raises as `read_t5` does."""
    folder, config = files.place, files.once(config_of)
    segmenter, described, numbered = _subwords(folder, rows)
    names = named_rows(folder, numbered, rows, SHARED)
    generation = read_object(folder / GENERATION, config)
    found = T5Folder(folder, config, generation, names, segmenter, described, {}, {})
    ids = found.special
    inside = all(isinstance(number, int) and 0 <= number < rows for number in ids.values())
    if not inside or "<unk>" not in names or len({ids["pad"], ids["eos"], names.index("<unk>")}) < 3:
        raise UserError(
            f"{folder / CONFIG}: padding {ids['pad']}, the decoder's start {ids['start']} and the end {ids['eos']} are "
            "not ids of their own in the vocabulary, or that has no <unk>: copy all files from the same model again."
        )
    # The model's own signs are there for the model; nobody writes them into texts.
    own = {"<unk>", names[ids["pad"]], names[ids["eos"]], names[ids["start"]]}
    split = {name: Added(number, special=True) for number, name in enumerate(names) if EXTRA.fullmatch(name)}
    split |= {name: one for name, one in added_to(folder, DESCRIBED).items() if name in numbered}
    added = {name: one for name, one in split.items() if name not in own} if segmenter else {}
    return replace(found, added=added)


def _subwords(folder: Path, rows: int) -> tuple[bytes | None, Mapping[str, Any], dict[str, int]]:
    """SentencePiece's model or else a description of how texts are cut, and the ids of subwords by name."""
    told, path = read_object(folder / TOKENIZER, {}), folder / SEGMENTER
    described: Mapping[str, Any] = {}
    if path.is_file():
        pieces, extras = pieces_of(read_segmenter(path)), told.get("extra_ids", EXTRAS)
        if not isinstance(extras, int):
            raise UserError(f"{folder / TOKENIZER}: extra_ids is {extras!r}: it must be a whole number.")
        names = [*pieces, *(f"<extra_id_{number}>" for number in reversed(range(extras)))]
        numbered = {name: number for number, name in enumerate(names)}
        if not (folder / DESCRIBED).is_file() or not contradicts(read_object(folder / DESCRIBED), numbered):
            numbered |= {name: one.number for name, one in added_to(folder, DESCRIBED).items()}
            return path.read_bytes(), {}, _with_rows(numbered, rows)
    if (folder / DESCRIBED).is_file():
        described = described_subwords(folder)
    elif told.get("tokenizer_class") == BYTES:
        described = byte_subwords(("<pad>", "</s>", "<unk>"), [f"<extra_id_{i}>" for i in range(rows - 259)])
    else:
        raise UserError(f"{folder} has neither {SEGMENTER} nor {DESCRIBED}: copy it from where the model is from.")
    return None, described, _with_rows(numbered_by(described), rows)


def _with_rows(numbered: Mapping[str, int], rows: int) -> dict[str, int]:
    """The subwords without those gaps of pretraining that the model has no row for."""
    return {name: number for name, number in numbered.items() if number < rows or not EXTRA.fullmatch(name)}
