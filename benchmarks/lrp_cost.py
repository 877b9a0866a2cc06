"""What relevance propagation costs: forward passes a generation step, and memory, for every rule of the settings.

Run `PYTHONPATH=workflow:tests python benchmarks/lrp_cost.py [results/demo]`: first with the demo's model, dev sentences
and batches if the folder holds them (else a random model of its sizes), then with a random model of 4 layers of 8 heads
and width 128 and one batch of 1000 tokens. The figure is a / (b * n):

    a   CPU seconds of `head_relevance` over all batches: the traced forward pass, the walk of every generation step of
        every sentence, the account of what was conserved, and bringing the steps back into order
    b   CPU seconds of one forward pass of a sentence with teacher forcing: the model and its logits over the same
        batches in the same float64, divided by the number of sentences
    n   the number of generation steps

so that a step is one sentence's walk back from one position, and a forward pass one pass of that one sentence. Rules
take turns with forward passes; of each the least CPU seconds of the turns count, on one thread. Memory is what a
process of its own that walks every batch once grew by at its largest. It takes some five minutes.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from lrp import MEAN_LENGTH, demo, random, shape

from heads.analysis.lrp.rows import rule_of
from heads.analysis.lrp.steps import head_relevance
from heads.model.transformer import Transformer
from heads.text.batches import Batch

RULES = ("plain", "z-plus", "alpha-beta", "attnlrp", "plain-product", "voita-2019")
TURNS = 2


@torch.no_grad()
def forward(model: Transformer, batches: list[Batch]) -> None:
    """One forward pass over every batch, up to the logits."""
    for batch in batches:
        model.projection(model(batch.source, batch.source_mask, batch.target_input))


def walked(model: Transformer, batches: list[Batch], rule: str) -> None:
    """All generation steps of every batch."""
    for batch in batches:
        head_relevance(model, batch, rule_of(rule, 1e-12))


def seconds_of(way: Callable[[], None]) -> float:
    """CPU seconds of one turn."""
    started = time.process_time()
    way()
    return time.process_time() - started


def growth(way: Callable[[], None]) -> float:
    """By how many MiB a process that does nothing else grows."""
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
            seconds[name] = min(seconds[name], seconds_of(way))
    one_pass = seconds["forward"] / sentences
    print(f"{title}: {steps} generation steps of {sentences} sentences; a forward pass takes {one_pass * 1e3:.3f} ms")
    for name in RULES:
        spent, passes = seconds[name], seconds[name] / one_pass / steps
        print(f"{name:14} {spent:8.3f} CPU s, {passes:6.2f} forward passes a step, {memory[name]:6.0f} MiB more")


def sizes(batch: Batch) -> tuple[int, int]:
    """Sentences and generation steps."""
    return len(batch.target_mask), int(batch.target_mask.sum())


def main() -> None:
    """Both models."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/demo")
    there = (folder / "baseline" / "seed-1" / "model.safetensors").exists()
    report(f"the model of {folder}" if there else "a random model", *(demo(folder) if there else random()))
    large = shape(width=128, layers=4, heads=8)
    model, batches = random(large, batch_tokens=1000, sentences=1000 // MEAN_LENGTH)
    report("a random model of width 128, 4 layers of 8 heads", model, batches)


if __name__ == "__main__":
    main()
