"""How much faster relevance of all generation steps at once is than loops that walk back from one step at a time.

Run `PYTHONPATH=workflow:tests python benchmarks/lrp.py [results/demo]`: with the demo's model and dev sentences if the
folder has them, otherwise with a random model of the same size. Three loops take one sentence and one step at a time:

    obvious     the package's own walk, after a forward pass over the step's prefix
    traced      the same after one forward pass per sentence, shared by all its steps: the hardest to beat
    written out the paper's formulas in relevances, head by head (`tests/lrp_twin.py`), one forward pass per sentence

Sentences, their number and the batch size are those of the demo's stage `lrp`. The run stops unless all ways find the
same relevance. Ways take turns; times are CPU seconds of the fastest turn on one thread. It takes two minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heads.analysis.lrp.ratio import PlainRatio
from heads.analysis.lrp.rows import generated
from heads.analysis.lrp.steps import head_relevance
from heads.analysis.lrp.walk import Ways
from heads.config.trainings import ModelSettings
from heads.model.folder import load_folder
from heads.model.shape import ModelShape, unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs, make_batch
from heads.text.vocabulary import Tokens
from lrp_twin import Plain, Twin

SENTENCES, BATCH_TOKENS, MEAN_LENGTH, TURNS = 200, 500, 12, 2


def shape(width: int, layers: int, heads: int) -> ModelShape:
    """The shape of a model with all its heads and the demo's vocabularies."""
    sizes = ModelSettings(layers=layers, heads=heads, width=width, feedforward=4 * width, dropout=0.0)
    return unpruned_shape(sizes, 1500, 2500)


SHAPE = shape(width=64, layers=3, heads=4)
RULE = PlainRatio(1e-12)
Found = list[dict[str, Tensor]]
"""For every generation step, sentence by sentence: the relevance of each head [H], by attention kind and layer."""


def demo(folder: Path) -> tuple[Transformer, list[Batch]]:
    """The trained model in float64, and its own translations of dev sentences in batches of the stage's size."""
    run = folder / "baseline" / "seed-1"
    model = load_folder(run)
    source, target = (Tokens(folder / "bpe" / f"dev.{side}.safetensors") for side in ("source", "target"))
    in_order = Pairs(source, target, BATCH_TOKENS).in_order(BATCH_TOKENS, SENTENCES)
    return model.double(), [generated(model, batch) for _, batch in in_order]


def random(
    of: ModelShape = SHAPE, batch_tokens: int = BATCH_TOKENS, sentences: int = SENTENCES
) -> tuple[Transformer, list[Batch]]:
    """A random model with small random biases, like those of a trained one, and random sentences."""
    torch.manual_seed(1)
    model = Transformer(of).double().eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.02)
    generator = np.random.default_rng(2)
    lengths = generator.integers(MEAN_LENGTH - 3, MEAN_LENGTH + 4, (2, sentences))
    lengths = lengths[:, lengths[0].argsort()]
    source, target = ([generator.integers(4, 1500, n).astype(np.int32) for n in side] for side in lengths)
    at_a_time = batch_tokens // MEAN_LENGTH
    parts = [slice(first, first + at_a_time) for first in range(0, sentences, at_a_time)]
    return model, [make_batch(source[part], target[part]) for part in parts]


def alone(batches: list[Batch]) -> list[Batch]:
    """Every sentence as a batch of its own, without padding."""
    found = []
    for batch in batches:
        for row, (source, target) in enumerate(zip(batch.source_mask.sum(1), batch.target_mask.sum(1), strict=True)):
            ends = (source, source, target, target, target)
            parts = [getattr(batch, name)[row : row + 1] for name in Batch.__slots__]
            found.append(Batch(*(part[:, :end] for part, end in zip(parts, ends, strict=True))))
    return found


def at_once(model: Transformer, batches: list[Batch]) -> Found:
    """Relevance of all steps at once, as the stage computes it."""
    found: Found = []
    for batch in batches:
        heads = head_relevance(model, batch, RULE).heads
        layers = {f"{kind}.{n}": layer for kind, layers in heads.items() for n, layer in enumerate(layers)}
        found += [dict(zip(layers, step, strict=True)) for step in zip(*layers.values(), strict=True)]
    return found


@torch.no_grad()
def obvious(model: Transformer, singles: list[Batch]) -> Found:
    """Relevance by a forward pass over the prefix and a walk back, for every step of every sentence."""
    found: Found = []
    for single in singles:
        target = (single.target_input, single.target_output, single.target_mask)
        for end in range(1, single.target_input.shape[1] + 1):
            prefix = Batch(single.source, single.source_mask, *(part[:, :end] for part in target))
            met = Ways(model, prefix, RULE).walk(1, end - 1, end).met
            found.append({name: amounts[0, 0] for name, amounts in met.items()})
    return found


@torch.no_grad()
def traced(model: Transformer, singles: list[Batch]) -> Found:
    """Relevance by one forward pass per sentence, then one walk back per step."""
    found: Found = []
    for single in singles:
        ways = Ways(model, single, RULE)
        for step in range(single.target_input.shape[1]):
            found.append({name: met[0, 0] for name, met in ways.walk(1, step, step + 1).met.items()})
    return found


@torch.no_grad()
def written_out(model: Transformer, singles: list[Batch]) -> Found:
    """Relevance by the formulas exactly as written."""
    twins = [Twin(model, single.source[0], single.target_input[0], Plain()) for single in singles]
    return [twin.walk(step)[0] for twin in twins for step in range(len(twin.logits))]


def main() -> None:
    """Compare the results, time all ways and print the ratios."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/demo")
    there = (folder / "baseline" / "seed-1" / "model.safetensors").exists()
    model, batches = demo(folder) if there else random()
    singles = alone(batches)
    ways: dict[str, Callable[[], Found]] = {"all at once": partial(at_once, model, batches)}
    loops = {"obvious loop": obvious, "traced loop": traced, "written-out loop": written_out}
    ways |= {name: partial(loop, model, singles) for name, loop in loops.items()}
    expected, seconds = at_once(model, batches), dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            started = time.process_time()
            found = way()
            seconds[name] = min(seconds[name], time.process_time() - started)
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    which = f"the model of {folder}" if there else "a random model"
    print(f"{which}: {len(expected)} generation steps of {len(singles)} sentences, all results equal")
    for name, spent in seconds.items():
        print(f"{name:16} {spent:8.3f} CPU s, {spent / seconds['all at once']:6.1f} times all at once")


if __name__ == "__main__":
    main()
