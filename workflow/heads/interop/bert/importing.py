"""Convert a BERT of transformers to our classifier or sentence encoder: same states, subwords renumbered.

Our padding, start, separator and unknown ids stand for BERT's [PAD], [CLS], [SEP] and [UNK].
V subwords of the vocabulary, D width.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from heads.base.files import UserError, normalise
from heads.base.names import ATTENTIONS, CLASSIFICATION, KINDS_OF
from heads.interop.bert.format import DESCRIBING
from heads.interop.bert.reading import SAVED_BY, BertFolder, pooling_of
from heads.interop.hub import CONFIG, saved_files
from heads.interop.origin import Origin, Vocabularies
from heads.interop.saved_folder import Model, filled
from heads.interop.saved_weights import weight_called
from heads.model.encoder_only import Classifier, SentenceEncoder
from heads.model.shape import LEARNED, POOLINGS, ModelShape
from heads.text.labels import spelled, stored_labels
from heads.text.special_ids import named_first
from heads.text.wordpieces import word_pieces

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
"""BERT's special tokens in the order of our special ids."""
NAMELESS = re.compile("LABEL_[0-9]+")
"""transformers' name for a label without a name."""
SINGLE = "single_label_classification"
"""The `problem_type` of a softmax over labels, which is also meant if there is none."""
OTHER_KINDS = ("ForTokenClassification", "ForMultipleChoice")
"""Endings of the names of architectures whose classifiers look like that of a BertForSequenceClassification."""
CLASSIFIER, POOLER = "classifier", "bert.pooler.dense"
SPREAD = 0.02
"""Standard deviation of newly drawn weights (Devlin et al. 2019, as released)."""
OUTSIDE = {
    "source_embedding.subwords": "bert.embeddings.word_embeddings",
    "source_embedding.positions": "bert.embeddings.position_embeddings",
    "source_embedding.types": "bert.embeddings.token_type_embeddings",
    "source_embedding.norm": "bert.embeddings.LayerNorm",
    "pooler": POOLER,
    "projection": CLASSIFIER,
}
"""Our names and BERT's of the modules outside the layers."""
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
"""Placeholder for the labels of a model without any."""


def model_of_bert(folder: BertFolder, labels: Sequence[str] = (), seed: int = 0) -> Classifier:
    """Our classifier with the weights of a BERT, in evaluation mode; `labels` as in `labels_of`.

    The parts in `lacking` are drawn from the seed and still have to be trained. Raises UserError if weights are missing
    or do not fit the rest.
    """
    names = labels_of(folder, labels)
    model, drawn = Classifier(shape_of_bert(folder, len(names))), dict[str, Tensor]()
    generator = torch.Generator().manual_seed(seed)
    for part in lacking(folder):
        rows = len(names) if part == CLASSIFIER else model.shape.width
        drawn[f"{part}.weight"] = torch.randn(rows, model.shape.width, generator=generator) * SPREAD
        drawn[f"{part}.bias"] = torch.zeros(rows)
    return _with_weights(model, folder, drawn)


def sentence_encoder_of_bert(folder: BertFolder) -> SentenceEncoder:
    """Our sentence encoder with the weights of a BERT, in evaluation mode. Raises UserError as `model_of_bert` does."""
    return _with_weights(SentenceEncoder(shape_of_bert(folder, 0)), folder, {})


def _with_weights(model: Model, folder: BertFolder, drawn: Mapping[str, Tensor]) -> Model:
    """The model filled with the folder's weights and those drawn, under BERT's names, in evaluation mode."""
    weights = {
        ours: drawn[theirs] if theirs in drawn else weight_called(folder.path, folder.tensors, theirs)
        for ours, theirs in weight_names(model.shape)
    }
    weights[SUBWORDS] = weights[SUBWORDS][order_of(folder)]
    return filled(model, folder.path, weights)


def lacking(folder: BertFolder) -> list[str]:
    """BERT's names of the classifier and the pooler, as far as the folder lacks them.

    Raises UserError for a classifier without a pooler, which was trained to read something else.
    """
    absent = [one for one in (CLASSIFIER, POOLER) if not {f"{one}.weight", f"{one}.bias"} & {*folder.tensors}]
    if absent == [POOLER]:
        raise UserError(
            f"{folder.path} has a classifier that reads no pooler, like a BertForTokenClassification: give the folder "
            f"of a {SAVED_BY}, or of a model without a classifier, which gets new ones of both."
        )
    return absent


def drawn_anew(folder: BertFolder) -> str:
    """Warning about the parts that a folder lacks; empty if it lacks none."""
    absent = lacking(folder)
    if not absent:
        return ""
    if POOLER not in absent:
        return "The model came without a classifier: a random one is added, which predicts nothing until it is trained."
    return (
        "The model came without a pooler and a classifier: random ones are added, which predict nothing until they "
        "are trained."
    )


