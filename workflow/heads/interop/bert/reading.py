"""Read a BERT folder written by `save_pretrained` of transformers, without transformers and without pickle.

Older folders call the weights and biases of norms gamma and beta; weights of a bare BertModel lack the prefix `bert.`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from heads.base.files import UserError
from heads.interop.bert.format import DESCRIBING, ENCODERS, MODULES, POOLING, VOCAB, WORD_PIECES, not_there
from heads.interop.hub import CONFIG, TOKENIZER
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import added_to, check_ids, check_numbers, read_config, read_object
from heads.interop.saved_weights import SavedWeights, weight_called
from heads.model.shape import POOLINGS
from heads.text.added import described_token, named_rows
from heads.text.wordpieces import library, numbered_by

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
}
"""Values of BertConfig (transformers 5.23, and 4 for the last but one) for keys that config.json leaves out."""
WHOLE = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "type_vocab_size"),
)
"""Keys whose values are positive integers."""
SHARES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps")
"""Keys whose values are at least 0 and below 1."""
ONLY: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "hidden_act": ("gelu", "relu"),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
}
"""Values of these keys that our models can reproduce."""
PARTS = ("Transformer", "Pooling", "Normalize")
"""The parts of a sentence encoder, the last of which only makes its vectors as long as all of ours are."""
WAY, MODE = "pooling_mode", "pooling_mode_"
"""A key for the way of pooling, and the beginning of older keys, one for each way."""
OLDER = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
"""Ways of pooling by the endings of the older keys."""
SAVED_BY = "BertForSequenceClassification"
PREFIX = "bert."
SUBWORDS = "bert.embeddings.word_embeddings.weight"


@dataclass(frozen=True, slots=True)
class BertFolder:
    """The contents of a BERT folder."""

    path: Path
    config: Mapping[str, Any]
    word_pieces: Mapping[str, Any]
    """The tokeniser, as `tokenizers` serialises it."""
    subwords: Sequence[str]
    """Subword names by id [V]; rows of the matrix without a subword have one too."""
    tensors: Mapping[str, Tensor]
    """By their names in a current BertForSequenceClassification."""


def read_bert(files: OriginalFiles) -> BertFolder:
    """Read and check a BERT folder.

    Raises UserError for another kind of model, a missing or damaged file, or pickled weights.
    """
    folder = files.place
    if not folder.is_dir():
        raise UserError(not_there(folder))
    config = {**DEFAULTS, **read_config(files, DESCRIBING, pruned=True)}
    for key, known in ONLY.items():
        if config.get(key) not in known:
            said, only = repr(config.get(key, "nothing")), " or ".join(map(repr, known))
            raise UserError(f"{folder / CONFIG}: {key} is {said}, not {only}: give the folder of a {SAVED_BY}.")
    check_numbers(folder / CONFIG, config, WHOLE, SHARES)
    described = _word_pieces(folder)
    tensors = SavedWeights(folder, SAVED_BY, _today)
    rows = len(weight_called(folder, tensors, SUBWORDS))
    names = named_rows(folder, numbered_by(described), rows, SUBWORDS)
    return BertFolder(folder, config, described, names, tensors)


def _today(name: str) -> str:
    """Current name of a weight."""
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        name = name.replace(old, new)
    inner = name.startswith(("embeddings.", "encoder.", "pooler."))
    return PREFIX + name if inner else name


def _word_pieces(folder: Path) -> dict[str, Any]:
    """The folder's tokeniser, as `tokenizers` serialises it."""
    if (folder / WORD_PIECES).is_file():
        path = folder / WORD_PIECES
        described = read_object(path)
    else:
        path = folder / VOCAB
        described = _of_words(folder)
    kind, vocabulary = (described.get("model") or {}).get("type"), (described.get("model") or {}).get("vocab")
    if kind != "WordPiece" or not isinstance(vocabulary, dict):
        raise UserError(f"{path} has a {kind} tokeniser, not the WordPiece of a BERT: copy it from the same model.")
    check_ids(path, vocabulary.values())
    added, entries = added_to(folder, WORD_PIECES), described.get("added_tokens") or []
    if path.name == VOCAB:  # a tokenizer.json has all of them itself
        known = {one["content"] for one in entries}
        entries += [
            {"id": one.number, **described_token(name, one)} for name, one in added.items() if name not in known
        ]
    return {**described, "added_tokens": entries}


