"""Read a Marian folder written by `save_pretrained` of transformers, without transformers and without pickle.

V subwords of a vocabulary, D width.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from heads.base import marian
from heads.base.files import UserError
from heads.base.stand_ins import packed_files, refuse_pointers, way_to
from heads.model.encoder import Encoder
from heads.text.added import Added, added_in, named_rows
from heads.text.wordpieces import described_subwords, numbered_by
from heads.translation.saved_weights import SavedWeights, refuse_adapter, refuse_quantised, weight_called

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
Model = TypeVar("Model", bound=Encoder)
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


def read_marian(folder: Path) -> MarianFolder:
    """Read and check a Marian folder.

    Raises UserError for another kind of model, a missing or damaged file, or pickled weights.
    """
    if not folder.is_dir():
        raise UserError(marian.not_there(folder))
    config = read_config(folder, marian.DESCRIBING)
    if config.get("model_type") != "marian":
        kind = config.get("model_type", "a model of unknown type")
        raise UserError(
            f"{folder / marian.CONFIG} describes {kind}, which is not supported: give a model of type marian, m2m_100 "
            "(M2M100 and NLLB), bart, mbart, t5, mt5, umt5 or bert."
        )
    files = [folder / name for name in (marian.SOURCE_SPM, marian.TARGET_SPM)]
    described = (folder / marian.DESCRIBED).is_file() and not any(path.is_file() for path in files)
    for name in marian.NEEDED:
        if not described and not (folder / name).is_file():
            raise UserError(f"{folder} has no {name}: copy it from where the model is from.")
    config = {**DEFAULTS, **config}
    check_numbers(folder / marian.CONFIG, config, WHOLE, SHARES)
    known, added = _in_one_file(folder) if described else _in_files(folder, config)
    tensors = SavedWeights(folder, "MarianMTModel")
    source, target = (
        named_rows(folder, subwords, rows_of(folder, config, tensors, matrix), matrix)
        for subwords, matrix in zip(known, (SOURCE, TARGET), strict=True)
    )
    generation = read_object(folder / marian.GENERATION, config)
    segmenters = None if described else (files[0].read_bytes(), files[1].read_bytes())
    return MarianFolder(folder, config, generation, (source, target), segmenters, tensors, added)


def _in_one_file(folder: Path) -> Numbered:
    """The subwords of a tokenizer.json, which splits texts at added ones itself."""
    subwords = numbered_by(described_subwords(folder))
    return (subwords, subwords), {}


def _in_files(folder: Path, config: Mapping[str, Any]) -> Numbered:
    """The subwords of vocab.json and its like, with those that other files add."""
    separate = read_object(folder / marian.TOKENIZER, {}).get("separate_vocabs", False)
    source = read_vocabulary(folder / marian.VOCAB)
    target = read_vocabulary(folder / marian.TARGET_VOCAB) if separate else source
    # The model's own signs are not meant where a text has their names.
    own = [config[f"{name}_token_id"] for name in ("pad", "eos")]
    added = {name: one for name, one in added_to(folder).items() if one.number not in own and name != UNKNOWN}
    more = {name: one.number for name, one in added.items()}
    return ({**source, **more}, {**target, **more}), added


def added_to(folder: Path, *more: str) -> dict[str, Added]:
    """The subwords that a tokeniser's files add to its vocabulary, and those in it that they describe, by name.

    more: names of further files.
    """
    files = (marian.TOKENIZER, *more, marian.ADDED, marian.SPECIAL)
    return added_in(folder, {name: read_object(folder / name, {}) for name in files})


def saved_as(config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> str:
    """The name of a matrix of subwords in a folder, where equal ones are saved once."""
    shared = [SHARED] if config["share_encoder_decoder_embeddings"] else []
    every = [SOURCE, TARGET, PROJECTION] if shared else []
    others = {SOURCE: [*shared, *every], TARGET: [*shared, *every, PROJECTION], PROJECTION: [TARGET, *shared, *every]}
    return next((other for other in (name, *others[name]) if other in tensors), name)


def rows_of(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> int:
    """The number of rows of a matrix of subwords. Raises UserError if it is missing."""
    return len(weight_called(folder, tensors, saved_as(config, tensors, name)))


def read_config(folder: Path, names: Sequence[str], *, pruned: bool = False) -> dict[str, Any]:
    """The config.json of a folder that transformers wrote, of which an import reads the files of these names.

    pruned: whether a model may come with heads that were removed. Raises UserError for an adapter, a quantised model,
    heads that were removed, and files that are packed or pointers of Git LFS.
    """
    refuse_adapter(folder)
    refuse_pointers(folder / name for name in names)
    for name in names:
        if packed := packed_files((folder / name).parent, Path(name).name):
            raise UserError(f"{folder} has no {name}: unpack {packed[0].name}.")
    path = folder / marian.CONFIG
    config = read_object(path)
    refuse_quantised(path, config)
    if not pruned and config.get("pruned_heads"):
        raise UserError(f"{path} has pruned_heads, which only a BERT can have: give the model with all its heads.")
    return config


def check_numbers(path: Path, config: Mapping[str, Any], whole: Sequence[str], shares: Sequence[str]) -> None:
    """Raise UserError unless the keys `whole` are positive integers and the keys `shares` at least 0 and below 1."""
    for key in whole:
        if not isinstance(config[key], int) or isinstance(config[key], bool) or config[key] < 1:
            raise UserError(f"{path}: {key} is {config[key]!r}: it must be a positive integer.")
    for key in shares:
        if not isinstance(config[key], int | float) or isinstance(config[key], bool) or not 0 <= config[key] < 1:
            raise UserError(f"{path}: {key} is {config[key]!r}: it must be at least 0 and below 1.")


def read_object(path: Path, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object in a JSON file. Raises UserError if it is damaged, or is missing and nothing is given `otherwise`."""
    if otherwise is not None and not path.is_file():
        return otherwise
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UserError(f"{path.parent} has no {path.name}: {way_to(path.parent, path.name)}.") from None
    except ValueError as error:
        refuse_pointers([path])
        raise UserError(f"{path} is not valid JSON ({error}): copy it again.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} does not hold a JSON object: copy it again.")
    return content


def read_vocabulary(path: Path) -> dict[str, int]:
    """Ids of subwords by name; some may be left out."""
    ids = read_object(path)
    check_ids(path, ids.values())
    return ids


def check_ids(path: Path, ids: Collection[Any]) -> None:
    """Raise UserError unless the subwords in a file have whole numbers from 0 on, each its own."""
    whole = all(isinstance(number, int) and number >= 0 for number in ids)
    if not whole or len({*ids}) < len(ids):
        raise UserError(f"{path} does not number its subwords from 0 on, each once: copy it again.")


def filled(model: Model, folder: Path, weights: Mapping[str, Tensor]) -> Model:
    """The model with weights from a folder, in evaluation mode. Raises UserError if one has another shape."""
    expected = model.state_dict()
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            sizes = " and not ".join(" x ".join(map(str, part.shape)) for part in (weights[name], value))
            raise UserError(f"{folder}: the weights of {name} are {sizes}, as {marian.CONFIG} says: copy both again.")
    model.load_state_dict({name: weights[name] for name in expected})
    return model.eval()
