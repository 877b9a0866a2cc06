"""How long an update of an experiment takes on this machine, found out in seconds before the experiment is run.

Run: python -m heads.training.trial EXPERIMENT THREADS... in the folder of the workflow; prints, as JSON, the updates of
the baseline, and a list of seconds per update, for each number of threads: none if there is a GPU, which would do them.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.numpy import save_file

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.config.settings import configuration, resolve
from heads.config.trainings import BpeSettings
from heads.model.shape import unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan

SENTENCES, SHORTEST, LONGEST = 4000, 8, 20
"""Sentences of random subwords, about as long as the demo's."""
UPDATES = 3
"""The first of which also reserves memory, and does not count."""
MOST_TOKENS = 1024
"""Source tokens of a timed update. How long a larger one takes follows from this many and half of them."""


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
    """The time of an update in seconds. An optimiser takes as long for few tokens as for many."""
    wanted = training.plan.training.batch_tokens
    if wanted <= MOST_TOKENS:
        return shortest(training, wanted)
    half, whole = (shortest(training, tokens) for tokens in (MOST_TOKENS // 2, MOST_TOKENS))
    return whole + max(0.0, whole - half) * (wanted - MOST_TOKENS) / (MOST_TOKENS - MOST_TOKENS // 2)


def shortest(training: Training, tokens: int) -> float:
    """The shortest time in seconds of a few updates with so many source tokens each."""
    taken = []
    for members in training.pairs.epoch(tokens, 1, 0)[:UPDATES]:
        started = time.perf_counter()
        training.step(members)
        taken.append(time.perf_counter() - started)
    return min(taken[1:])


def main() -> None:
    """Print the facts; nothing if the settings are wrong, of which Snakemake will say what is."""
    try:
        settings = resolve(configuration(Path()))[sys.argv[1]]
    except (UserError, KeyError):
        return
    bpe, sizes = settings.bpe, settings.model
    model = Transformer(unpruned_shape(sizes, bpe.source_subwords, bpe.target_subwords)).train()
    length, whole = settings.baseline, settings.training
    seconds = []
    with TemporaryDirectory() as folder:
        plan = TrainingPlan(whole, length, 1, 0, torch.device("cpu"))
        training = Training(model, random_pairs(bpe, Path(folder)), plan)
        for threads in () if torch.cuda.is_available() else map(int, sys.argv[2:]):
            torch.set_num_threads(threads)
            seconds.append(update_seconds(training))
    print(json.dumps([length.updates, seconds]))


if __name__ == "__main__":
    main()
