"""How much quicker the walk of all generation steps at once is than the obvious loop, one backward walk a step.

Run `PYTHONPATH=workflow:tests python benchmarks/lrp.py`. The loop traces each sentence once, then walks back from each
of its steps by the paper's formulas as they stand (`tests/lrp_twin.py`). As a second, harder comparison the package's
own walk is also made to go one step of one sentence at a time. Times are the best of a few, on one CPU thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.batches import Batch, make_batch
from heads.lrp.rules import PlainRatio
from heads.lrp.walk import HeadRelevance, head_relevance
from heads.transformer import ModelShape, Transformer, full_heads
from lrp_twin import Plain, Twin

SENTENCES, MEAN_LENGTH, RUNS = 16, 12, 5
SHAPE = ModelShape(
    width=64,
    head_width=16,
    feedforward=256,
    dropout=0.0,
    pre_norm=True,
    source_pieces=1000,
    target_pieces=1000,
    original_heads=4,
    live_heads=full_heads(layers=3, heads=4),
)
RULE = PlainRatio(1e-12)


def random_model() -> Transformer:
    """A model with small random biases, as a trained one has."""
    torch.manual_seed(1)
    model = Transformer(SHAPE).double().eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.02)
    return model


def random_pairs() -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """Source and target pieces of sentences of about MEAN_LENGTH pieces."""
    generator = np.random.default_rng(2)
    lengths = generator.integers(MEAN_LENGTH - 2, MEAN_LENGTH + 3, (2, SENTENCES))
    source, target = ([generator.integers(4, 1000, n).astype(np.int32) for n in side] for side in lengths)
    return source, target


@torch.no_grad()
def obvious_loop(model: Transformer, singles: list[Batch]) -> list[dict[str, Tensor]]:
    """One walk a step, sentence by sentence."""
    twins = [Twin(model, batch.source[0], batch.target_input[0], Plain()) for batch in singles]
    return [twin.walk(step)[0] for twin in twins for step in range(len(twin.logits))]


def step_by_step(model: Transformer, singles: list[Batch]) -> list[HeadRelevance]:
    """The package's walk, held to one step of one sentence at a time."""
    return [head_relevance(model, batch, RULE, chunk_elements=1) for batch in singles]


def best_seconds(work: Callable[[], object]) -> float:
    """The shortest of RUNS wall times."""
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Compare the results, time all ways and print the ratios."""
    torch.set_num_threads(1)
    model, (sources, targets) = random_model(), random_pairs()
    together = make_batch(sources, targets)
    singles = [make_batch([source], [target]) for source, target in zip(sources, targets, strict=True)]
    whole, steps = head_relevance(model, together, RULE), obvious_loop(model, singles)
    for kind, layers in whole.heads.items():
        for layer, relevance in enumerate(layers):
            expected = torch.stack([step[f"{kind}.{layer}"] for step in steps])
            torch.testing.assert_close(relevance, expected, rtol=1e-6, atol=1e-6)
    print(f"{len(steps)} generation steps of {SENTENCES} sentences: results equal")
    seconds = best_seconds(lambda: head_relevance(model, together, RULE))
    loop, single = (
        best_seconds(lambda: obvious_loop(model, singles)),
        best_seconds(lambda: step_by_step(model, singles)),
    )
    print(f"all at once {seconds:.3f} s, obvious loop {loop:.3f} s, own walk step by step {single:.3f} s")
    print(f"ratio to the obvious loop {loop / seconds:.1f}, to the own walk step by step {single / seconds:.1f}")


if __name__ == "__main__":
    main()
