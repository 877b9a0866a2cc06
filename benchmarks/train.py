"""How fast the training step is: source tokens and floating-point operations a CPU second, at the demo's sizes.

Run: PYTHONPATH=workflow python benchmarks/train.py. Plain and gated steps are interleaved, so that a busy machine
slows both alike; compare by their ratio.
"""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F

from heads.config.trainings import HardConcrete
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.pruning.gates import HeadGates

SENTENCES, SOURCE, TARGET, ROUNDS = 70, 15, 15, 40
SHAPE = ModelShape(
    width=64,
    head_width=16,
    feedforward=256,
    dropout=0.0,
    pre_norm=True,
    source_pieces=1500,
    target_pieces=2500,
    original_heads=4,
    live_heads=full_heads(layers=3, heads=4),
)


def operations(model: Transformer) -> float:
    """Floating-point operations of an update, 6 for each weight and token (Kaplan et al. 2020, sec. 2.1)."""
    encoder = sum(p.numel() for p in model.encoder.parameters() if p.dim() == 2)
    decoder = sum(p.numel() for p in model.decoder.parameters() if p.dim() == 2) + model.projection.weight.numel()
    return 6.0 * SENTENCES * (SOURCE * encoder + TARGET * decoder)


def main() -> None:
    """Print tokens and operations a second, plain and with gates, and their ratio."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    model = Transformer(SHAPE)
    gates = HeadGates(SHAPE, "all", HardConcrete(0.33, -0.1, 1.1, 3.0))
    optimizer = torch.optim.Adam([*model.parameters(), *gates.parameters()], lr=1e-4, fused=True)
    source = torch.randint(4, 1500, (SENTENCES, SOURCE), generator=generator)
    target = torch.randint(4, 2500, (SENTENCES, TARGET), generator=generator)
    mask = torch.ones_like(source, dtype=torch.bool)
    seconds = {"plain": 0.0, "gated": 0.0}
    for number in range(ROUNDS + 3):
        for kind in seconds:
            started = time.process_time()
            optimizer.zero_grad(set_to_none=True)
            states = model(source, mask, target, gates.sampled(generator) if kind == "gated" else None)
            F.cross_entropy(model.projection(states.flatten(0, 1)), target.flatten(), label_smoothing=0.1).backward()
            optimizer.step()
            if number >= 3:
                seconds[kind] += time.process_time() - started
    for kind, spent in seconds.items():
        rate = ROUNDS * SENTENCES * SOURCE / spent
        print(f"{kind}: {rate:,.0f} source tokens/s, {ROUNDS * operations(model) / spent / 1e9:.1f} GFLOP/s")
    print(f"gated / plain: {seconds['gated'] / seconds['plain']:.2f}")


if __name__ == "__main__":
    main()
