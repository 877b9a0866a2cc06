"""The folder of a trained model, in results/ or exported: weights with the model's shape, and facts about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heads.base.files import UserError, write_json_with_checksum
from heads.base.names import WITH_GATES
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.encoder import Encoder
from heads.model.encoder_only import Classifier, ExampleEncoder, SentenceEncoder
from heads.model.head_removal import prune, read_open_heads, run_at
from heads.model.shape import FACTS, NO_SHAPE, ModelShape, check_answers
from heads.model.transformer import Transformer

WEIGHTS, HEADS, GATES_LOG = "model.safetensors", "heads.tsv", "gates.jsonl"


def model_of(shape: ModelShape) -> Encoder:
    """A newly initialised model of this shape: it translates if it has a decoder, else it classifies or embeds."""
    if shape.encoder_only:
        return Classifier(shape) if shape.classifies else SentenceEncoder(shape)
    return Transformer(shape)


def save_folder(model: Encoder, folder: Path, facts: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Write a model's folder: its weights, with its shape and training facts inside, and these as JSON too.

    The JSON also holds the provenance; it is for people and for code that needs no weights. Any shape and provenance
    in `facts` are left out, as they are those of another model, which this one was made from.
    """
    others = {key: value for key, value in facts.items() if key not in ("shape", "provenance")}
    content = {"shape": model.shape.as_dict(), **others}
    save_tensors(folder / WEIGHTS, model.state_dict(), content)
    write_json_with_checksum(folder / FACTS, {**content, "provenance": provenance})


def load_model(folder: Path, *, with_closed: bool = False) -> Encoder:
    """The model in a folder, on the CPU and in evaluation mode, without the heads that its table marks as closed.

    In a run with gates those heads are still in the matrices, and the table must exist; in all other folders they have
    already been removed. `with_closed` keeps them. Raises UserError if the folder has no complete model.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(
            f"{folder} has no {WEIGHTS}: give the folder of a trained model, such as results/demo/baseline/seed-1, "
            "or an exported one."
        )
    weights, notes = load_tensors(path)
    try:
        model = model_of(ModelShape.from_dict(notes["shape"])).eval()
    except (*NO_SHAPE, RuntimeError) as error:
        raise UserError(f"{path} does not hold a model: delete it and run its stage again.") from error
    _put(weights, model, path)
    heads, run = folder / HEADS, run_at(folder)
    has_gates = (run is not None and run.kind in WITH_GATES) or (folder / GATES_LOG).exists()
    if with_closed or not (has_gates or heads.exists()):
        return model
    return prune(model, read_open_heads(heads, model.shape))


def load_answering(folder: Path) -> Encoder:
    """The model in a folder, from `load_model`. Raises UserError if it embeds sentences, as `check_answers` says."""
    model = load_model(folder)
    check_answers(model.shape, folder)
    return model


def load_folder(folder: Path, *, with_closed: bool = False) -> Transformer:
    """The translation model in a folder, from `load_model`. Raises UserError if it does not translate."""
    return check_translates(load_model(folder, with_closed=with_closed), folder)


def check_translates(model: Encoder, folder: Path) -> Transformer:
    """The model of a folder. Raises UserError if it does not translate."""
    if not isinstance(model, Transformer):
        does = "classifies" if model.shape.classifies else "embeds sentences"
        raise UserError(f"{folder} holds a model that {does} and does not translate: give another run.")
    return model


def load_classifier(folder: Path) -> Classifier:
    """The classifier in a folder, from `load_model`. Raises UserError if the model does not classify."""
    model = load_encoder_only(folder)
    if not isinstance(model, Classifier):
        raise UserError(f"{folder} holds a model that embeds sentences and predicts no labels: give another run.")
    return model


def load_encoder_only(folder: Path) -> ExampleEncoder:
    """The encoder-only model in a folder, from `load_model`. Raises UserError if it has a decoder."""
    return check_encoder_only(load_model(folder), folder)


def check_encoder_only(model: Encoder, folder: Path) -> ExampleEncoder:
    """The model of a folder. Raises UserError if it has a decoder."""
    if not isinstance(model, ExampleEncoder):
        raise UserError(f"{folder} holds a model that translates and predicts no labels: give another run.")
    return model


def load_weights(model: Encoder, path: Path) -> None:
    """Load a file of weights, such as a checkpoint, into a model.

    Raises UserError if they do not fit its shape or are not finite.
    """
    _put(load_tensors(path)[0], model, path)


def _put(weights: Mapping[str, Tensor], model: Encoder, path: Path) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(f"{path} does not fit the shape of its model: delete it and run its stage again.") from error
    for name, value in weights.items():
        if not bool(value.isfinite().all()):
            raise UserError(
                f"{path}: {name} holds numbers that are not finite, as after a training that diverged: train the model "
                "again with a lower learning rate, or give another one."
            )