def _of_words(folder: Path) -> dict[str, Any]:
    """Tokeniser that transformers builds from vocab.txt and tokenizer_config.json, as `tokenizers` serialises it."""
    path = folder / VOCAB
    try:
        subwords = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise UserError(f"{folder} has neither {WORD_PIECES} nor {VOCAB}: copy one from the same model.") from None
    except ValueError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): copy it again.") from None
    tokenizer = read_object(folder / TOKENIZER, {})
    numbers = {subword: number for number, subword in enumerate(subwords)}
    if len(numbers) < len(subwords):
        raise UserError(f"{path} has a subword twice: copy it again.")
    made = library().BertWordPieceTokenizer(
        numbers,
        lowercase=tokenizer.get("do_lower_case", True),
        strip_accents=tokenizer.get("strip_accents"),
        handle_chinese_chars=tokenizer.get("tokenize_chinese_chars", True),
    )
    described: dict[str, Any] = json.loads(made.to_str())
    return described


def pooling_of(folder: Path) -> str:
    """How a sentence encoder makes one vector of its states, by the files of sentence-transformers; else their mean.

    Raises UserError for parts or ways of pooling that ours does not have.
    """
    _refuse_part(folder)
    parts = _parts(folder)
    kinds = [kind for kind, _ in parts]
    strange = [kind for place, kind in enumerate(kinds) if PARTS[place : place + 1] != (kind,)]
    if strange or len(kinds) == 1:
        what = f"the part {strange[0]}" if strange else "no Pooling"
        raise UserError(
            f"{folder} is a sentence encoder with {what}: only {', '.join(PARTS)}, in this order, are supported."
        )
    if not parts:
        return POOLINGS[0]
    if Path(parts[0][1]).name:
        raise UserError(f"{folder} has its BERT in {parts[0][1]}: move the files from there to {folder}.")
    path = folder / Path(parts[1][1]).name / Path(POOLING).name
    pooling = read_object(path)
    ways = pooling.get(WAY) or [
        key.removeprefix(MODE) for key, on in pooling.items() if key.startswith(MODE) and on is True
    ]
    named = [OLDER.get(way, way) for way in ([ways] if isinstance(ways, str) else ways)] or [POOLINGS[0]]
    if len(named) > 1 or named[0] not in POOLINGS:
        known = ", ".join(POOLINGS)
        raise UserError(f"{path} pools by {' and '.join(map(str, named))}: only one of {known} is supported.")
    return named[0]


def _parts(folder: Path) -> list[tuple[str, str]]:
    """The kind and the subfolder of each part of a sentence encoder, in order; none if it does not say."""
    if not (folder / MODULES).is_file():
        places = sorted(path.name for path in folder.glob("[1-9]_*") if path.is_dir())
        return [(PARTS[0], ""), *((place.partition("_")[2], place) for place in places)] if places else []
    try:
        listed = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        return [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in listed]
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{folder / MODULES} does not list the parts of an encoder ({error!r}): copy it again."
        ) from None


def _refuse_part(folder: Path) -> None:
    """Raise UserError for a folder that is a part of a sentence encoder, whose other parts are beside it."""
    whole = folder.resolve().parent
    if (whole / MODULES).is_file() and (PARTS[0], folder.resolve().name) in _parts(whole):
        raise UserError(f"{folder} is a part of the encoder in {whole}: move the files from there to {whole}.")


def passed_over(folder: BertFolder) -> list[str]:
    """What a sentence encoder's authors do to a text that we do not, such as a prompt before it."""
    lower, prompts = (read_object(folder.path / name, {}) for name in ENCODERS[2:])
    found = []
    if lower.get("do_lower_case") and not (folder.word_pieces.get("normalizer") or {}).get("lowercase"):
        found.append("do_lower_case")
    if prompt := (prompts.get("prompts") or {}).get(prompts.get("default_prompt_name")):
        found.append(f"default_prompt_name {prompts['default_prompt_name']} ({prompt!r})")
    return found
