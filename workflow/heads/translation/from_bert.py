"""A BERT of transformers as a classifier or sentence encoder of ours: the same states, with its subwords renumbered.

Ours have padding, start, separator and unknown at ids of their own, where BERT has [PAD], [CLS], [SEP] and [UNK].
V subwords of the vocabulary, D width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from heads.base.files import UserError
from heads.base.marian import CONFIG
from heads.base.names import CLASSIFICATION, KINDS_OF
from heads.model.classifier import Classifier
from heads.model.encoder import Encoder
from heads.model.sentence_encoder import SentenceEncoder
from heads.model.shape import LEARNED, ModelShape, full_heads
from heads.translation.bert_folder import SAVED_BY, BertFolder

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
"""In the order of our special ids."""
NAMELESS = re.compile("LABEL_[0-9]+")
"""What transformers calls a label that nobody named."""
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
CLASSIFIER, POOLER = "classifier", "bert.pooler.dense"
SPREAD = 0.02
"""Standard deviation of what is still to be trained (Devlin et al. 2019, as released)."""
OUTSIDE = {
    "source_embedding.subwords": "bert.embeddings.word_embeddings",
    "source_embedding.positions": "bert.embeddings.position_embeddings",
    "source_embedding.types": "bert.embeddings.token_type_embeddings",
    "source_embedding.norm": "bert.embeddings.LayerNorm",
    "pooler": POOLER,
    "projection": CLASSIFIER,
}
"""Ours and theirs, of what no layer has."""
LAYER = {
    "self_attention.query": "attention.self.query",
    "self_attention.key": "attention.self.key",
    "self_attention.value": "attention.self.value",
    "self_attention.output": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feedforward.inner": "intermediate.dense",
    "feedforward.outer": "output.dense",
    "feedforward_residual.norm": "output.LayerNorm",
}
SUBWORDS = "source_embedding.subwords.weight"
EMBEDDING = ("embedding",)
"""What stands in the place of labels where a model names none."""
Model = TypeVar("Model", bound=Encoder)


def model_of_bert(folder: BertFolder, labels: Sequence[str] = (), seed: int = 0) -> Classifier:
    """Our model, in evaluation mode; `labels` as of `labels_of`.

    What `lacking` names is drawn from the seed and still to be trained. Raises UserError where weights are missing or
    do not fit the rest.
    """
    names = labels_of(folder, labels)
    model, tensors = Classifier(shape_of_bert(folder, len(names))), dict(folder.tensors)
    drawn = torch.Generator().manual_seed(seed)
    for part in lacking(folder):
        rows = len(names) if part == CLASSIFIER else model.shape.width
        tensors[f"{part}.weight"] = torch.randn(rows, model.shape.width, generator=drawn) * SPREAD
        tensors[f"{part}.bias"] = torch.zeros(rows)
    return _filled(model, folder, tensors)


def sentence_encoder_of_bert(folder: BertFolder) -> SentenceEncoder:
    """Our model of a BERT without a classifier, in evaluation mode. Raises UserError as `model_of_bert` does."""
    return _filled(SentenceEncoder(shape_of_bert(folder, 0)), folder, folder.tensors)


def _filled(model: Model, folder: BertFolder, tensors: Mapping[str, Tensor]) -> Model:
    """The model with weights by their names there, in evaluation mode."""
    expected = model.state_dict()
    weights = {ours: _taken(folder, tensors, theirs) for ours, theirs in names_of(model.shape)}
    if len(weights[SUBWORDS]) != len(folder.subwords):
        raise UserError(
            f"{folder.path} has a vocabulary that does not fit its weights, {len(folder.subwords)} subwords for "
            f"{len(weights[SUBWORDS])} rows: take all from the same model."
        )
    weights[SUBWORDS] = weights[SUBWORDS][order_of(folder)]
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            sizes = " and not ".join(" x ".join(map(str, part.shape)) for part in (weights[name], value))
            raise UserError(f"{folder.path}: the weights of {name} are {sizes}, as {CONFIG} would have it.")
    model.load_state_dict(weights)
    return model.eval()


def lacking(folder: BertFolder) -> list[str]:
    """Which of classifier and pooler a folder does not have, as an encoder may have neither; by their names there.

    Raises UserError for a classifier without a pooler: it was trained to read something else.
    """
    absent = [one for one in (CLASSIFIER, POOLER) if not {f"{one}.weight", f"{one}.bias"} & {*folder.tensors}]
    if absent == [POOLER]:
        raise UserError(
            f"{folder.path} has a classifier that reads no pooler, as that of a BertForTokenClassification: give the "
            f"folder of a {SAVED_BY}, or of a model without a classifier, which gets both anew."
        )
    return absent


def drawn_anew(folder: BertFolder) -> str:
    """What to say of a folder that lacks something; empty for one that is whole."""
    absent = lacking(folder)
    if not absent:
        return ""
    if POOLER not in absent:
        return "The model came without a classifier: it is drawn at random, and predicts nothing before it is trained."
    return (
        "The model came without a pooler and a classifier: they are drawn at random, and predict nothing before they "
        "are trained."
    )


def order_of(folder: BertFolder) -> list[int]:
    """Which of their ids stands at each of ours [V]. Raises UserError where a special subword is missing."""
    subwords = folder.subwords
    for name in SPECIAL:
        if name not in subwords:
            raise UserError(f"{folder.path} has no subword {name} in its vocabulary: copy that of the same model.")
    special = [subwords.index(name) for name in SPECIAL]
    return [*special, *(number for number in range(len(subwords)) if number not in {*special})]


def labels_of(folder: BertFolder, given: Sequence[str] = ()) -> tuple[str, ...]:
    """The labels in the order of the classifier: those given, else those that config.json names, in small letters.

    Raises UserError where there are none, too many or too few.
    """
    classifier = folder.tensors.get(f"{CLASSIFIER}.weight")
    known = folder.config.get("id2label")
    numbered = isinstance(known, dict) and all(number.isdecimal() for number in known)
    named = [str(known[number]) for number in sorted(known, key=int)] if numbered and known else []
    way = "name them, in the order of its classifier"
    if classifier is None and not given:
        raise UserError(f"{folder.path} has no classifier, so its labels are unknown: name those that it is to learn.")
    if not given and (not named or any(map(NAMELESS.fullmatch, named))):
        raise UserError(f"{folder.path / CONFIG} does not say what its labels mean: {way}.")
    labels = tuple(given) or tuple(name.lower() for name in named)
    if classifier is not None and len(classifier) != len(labels):
        raise UserError(f"{folder.path} has {len(classifier)} labels, and not {len(labels)}: {way}.")
    if len({*labels}) < max(2, len(labels)) or not all(map(LABEL.fullmatch, labels)):
        raise UserError(f"{folder.path} has the labels {', '.join(labels)}, not two or more different words: {way}.")
    return labels


def shape_of_bert(folder: BertFolder, labels: int) -> ModelShape:
    """Our shape of it, with so many labels or none. Raises UserError for what ours cannot have."""
    config = folder.config
    width, heads = config["hidden_size"], config["num_attention_heads"]
    if width % heads:
        raise UserError(f"{folder.path / CONFIG}: hidden_size {width} does not divide into {heads} heads.")
    return ModelShape(
        width=width,
        head_width=width // heads,
        feedforward=config["intermediate_size"],
        dropout=float(config["hidden_dropout_prob"]),
        attention_dropout=float(config["attention_probs_dropout_prob"]),
        pre_norm=False,
        source_subwords=len(folder.subwords),
        target_subwords=labels or len(EMBEDDING),
        original_heads=heads,
        live_heads=full_heads(layers=config["num_hidden_layers"], heads=heads, kinds=KINDS_OF[CLASSIFICATION]),
        attention_biases=True,
        activation=config["hidden_act"],
        positions=LEARNED,
        scaled_embedding=False,
        norm_epsilon=float(config["layer_norm_eps"]),
        labels=labels,
        token_types=config["type_vocab_size"],
        max_positions=config["max_position_embeddings"],
        embedding_norm=True,
    )


def names_of(shape: ModelShape) -> Iterator[tuple[str, str]]:
    """Our and their name of every weight."""
    for ours, theirs in OUTSIDE.items():
        if theirs in (POOLER, CLASSIFIER) and not shape.classifies:
            continue
        table = ours in ("source_embedding.subwords", "source_embedding.positions", "source_embedding.types")
        for part in ("weight",) if table else ("weight", "bias"):
            yield f"{ours}.{part}", f"{theirs}.{part}"
    for layer in range(shape.layers("enc_self")):
        for ours, theirs in LAYER.items():
            for part in ("weight", "bias"):
                yield f"encoder.{layer}.{ours}.{part}", f"bert.encoder.layer.{layer}.{theirs}.{part}"


def _taken(folder: BertFolder, tensors: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise UserError(f"{folder.path} has no weights called {name}: copy model.safetensors again.")
    return tensors[name]
