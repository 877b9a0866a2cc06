"""The sizes of tiny models, and the shape in a model's human-readable file, for tests that need no model."""

from typing import Any

from heads.model.shape import ModelShape

SIZES: dict[str, Any] = {
    "width": 10, "head_width": 2, "feedforward": 7, "dropout": 0.0, "pre_norm": True,
    "source_subwords": 13, "target_subwords": 11, "original_heads": 3,
}  # fmt: skip
"""All differ, so that a swapped axis shows."""


LIKE_T5: dict[str, Any] = {
    "positions": "distances",
    "distance_buckets": 8,
    "farthest_distance": 5,
    "rms_norm": True,
    "gated_units": True,
    "activation": "gelu_tanh",
    "feedforward_biases": False,
    "scaled_embedding": False,
    "scaled_products": False,
}
"""What a T5's shape has, with few buckets."""


def facts_with_shape(live_heads: Any, **changes: Any) -> dict[str, Any]:
    """A shape with these live heads as JSON; keywords replace its sizes."""
    return ModelShape(**{**SIZES, **changes}, live_heads=live_heads).as_dict()
