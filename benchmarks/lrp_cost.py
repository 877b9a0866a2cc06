"""The cost of relevance propagation: forward passes per generation step, and memory, for every rule in the settings.

Run `PYTHONPATH=workflow python benchmarks/lrp_cost.py [results/demo]`: first with the demo's model, dev sentences
and batches if the folder has them (otherwise a random model of the same size), then with a random model of 4 layers of
8 heads and width 128 and one batch of 1000 tokens. The figure is a / (b * n):

    a   CPU seconds of `head_relevance` over all batches: the traced forward pass, the walk of every generation step of
        every sentence, the check of what was conserved, and putting the steps back into order
    b   CPU seconds of one forward pass of a sentence with teacher forcing: the model and its logits over the same
        batches in the same float64, divided by the number of sentences
    n   the number of generation steps

so a step is the walk back from one position of one sentence, and a forward pass is one pass of that one sentence. Rules
and forward passes take turns; times are CPU seconds of the fastest turn on one thread. Memory is the peak growth of a
separate process that walks every batch once. It takes some five minutes.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from heads.analysis.lrp.rows import generated, rule_of
from heads.analysis.lrp.steps import head_relevance
from heads.config.trainings import ModelSettings
from heads.model.folder import load_folder
from heads.model.shape import ModelShape, unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs, make_batch
from heads.text.vocabulary import Tokens

RULES = ("plain", "z-plus", "alpha-beta", "attnlrp", "plain-product", "voita-2019")
SENTENCES, BATCH_TOKENS, MEAN_LENGTH, TURNS = 200, 500, 12, 2


def shape(width: int, layers: int, heads: int) -> ModelShape:
    """The shape of a model with all its heads and the demo's vocabularies."""
    sizes = ModelSettings(layers=layers, heads=heads, width=width, feedforward=4 * width, dropout=0.0)
    return unpruned_shape(sizes, 1500, 2500)


SHAPE = shape(width=64, layers=3, heads=4)


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


@torch.no_grad()
def forward(model: Transformer, batches: list[Batch]) -> None:
    """One forward pass over every batch, up to the logits."""
    for batch in batches:
        model.projection(model(batch.source, batch.source_mask, batch.target_input))


def walked(model: Transformer, batches: list[Batch], rule: str) -> None:
    """Propagate relevance for all generation steps of every batch."""
    for batch in batches:
        head_relevance(model, batch, rule_of(rule, 1e-12))


def growth(way: Callable[[], None]) -> float:
    """The MiB by which a separate process grows that does nothing else."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    child = os.fork()
    if not child:
        way()
        os._exit(0)
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_maxrss / 2**10 - resident / 2**20


def report(title: str, model: Transformer, batches: list[Batch]) -> None:
    """Measure and print one model's figures."""
    sentences, steps = (sum(int(n) for n in numbers) for numbers in zip(*map(sizes, batches), strict=True))
    ways = {rule: partial(walked, model, batches, rule) for rule in RULES}
    memory = {name: growth(way) for name, way in ways.items()}
    ways["forward"] = partial(forward, model, batches)
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            started = time.process_time()
            way()
            seconds[name] = min(seconds[name], time.process_time() - started)
    one_pass = seconds["forward"] / sentences
    print(f"{title}: {steps} generation steps of {sentences} sentences; a forward pass takes {one_pass * 1e3:.3f} ms")
    for name in RULES:
        spent, passes = seconds[name], seconds[name] / one_pass / steps
        print(f"{name:14} {spent:8.3f} CPU s, {passes:6.2f} forward passes a step, {memory[name]:6.0f} MiB more")


def sizes(batch: Batch) -> tuple[int, int]:
    """The numbers of sentences and generation steps of a batch."""
    return len(batch.target_mask), int(batch.target_mask.sum())


def main() -> None:
    """Report on both models."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/demo")
    there = (folder / "baseline" / "seed-1" / "model.safetensors").exists()
    report(f"the model of {folder}" if there else "a random model", *(demo(folder) if there else random()))
    large = shape(width=128, layers=4, heads=8)
    model, batches = random(large, batch_tokens=1000, sentences=1000 // MEAN_LENGTH)
    report("a random model of width 128, 4 layers of 8 heads", model, batches)


if __name__ == "__main__":
    main()
