"""Export a model as ONNX graphs: a translator as encoder and decoder step, with a script that translates with them.

An encoder that translates nothing is one graph, from ids to label logits or to a sentence vector.
B batch, S source length, D width (or number of labels), V vocabulary. An attention without heads keeps nothing, so it
has no inputs and outputs.
"""

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
from heads.interop.agreement import POSITIONS, Pair, largest_difference, largest_of
from heads.interop.family import ExportFormat, Translation
from heads.model.encoder import Embedding
from heads.model.encoder_only import ExampleEncoder
from heads.model.shape import LEARNED, ModelShape
from heads.model.sublayer_cache import SublayerCache
from heads.model.sublayers import Pass, Step, parts_of, run_through
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS, PAD

SCRIPT = Path(__file__).with_name("translate_onnx.py")
"""The script that goes with the graphs, as translate.py."""
ENCODER, STEP = "encoder.onnx", "step.onnx"
OUTPUTS = {True: "logits", False: "vectors"}
"""The output of an encoder that translates nothing, by whether it classifies."""


class _Encoder(nn.Module):
    """Map source ids [B, S] and mask [B, S] to states [B, S, D] and each decoder layer's keys and values of them."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("positions", _positions(model, model.source_embedding))

    def forward(self, source: Tensor, source_mask: Tensor) -> list[Tensor]:
        """States, then keys and values [B, H, S, E] of each cross-attention that has heads."""
        positions = self.get_buffer("positions")[: source.shape[1]]
        states = self.model.source_embedding.at(source, positions)
        states = run_through(parts_of(self.model.encoder), states, Pass(mask=source_mask[:, None, None]))
        memory = self.model.encoder_norm(states)
        kept = [part.start(memory, 1) for part in parts_of(self.model.decoder)]
        return [memory, *(tensor for each in kept if each.of_source for tensor in each.tensors().values())]


class _Step(nn.Module):
    """Map the newest subwords, and what was kept so far, to logits and the decoder's new past.

    From the newest subwords [B, 1], their position [1], the source's mask, keys and values, and the decoder's own past,
    to logits [B, V] and the decoder's own past with the newest: keys and values, one longer, or states. Rows without a
    subword are left out; padding, which no search writes, has their probability, so that all others keep theirs.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.kept = _kept(model)
        self.names = [[*each.tensors()] for each in self.kept]
        self.register_buffer("positions", _positions(model, model.target_embedding))

    def forward(
        self, subword: Tensor, position: Tensor, source_mask: Tensor, source: list[Tensor], own: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits and the new past; kept tensors come and go as lists, in layer order."""
        states = self.model.target_embedding.at(subword, self.get_buffer("positions")[position])
        now, left, grown = Step(mask=source_mask[:, None, None]), (list(own), list(source)), []
        for part, names, kept in zip(parts_of(self.model.decoder), self.names, self.kept, strict=True):
            kept = kept.filled([left[kept.of_source].pop(0) for _ in names])
            states = part.step(states, kept, now)
            grown += [] if kept.of_source else list(kept.tensors().values())
        logits = self.model.projection(self.model.decoder_norm(states))[:, 0]
        if self.model.shape.nameless_subwords:
            named = self.model.shape.named_subwords[1]
            rest = torch.cat([logits[:, PAD : PAD + 1], logits[:, named:]], 1).logsumexp(1, keepdim=True)
            logits = torch.cat([rest, logits[:, PAD + 1 : named]], 1)
        return logits, grown


class _EncoderOnly(nn.Module):
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
        answers: Tensor = model.projection(model.pool(model.encoder_norm(states), source_mask))
        return answers[:, 0]


def write_onnx(model: Transformer, folder: Path) -> None:
    """Write encoder.onnx, step.onnx and the script into a folder. Raises UserError without the ONNX libraries."""
    refuse_for_onnx(model.shape)
    source, own = (
        {
            f"{word}_{name}_{part.index}": tensor
            for part, kept in zip(parts_of(model.decoder), _kept(model), strict=True)
            if kept.of_source == (word == "source")
            for name, tensor in kept.tensors().items()
        }
        for word in ("source", "own")
    )
    batch, length, past = (torch.export.Dim(name) for name in ("batch", "source_length", "past"))
    mask, of_mask = torch.ones(2, 5, dtype=torch.bool), {0: batch, 1: length}
    write_graph(
        folder / ENCODER,
        _Encoder(model),
        {"source": (torch.full((2, 5), EOS), of_mask), "source_mask": (mask, of_mask)},
        ["memory", *source],
    )
    write_graph(
        folder / STEP,
        _Step(model),
        {
            "subword": (torch.full((2, 1), BOS), {0: batch}),
            "position": (torch.tensor([3]), None),
            "source_mask": (mask, of_mask),
            "source": ([*source.values()], [{0: batch, 2: length}] * len(source)),
            "own": ([*own.values()], [{0: batch, 2: past} if each.ndim == 4 else {0: batch} for each in own.values()]),
        },
        ["logits", *(f"new_{name}" for name in own)],
        [*source, *own],
    )
    shutil.copyfile(SCRIPT, folder / "translate.py")


def write_encoder(model: ExampleEncoder, folder: Path) -> None:
    """Write encoder.onnx, without the pruned heads, into a folder.

    Raises UserError as `refuse_for_onnx` does.
    """
    refuse_for_onnx(model.shape)
    batch, length = (torch.export.Dim(name) for name in ("batch", "length"))
    varying = {0: batch, 1: length}
    inputs = {
        "source": (torch.full((2, 5), EOS), varying),
        "source_mask": (torch.ones(2, 5, dtype=torch.bool), varying),
    }
    write_graph(folder / ENCODER, _EncoderOnly(model), inputs, [OUTPUTS[model.shape.classifies]])


def refuse_for_onnx(shape: ModelShape) -> None:
    """Raise UserError without the ONNX libraries, or if the model is an encoder whose positions are not learnt."""
    if shape.encoder_only and shape.positions != LEARNED:
        raise UserError("--format onnx needs a model with learnt positions, such as a BERT: use --format folder.")
    try:
        import onnxruntime  # noqa: F401 - the command checks what it wrote
        import onnxscript  # noqa: F401 - torch needs it
    except ImportError as error:
        raise UserError(f'{error.name} is not installed: pip install "heads[onnx]", or use another format.') from error


def write_graph(
    path: Path, module: nn.Module, inputs: Mapping[str, tuple[Any, Any]], outputs: list[str], lists: Sequence[str] = ()
) -> None:
    """Write a graph. inputs: examples and their varying dimensions, by name. lists: names of tensors inside lists."""
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
    """Silence torch's exporter, which suggests libraries that it could use."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def agreement_of_onnx(model: Transformer, folder: Path, pairs: Sequence[Pair]) -> float:
    """Largest difference in a target subword's log-probability between our model and a folder's."""
    from heads.interop.translate_onnx import Model

    theirs = Model(folder)
    found = []
    for source, target in pairs:
        log_probs = theirs.score([*source, EOS], [BOS, *target])
        found.append(torch.from_numpy(log_probs[np.arange(len(target) + 1), [*target, EOS]]))
    return largest_difference(model, pairs, found)


@torch.inference_mode()
def agreement_of_encoder(model: ExampleEncoder, folder: Path, examples: Sequence[Sequence[int]]) -> float:
    """Largest difference between our model and the graph, in label log-probabilities or vector components."""
    from onnxruntime import InferenceSession

    session, differences = InferenceSession(str(folder / ENCODER), providers=["CPUExecutionProvider"]), []
    for ids in examples:
        source = torch.tensor([[*ids]])
        given = {"source": source.numpy(), "source_mask": np.asarray(source > PAD)}
        theirs = torch.from_numpy(session.run(None, given)[0])
        ours = _EncoderOnly(model)(source, source > PAD)
        if model.shape.classifies:
            ours, theirs = ours.log_softmax(-1), theirs.log_softmax(-1)
        differences.append(ours - theirs)
    return largest_of(differences)


def _positions(model: Transformer, embedding: Embedding) -> Tensor:
    """Position signals [POSITIONS, D], or fewer if the model has learnt fewer."""
    return embedding.signals(min(POSITIONS, model.shape.longest)).detach().float()


def _kept(model: Transformer) -> list[SublayerCache]:
    """Example of what the decoder's sub-layers keep, for two sentences of five subwords."""
    memory = torch.zeros(2, 5, model.shape.width)
    return [part.start(memory, 1) for part in parts_of(model.decoder)]


def _write(what: Translation, folder: Path) -> float:
    write_onnx(what.model, folder)
    return agreement_of_onnx(what.model, folder, what.pairs)


ONNX = ExportFormat(_write, lambda shape, *_: refuse_for_onnx(shape), one_number=())
