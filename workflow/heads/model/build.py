"""Build the model of a shape: a translation model if it has a decoder, else a classifier or sentence encoder."""

from __future__ import annotations

from heads.model.classifier import Classifier
from heads.model.encoder import Encoder
from heads.model.sentence_encoder import SentenceEncoder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer


def model_of(shape: ModelShape) -> Encoder:
    """A newly initialised model of this shape."""
    if shape.alone:
        return Classifier(shape) if shape.classifies else SentenceEncoder(shape)
    return Transformer(shape)
