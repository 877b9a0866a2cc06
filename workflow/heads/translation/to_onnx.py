"""A trained model as two ONNX graphs, encoder and one step of the decoder, and a script that translates with them.

B batch, S source length, D width, V vocabulary. An attention without heads has no keys and values, so none stand among
inputs and outputs.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.model.attention import KeyValues
from heads.model.encoder import Embedding, Layer, layers_of, sinusoids
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS
from heads.translation.agreement import POSITIONS, Pair, largest_difference

SCRIPT = Path(__file__).with_name("translate_onnx.py")
"""Goes with the graphs, as translate.py."""


class _Encoder(nn.Module):
    """Source ids [B, S] and mask [B, S] to states [B, S, D] and, by layer, the keys and values that they give."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("positions", _positions(model))

    def forward(self, source: Tensor, source_mask: Tensor) -> list[Tensor]:
        """States, then keys and values [B, H, S, E] of each attention to them that has heads."""
        positions = self.get_buffer("positions")[: source.shape[1]]
        states = _embedded(self.model.source_embedding, source, positions)
        for layer in layers_of(self.model.encoder):
            states = layer.attend("enc_self", states, None, None, None, mask=source_mask[:, None, None])
            states = layer.transform(states, None)
        memory = self.model.encoder_norm(states)
        attended = [layer.cross_attention.project(memory) for layer in _attending(self.model, "dec_enc")]
        return [memory, *(part for each in attended for part in (each.keys, each.values))]


class _Step(nn.Module):
    """The newest pieces [B, 1], their position [1], the source's mask, keys and values, and the decoder's own so far.

    To logits [B, V] and the decoder's own keys and values, one longer.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("positions", _positions(model))

    def forward(
        self, piece: Tensor, position: Tensor, source_mask: Tensor, source: list[Tensor], own: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Keys and values come and go as lists, in the order of layers."""
        states = _embedded(self.model.target_embedding, piece, self.get_buffer("positions")[position])
        left, grown = {"dec_enc": list(source), "dec_self": list(own)}, []
        for layer in layers_of(self.model.decoder):
            attended = None
            if layer.self_attention.heads:
                newest, before = layer.self_key_values(states), _next(left["dec_self"])
                attended = KeyValues(
                    torch.cat([before.keys, newest.keys], 2), torch.cat([before.values, newest.values], 2)
                )
                grown += [attended.keys, attended.values]
            states = layer.attend("dec_self", states, attended, None, None)
            attended = _next(left["dec_enc"]) if layer.cross_attention.heads else None
            states = layer.attend("dec_enc", states, attended, None, None, mask=source_mask[:, None, None])
            states = layer.transform(states, None)
        return self.model.projection(self.model.decoder_norm(states))[:, 0], grown


def write_onnx(model: Transformer, folder: Path) -> None:
    """Write encoder.onnx, step.onnx and the script into a folder.

    Raises UserError where what makes ONNX is not installed.
    """
    try:
        import onnxruntime  # noqa: F401 - the command checks what it wrote
        import onnxscript  # noqa: F401 - torch needs it
    except ImportError as error:
        raise UserError(f'{error.name} is not installed: pip install "heads[onnx]", or export otherwise.') from error
    live = model.shape.live_heads
    names = {
        kind: [
            f"{word}_{part}_{layer}" for layer, heads in enumerate(live[kind]) if heads for part in ("keys", "values")
        ]
        for kind, word in (("dec_enc", "source"), ("dec_self", "own"))
    }

    def some(kind: str, length: int) -> list[Tensor]:
        """Keys and values of two sentences."""
        sizes = [len(heads) for heads in live[kind] for _ in range(2) if heads]
        return [torch.zeros(2, size, length, model.shape.head_width) for size in sizes]

    batch, length, past = (torch.export.Dim(name) for name in ("batch", "source_length", "past"))
    mask, of_mask = torch.ones(2, 5, dtype=torch.bool), {0: batch, 1: length}
    _write(
        folder / "encoder.onnx",
        _Encoder(model),
        {"source": (torch.full((2, 5), EOS), of_mask), "source_mask": (mask, of_mask)},
        ["memory", *names["dec_enc"]],
    )
    source, own = some("dec_enc", 5), some("dec_self", 3)
    _write(
        folder / "step.onnx",
        _Step(model),
        {
            "piece": (torch.full((2, 1), BOS), {0: batch}),
            "position": (torch.tensor([3]), None),
            "source_mask": (mask, of_mask),
            "source": (source, [{0: batch, 2: length}] * len(source)),
            "own": (own, [{0: batch, 2: past}] * len(own)),
        },
        ["logits", *(f"new_{name}" for name in names["dec_self"])],
        [*names["dec_enc"], *names["dec_self"]],
    )
    shutil.copyfile(SCRIPT, folder / "translate.py")


def _write(
    path: Path, module: nn.Module, inputs: Mapping[str, tuple[Any, Any]], outputs: list[str], lists: Sequence[str] = ()
) -> None:
    """Write a graph; `inputs` have an example and which of its dimensions vary, those of lists are called `lists`."""
    plain = [name for name, (example, _) in inputs.items() if isinstance(example, Tensor)]
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            tuple(example for example, _ in inputs.values()),
            path,
            input_names=[*plain, *lists],
            output_names=outputs,
            dynamic_shapes=tuple(varying for _, varying in inputs.values()),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


@contextmanager
def quiet() -> Iterator[None]:
    """No word of torch's exporter about libraries that it could use."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def agreement_of_onnx(model: Transformer, folder: Path, pairs: Sequence[Pair]) -> float:
    """The largest difference of a target piece's log-probability between our model and the one of a folder."""
    from heads.translation.translate_onnx import Model

    theirs = Model(folder)
    found = []
    for source, target in pairs:
        log_probs = theirs.score([*source, EOS], [BOS, *target])
        found.append(torch.from_numpy(log_probs[np.arange(len(target) + 1), [*target, EOS]]))
    return largest_difference(model, pairs, found)


def _positions(model: Transformer) -> Tensor:
    """Position signals [POSITIONS, D]."""
    return sinusoids(POSITIONS, model.shape.width, halves=model.shape.positions == "halves").float()


def _embedded(embedding: Embedding, ids: Tensor, positions: Tensor) -> Tensor:
    """States [B, Q, D] of ids [B, Q] at positions [Q, D]."""
    states: Tensor = embedding.pieces(ids) * embedding.factor
    return states + positions


def _attending(model: Transformer, kind: str) -> list[Layer]:
    """The decoder's layers that have heads of a kind."""
    layers = layers_of(model.decoder)
    return [layer for layer, live in zip(layers, model.shape.live_heads[kind], strict=True) if live]


def _next(left: list[Tensor]) -> KeyValues:
    """The next keys and values of a row of tensors, which are taken from it."""
    return KeyValues(left.pop(0), left.pop(0))
