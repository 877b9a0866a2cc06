"""How long an update of an experiment takes on this machine, found out in seconds before the experiment is run.

Run: python -m heads.training.trial EXPERIMENT THREADS... in a folder with config.yaml; prints seconds per update, for
each number of threads.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.numpy import save_file

from heads.base.files import read_yaml
from heads.base.names import SIDES
from heads.config.settings import resolve, section
from heads.config.trainings import BaselineSettings, BpeSettings, ModelSettings, TrainingSettings
from heads.model.shape import unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan

SENTENCES, SHORTEST, LONGEST = 4000, 8, 20
"""Sentences of random subwords, about as long as the demo's."""
UPDATES = 4
"""The first of which also reserves memory, and does not count."""


def random_pairs(bpe: BpeSettings, folder: Path, shortest: int = SHORTEST, longest: int = LONGEST) -> Pairs:
    """Sentences of random subwords, with lengths drawn uniformly, kept in a folder."""
    draw = np.random.default_rng(1)
    for side, subwords in zip(SIDES, (bpe.source_subwords, bpe.target_subwords), strict=True):
        lengths = draw.integers(shortest, longest + 1, SENTENCES)
        ids = draw.integers(EOS + 1, subwords, int(lengths.sum())).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        save_file({"ids": ids, "offsets": offsets}, folder / side)
    source, target = (Tokens(folder / side) for side in SIDES)
    return Pairs(source, target, longest)


def update_seconds(training: Training) -> float:
    """The shortest time of a few updates in seconds."""
    taken = []
    for members in list(training.pairs.epoch(training.plan.training.batch_tokens, 1, 0))[:UPDATES]:
        started = time.perf_counter()
        training.step(members)
        taken.append(time.perf_counter() - started)
    return min(taken[1:])


def main() -> None:
    """Print the seconds of an update for each number of threads."""
    settings = resolve(read_yaml(Path("config.yaml")))[sys.argv[1]]
    bpe, sizes = section(BpeSettings, settings["bpe"]), section(ModelSettings, settings["model"])
    model = Transformer(unpruned_shape(sizes, bpe.source_subwords, bpe.target_subwords)).train()
    length = section(BaselineSettings, settings["baseline"])
    plan = TrainingPlan(section(TrainingSettings, settings["training"]), length, 1, 0, torch.device("cpu"))
    with TemporaryDirectory() as folder:
        training = Training(model, random_pairs(bpe, Path(folder)), plan)
        for threads in map(int, sys.argv[2:]):
            torch.set_num_threads(threads)
            print(update_seconds(training), flush=True)


if __name__ == "__main__":
    main()
