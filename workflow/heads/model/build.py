"""The model of a shape: one that classifies where the shape has labels, else one that translates."""

from __future__ import annotations

from heads.model.classifier import Classifier
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer


def model_of(shape: ModelShape) -> Encoder:
    """A fresh model of this shape."""
    return Classifier(shape) if shape.classifies else Transformer(shape)
