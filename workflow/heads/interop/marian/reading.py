"""Read a Marian folder written by `save_pretrained` of transformers, without transformers and without pickle.

V subwords of a vocabulary, D width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from heads.base.files import UserError
from heads.interop import hub
from heads.interop.formats import MODEL_TYPES
from heads.interop.marian.format import DESCRIBING, NEEDED, SOURCE_SPM, TARGET_SPM, TARGET_VOCAB, not_there
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import added_to, check_numbers, read_config, read_object, read_vocabulary
from heads.interop.saved_weights import SavedWeights, weight_called
from heads.text.added import Added, named_rows
from heads.text.wordpieces import described_subwords, numbered_by

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 58101,
    "decoder_vocab_size": None,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "d_model": 1024,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "decoder_start_token_id": 58100,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
}
"""Values of MarianConfig (transformers 5.23) for keys that config.json leaves out."""
WHOLE = (
    *("vocab_size", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim", "d_model"),
    *("encoder_attention_heads", "decoder_attention_heads"),
)
"""Keys whose values are positive integers."""
SHARES = ("dropout", "attention_dropout")
"""Keys whose values are at least 0 and below 1."""
SHARED, SOURCE, TARGET, PROJECTION = (
    *("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
    "lm_head.weight",
)
"""transformers' names of the matrices with a row for each subword."""
UNKNOWN = "<unk>"
Numbered = tuple[tuple[dict[str, int], dict[str, int]], dict[str, Added]]
"""Original ids of source and target subwords by name, and those of them that texts are split at."""


@dataclass(frozen=True, slots=True)
class MarianFolder:
    """The contents of a Marian folder."""

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    """The search settings of its authors."""
    vocabularies: tuple[list[str], list[str]]
    """[V] subword names of source and target by their original ids; rows of matrices without a subword have one too."""
    segmenters: tuple[bytes, bytes] | None
    """SentencePiece models of source and target; None where tokenizer.json, or a list of merges, cuts texts."""
    tensors: Mapping[str, Tensor]
    added: Mapping[str, Added]
    """Subwords that texts are split at before SentencePiece cuts the rest."""

    @property
    def starts_and_ends(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Of source and target, the original ids in the places of our BOS and EOS."""
        both = self.config["decoder_start_token_id"], self.config["eos_token_id"]
        return both, both


def read_marian(files: OriginalFiles) -> MarianFolder:
    """Read and check a Marian folder.

    Raises UserError for another kind of model, a missing or damaged file, or pickled weights.
    """
    folder = files.place
    if not folder.is_dir():
        raise UserError(not_there(folder))
    config = read_config(files, DESCRIBING)
    if config.get("model_type") != "marian":
        kind = config.get("model_type", "a model of unknown type")
        *others, last = reversed(MODEL_TYPES)
        raise UserError(
            f"{folder / hub.CONFIG} describes {kind}, which is not supported: give a model of type {', '.join(others)} "
            f"(which NLLB is) or {last}."
        )
    segmenters = [folder / name for name in (SOURCE_SPM, TARGET_SPM)]
    described = (folder / hub.DESCRIBED).is_file() and not any(path.is_file() for path in segmenters)
    for name in NEEDED:
        if not described and not (folder / name).is_file():
            raise UserError(f"{folder} has no {name}: copy it from where the model is from.")
    config = {**DEFAULTS, **config}
    check_numbers(folder / hub.CONFIG, config, WHOLE, SHARES)
    known, added = _in_one_file(folder) if described else _in_files(folder, config)
    tensors = SavedWeights(folder, "MarianMTModel")
    source, target = (
        named_rows(folder, subwords, rows_of(folder, config, tensors, matrix), matrix)
        for subwords, matrix in zip(known, (SOURCE, TARGET), strict=True)
    )
    generation = read_object(folder / hub.GENERATION, config)
    cut = None if described else (segmenters[0].read_bytes(), segmenters[1].read_bytes())
    return MarianFolder(folder, config, generation, (source, target), cut, tensors, added)


def _in_one_file(folder: Path) -> Numbered:
    """The subwords of a tokenizer.json, which splits texts at added ones itself."""
    subwords = numbered_by(described_subwords(folder))
    return (subwords, subwords), {}


def _in_files(folder: Path, config: Mapping[str, Any]) -> Numbered:
    """The subwords of vocab.json and its like, with those that other files add."""
    separate = read_object(folder / hub.TOKENIZER, {}).get("separate_vocabs", False)
    source = read_vocabulary(folder / hub.VOCAB)
    target = read_vocabulary(folder / TARGET_VOCAB) if separate else source
    # The model's own signs are not meant where a text has their names.
    own = [config[f"{name}_token_id"] for name in ("pad", "eos")]
    added = {name: one for name, one in added_to(folder).items() if one.number not in own and name != UNKNOWN}
    more = {name: one.number for name, one in added.items()}
    return ({**source, **more}, {**target, **more}), added


def saved_as(config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> str:
    """The name of a matrix of subwords in a folder, where equal ones are saved once."""
    shared = [SHARED] if config["share_encoder_decoder_embeddings"] else []
    every = [SOURCE, TARGET, PROJECTION] if shared else []
    others = {SOURCE: [*shared, *every], TARGET: [*shared, *every, PROJECTION], PROJECTION: [TARGET, *shared, *every]}
    return next((other for other in (name, *others[name]) if other in tensors), name)


def rows_of(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> int:
    """The number of rows of a matrix of subwords. Raises UserError if it is missing."""
    return len(weight_called(folder, tensors, saved_as(config, tensors, name)))
