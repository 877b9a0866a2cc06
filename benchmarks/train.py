"""How fast the demo's model is trained: source tokens and floating-point operations per CPU second, on one thread.

Run: PYTHONPATH=workflow python benchmarks/train.py. Random sentences about as long as the demo's; sizes, batches and
optimisers are those of config.yaml. All kinds of update take turns, so that a busy machine slows them alike; compare by
their ratio to the first.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from heads.base.files import read_yaml
from heads.base.targets import Target
from heads.config.settings import resolve
from heads.config.trainings import BpeSettings, GatesSettings, LengthSettings, TrainingSettings
from heads.model.encoder import Encoder
from heads.model.shape import unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.training.job import frozen_beside, pruning_of
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan
from heads.training.trial import random_pairs

UPDATES, WARM = 40, 3


def operations(model: Encoder, pairs: Pairs, members: np.ndarray) -> float:
    """Floating-point operations of an update, 6 for each weight and token (Kaplan et al. 2020, sec. 2.1)."""
    assert isinstance(model, Transformer)
    encoder = sum(p.numel() for p in model.encoder.parameters() if p.dim() == 2)
    decoder = sum(p.numel() for p in model.decoder.parameters() if p.dim() == 2) + model.projection.weight.numel()
    source, target = (int((tokens.lengths[members] + 1).sum()) for tokens in (pairs.source, pairs.target))
    return 6.0 * (source * encoder + target * decoder)


def training_of(model: Encoder, pairs: Pairs, settings: TrainingSettings, gates: GatesSettings, scope: str) -> Training:
    """A training of a model on the CPU, with gates on a scope if one is given."""
    pruning = pruning_of(model, scope, Target.parse("lam-0.01"), gates, frozen_beside(scope, model)) if scope else None
    length = LengthSettings(updates=gates.updates, patience=0, average_last=1, average_every=1)
    return Training(model, pairs, TrainingPlan(settings, length, 1, 0, torch.device("cpu")), pruning)


def trainings(pairs: Pairs) -> dict[str, Training]:
    """A training of each kind, with the demo's sizes."""
    demo = resolve(read_yaml(Path(__file__).parents[1] / "config.yaml"))["demo"]
    bpe, sizes = demo.bpe, demo.model
    settings, gates = demo.training, demo.gates

    def training(*, scope: str = "", **changes: Any) -> Training:
        """A training with gates on a scope, if one is given, and with these settings changed."""
        torch.manual_seed(1)
        model = Transformer(unpruned_shape(sizes, bpe.source_subwords, bpe.target_subwords)).train()
        return training_of(model, pairs, settings.model_copy(update=changes), gates, scope)

    return {
        "fp32, adam": training(precision="fp32", optimizer="adam"),
        "bf16, adam": training(precision="bf16", optimizer="adam"),
        "fp32, muon": training(precision="fp32", optimizer="muon"),
        "as the demo": training(),
        "gates, all": training(scope="all"),
        "gates, encoder": training(scope="enc_self"),
    }


def main() -> None:
    """Print CPU milliseconds per update, tokens and operations per second, and ratios."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        demo = read_yaml(Path(__file__).parents[1] / "config.yaml")["experiments"]["demo"]
        pairs = random_pairs(BpeSettings(**demo["bpe"]), Path(folder))
        kinds = trainings(pairs)
        seconds, tokens, done = dict.fromkeys(kinds, 0.0), 0, 0.0
        first = next(iter(kinds.values()))
        for number, members in zip(range(WARM + UPDATES), first.updates(0), strict=False):
            for name, training in kinds.items():
                started = time.process_time()
                training.step(members)
                seconds[name] += (time.process_time() - started) * (number >= WARM)
            if number >= WARM:
                tokens += int((pairs.source.lengths[members] + 1).sum())
                done += operations(first.model, pairs, members)
    slowest = next(iter(seconds.values()))
    for name, spent in seconds.items():
        print(
            f"{name:15} {1000 * spent / UPDATES:7.1f} CPU ms an update  {tokens / spent:8,.0f} source tokens/s  "
            f"{done / spent / 1e9:6.1f} GFLOP/s  {slowest / spent:5.2f} times the first"
        )


if __name__ == "__main__":
    main()
