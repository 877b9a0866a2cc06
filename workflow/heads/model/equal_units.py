"""The same model with feed-forward networks of one width, for formats in which layers cannot have different ones."""

from dataclasses import replace
from typing import TypeVar

from heads.base.names import FEEDFORWARDS
from heads.model.encoder import Encoder

Model = TypeVar("Model", bound=Encoder)


def with_equal_units(model: Model, *, in_both: bool = False) -> Model:
    """A model with as many hidden units in each layer as in the widest of its stack; those added are zeros.

    in_both: as in the widest of both stacks. It computes the same function. A model that has lost none is returned.
    """
    shape = model.shape
    if not shape.live_units:
        return model
    widest = {stack: max(shape.units(stack), default=0) for stack in FEEDFORWARDS}
    if in_both:
        widest = dict.fromkeys(widest, max(widest.values()))
    units = {stack: (widest[stack],) * len(shape.units(stack)) for stack in FEEDFORWARDS}
    equal, weights = type(model)(replace(shape, live_units=units)), model.state_dict()
    for name, value in equal.state_dict().items():
        value.zero_()
        value[tuple(slice(size) for size in weights[name].shape)] = weights[name]
    return equal.to(next(model.parameters())).train(model.training)
