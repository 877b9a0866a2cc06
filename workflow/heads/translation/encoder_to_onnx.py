"""Export an encoder-only model as one ONNX graph: from ids to label logits, or to a sentence vector.

B batch, S example length, D width of the vector or number of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from heads.base.files import UserError
from heads.model.classifier import ExampleEncoder
from heads.model.shape import LEARNED
from heads.model.sublayers import Pass, parts_of, run_through
from heads.text.special_ids import EOS, PAD
from heads.translation.to_onnx import need_libraries, write_graph

GRAPH, OUTPUTS = "encoder.onnx", {True: "logits", False: "vectors"}
"""The file name, and the name of its output by whether the model classifies."""


class _Whole(nn.Module):
    """Map ids [B, S] and mask [B, S] to logits or vectors [B, D]."""

    def __init__(self, model: ExampleEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Logits or vector of each example."""
        model = self.model
        # Not `encode`, which branches on whether anything is padded: a graph cannot.
        states = run_through(
            parts_of(model.encoder), model.source_embedding(source), Pass(mask=source_mask[:, None, None])
        )
        answers: Tensor = model.projection(model.summed_up(model.encoder_norm(states), source_mask))
        return answers[:, 0]


def write_encoder(model: ExampleEncoder, folder: Path) -> None:
    """Write encoder.onnx, without the pruned heads, into a folder.

    Raises UserError if the ONNX libraries are not installed, or if the model's positions are not learnt.
    """
    if model.shape.positions != LEARNED:
        raise UserError("--format onnx needs a model with learnt positions, such as a BERT: use --format folder.")
    need_libraries()
    batch, length = (torch.export.Dim(name) for name in ("batch", "length"))
    varying = {0: batch, 1: length}
    inputs = {
        "source": (torch.full((2, 5), EOS), varying),
        "source_mask": (torch.ones(2, 5, dtype=torch.bool), varying),
    }
    write_graph(folder / GRAPH, _Whole(model), inputs, [OUTPUTS[model.shape.classifies]])


@torch.inference_mode()
def agreement_of_encoder(model: ExampleEncoder, folder: Path, examples: Sequence[Sequence[int]]) -> float:
    """Largest difference between our model and the graph, in label log-probabilities or vector components."""
    from onnxruntime import InferenceSession

    session, worst = InferenceSession(str(folder / GRAPH), providers=["CPUExecutionProvider"]), 0.0
    for ids in examples:
        source = torch.tensor([[*ids]])
        given = {"source": source.numpy(), "source_mask": np.asarray(source > PAD)}
        theirs = torch.from_numpy(session.run(None, given)[0])
        ours = _Whole(model)(source, source > PAD)
        if model.shape.classifies:
            ours, theirs = ours.log_softmax(-1), theirs.log_softmax(-1)
        worst = max(worst, float((ours - theirs).abs().max()))
    return worst