def order_of(folder: BertFolder) -> list[int]:
    """BERT's id for each of our ids [V]; rows without a subword are last. Raises UserError without a special token."""
    subwords = folder.subwords
    for name in SPECIAL:
        if name not in subwords:
            raise UserError(f"{folder.path} has no subword {name} in its vocabulary: copy the one of the same model.")
    special = [subwords.index(name) for name in SPECIAL]
    return [*special, *(number for number in named_first(subwords) if number not in {*special})]


def labels_of(folder: BertFolder, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Labels in the order of the classifier: those given, else those in config.json, in lower case.

    Raises UserError if there are none, too many or too few, or if the classifier does not choose one of them.
    """
    _refuse_other_answers(folder)
    classifier = folder.tensors.get(f"{CLASSIFIER}.weight")
    known = folder.config.get("id2label")
    numbered = isinstance(known, dict) and all(number.isdecimal() for number in known)
    named = [str(known[number]) for number in sorted(known, key=int)] if numbered and known else []
    way = "name them with --labels (in an experiment: baseline.labels), in the order of its classifier"
    if classifier is None and not given:
        raise UserError(
            f"{folder.path} has no classifier, so its labels are unknown: name the ones to learn with --labels."
        )
    if not given and (not named or any(map(NAMELESS.fullmatch, named))):
        raise UserError(f"{folder.path / CONFIG} does not say what its labels mean: {way}.")
    labels = tuple(map(normalise, given)) or tuple(normalise(name).lower() for name in named)
    if classifier is not None and len(classifier) != len(labels):
        raise UserError(f"{folder.path} has {len(classifier)} labels, and not {len(labels)}: {way}.")
    if len({*map(spelled, labels)}) < max(2, len(labels)) or not all(label and label.isprintable() for label in labels):
        raise UserError(f"{folder.path} has the labels {', '.join(labels)}, not two or more different ones: {way}.")
    return labels


def _refuse_other_answers(folder: BertFolder) -> None:
    """Raise UserError for a classifier that does not choose one of several labels for a whole example."""
    if f"{CLASSIFIER}.weight" not in folder.tensors:
        return
    problem, kinds = folder.config.get("problem_type"), folder.config.get("architectures") or ()
    other = next((kind for kind in kinds if str(kind).endswith(OTHER_KINDS)), None)
    if problem not in (None, SINGLE):
        what = f"problem_type {problem!r}"
    elif other:
        what = f"the architecture {other}"
    elif len(folder.tensors[f"{CLASSIFIER}.weight"]) == 1:
        what = "one label, as for a regression"
    else:
        return
    raise UserError(
        f"{folder.path / CONFIG} describes a classifier with {what}: only those that choose one of several labels for "
        f"an example are supported, give a {SAVED_BY} of that kind."
    )


def shape_of_bert(folder: BertFolder, labels: int) -> ModelShape:
    """The BERT's shape as one of ours, with `labels` labels or 0. Raises UserError if ours cannot have it."""
    config = folder.config
    width, heads = config["hidden_size"], config["num_attention_heads"]
    if width % heads:
        raise UserError(f"{folder.path / CONFIG}: hidden_size {width} does not divide into {heads} heads.")
    live = tuple(tuple(head for head in range(heads) if head not in gone) for gone in _pruned(folder, heads))
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
        live_heads={kind: live if kind in KINDS_OF[CLASSIFICATION] else () for kind in ATTENTIONS},
        attention_biases=True,
        activation=config["hidden_act"],
        positions=LEARNED,
        scaled_embedding=False,
        norm_epsilon=float(config["layer_norm_eps"]),
        labels=labels,
        token_types=config["type_vocab_size"],
        max_positions=config["max_position_embeddings"],
        embedding_norm=True,
        pooling=POOLINGS[0] if labels else pooling_of(folder.path),
    )


def _pruned(folder: BertFolder, heads: int) -> list[set[int]]:
    """The heads that each layer's matrices lack, by `pruned_heads`. Raises UserError if there are no such heads."""
    pruned, layers = folder.config.get("pruned_heads") or {}, range(folder.config["num_hidden_layers"])
    try:
        gone = {int(layer): {*map(int, numbers)} for layer, numbers in pruned.items()}
    except (ValueError, TypeError, AttributeError):
        gone = {-1: set()}
    if not all(layer in layers and numbers <= {*range(heads)} for layer, numbers in gone.items()):
        raise UserError(
            f"{folder.path / CONFIG}: pruned_heads is {pruned}, which does not name heads by layer: copy it again."
        )
    return [gone.get(layer, set()) for layer in layers]


def weight_names(shape: ModelShape) -> Iterator[tuple[str, str]]:
    """Our name and BERT's name of every weight, as pairs."""
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


def vocabularies_of(folder: BertFolder, labels: Sequence[str]) -> Vocabularies:
    """WordPieces in our ids, labels, and where the model is from. labels: of a sentence encoder, EMBEDDING."""
    subwords = folder.subwords
    source = word_pieces(folder.word_pieces, [subwords[number] for number in order_of(folder)])
    return Vocabularies(
        source, stored_labels(labels), Origin(folder.path, saved_files(folder.path, DESCRIBING), DESCRIBING, {})
    )
