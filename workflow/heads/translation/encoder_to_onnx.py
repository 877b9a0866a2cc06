"""An encoder alone as one ONNX graph: from ids to logits of labels, or to the vector of a sentence.

B batch, S length of examples, D width of the vector or number of labels.
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
"""The file, and what comes of it, by whether the model classifies."""


class _Whole(nn.Module):
    """Ids [B, S] and mask [B, S] to logits or vectors [B, D]."""

    def __init__(self, model: ExampleEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """The one answer of each example."""
        model = self.model
        # Not by `encode`, which asks whether anything is padded: a graph has no such branch.
        states = run_through(
            parts_of(model.encoder), model.source_embedding(source), Pass(mask=source_mask[:, None, None])
        )
        answers: Tensor = model.projection(model.summed_up(model.encoder_norm(states), source_mask))
        return answers[:, 0]


def write_encoder(model: ExampleEncoder, folder: Path) -> None:
    """Write encoder.onnx, without the heads that are cut out, into a folder.

    Raises UserError where what makes ONNX is not installed, and for a model whose positions are not learnt.
    """
    if model.shape.positions != LEARNED:
        raise UserError("--format onnx is of models with learnt positions, as those of BERT: take --format folder.")
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
    """The largest difference of a label's log-probability, or of a part of a vector, between ours and the graph's."""
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
