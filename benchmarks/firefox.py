"""How fast Firefox's translator is trained with gates, compared with the matrix products of an update alone.

Run: PYTHONPATH=workflow python benchmarks/firefox.py. One thread. Random sentences of 20 to 40 subwords; batches and
scopes are those of the experiment firefox-en-pt. All variants take turns, so that a busy machine slows them alike.
"""

import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn
from train import training_of

from heads.base.files import read_yaml
from heads.config.settings import merged, resolve
from heads.config.trainings import BpeSettings
from heads.interop.firefox.importing import model_of_firefox, read_firefox
from heads.interop.formats import format_of
from heads.interop.original import OriginalFiles
from heads.model.linear import multiplied, weight_gradient
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.training.loop import Training
from heads.training.trial import random_pairs

UPDATES, WARM = 8, 2
NAME, EXPERIMENT = "firefox/en-pt", "firefox-en-pt"


def trainings(model: Transformer, pairs: Pairs) -> dict[str, Training]:
    """A training with gates of each scope, in fp32 and in bf16."""
    root = Path(__file__).parents[1]
    own = read_yaml(root / "config/experiments/firefox.yaml")
    experiment = resolve(merged(own, read_yaml(root / "config.yaml")))[EXPERIMENT]
    settings, gates = experiment.training, experiment.gates
    return {
        f"{scope}, {precision}": training_of(
            deepcopy(model).train(), pairs, settings.model_copy(update={"precision": precision}), gates, scope
        )
        for scope in ("enc_self", "all")
        for precision in ("fp32", "bf16")
    }


def sizes(model: Transformer) -> tuple[list[torch.Size], list[torch.Size]]:
    """Shapes of all matrices that source tokens are multiplied by, and of those for target tokens."""
    stacks = [[p.shape for p in part.parameters() if p.dim() == 2] for part in (model.encoder, model.decoder)]
    return stacks[0], [*stacks[1], model.projection.weight.shape]


class Products:
    """The matrix products of an update alone: one forward, and two backward where a weight is trained.

    By the library that multiplies faster, as in the training.
    """

    def __init__(self, model: Transformer, *, decoder_learns: bool) -> None:
        self.sides = [
            [(torch.randn(shape), learns) for shape in part]
            for part, learns in zip(sizes(model), (True, decoder_learns), strict=True)
        ]

    def once(self, tokens: tuple[int, int]) -> None:
        """Compute all products once, for these numbers of source and target tokens."""
        for rows, side in zip(tokens, self.sides, strict=True):
            inputs: dict[int, Tensor] = {}
            for weight, learns in side:
                width = weight.shape[1]
                states = inputs.setdefault(width, torch.randn(rows, width))
                slopes = multiplied(states, weight)
                multiplied(slopes, weight.T)
                if learns:
                    weight_gradient(slopes, states)


def main() -> None:
    """Print CPU milliseconds per update, target tokens per CPU second, and the ratio to the products alone."""
    torch.set_num_threads(1)
    _, place = format_of(NAME)
    model: nn.Module = model_of_firefox(read_firefox(OriginalFiles(place)))
    assert isinstance(model, Transformer)
    with TemporaryDirectory() as folder:
        subwords = BpeSettings(source_subwords=model.shape.source_subwords, target_subwords=model.shape.target_subwords)
        pairs = random_pairs(subwords, Path(folder), shortest=20, longest=40)
        kinds = trainings(model, pairs)
        alone = {"enc_self": Products(model, decoder_learns=False), "all": Products(model, decoder_learns=True)}
        seconds, tokens = dict.fromkeys([*kinds, *alone], 0.0), 0
        for number, members in zip(range(WARM + UPDATES), next(iter(kinds.values())).updates(0), strict=False):
            rows = (int((pairs.source.lengths[members] + 1).sum()), int((pairs.target.lengths[members] + 1).sum()))
            calls: dict[str, Callable[[], object]] = {
                name: partial(training.step, members) for name, training in kinds.items()
            }
            calls |= {scope: partial(products.once, rows) for scope, products in alone.items()}
            for name, call in calls.items():
                started = time.process_time()
                call()
                seconds[name] += (time.process_time() - started) * (number >= WARM)
            tokens += rows[1] * (number >= WARM)
    for name, spent in seconds.items():
        products = seconds[name.split(",")[0]]
        print(
            f"{name:15} {1000 * spent / UPDATES:7.1f} CPU ms an update  {tokens / spent:8,.0f} target tokens/s  "
            f"{spent / products:5.2f} times the products in fp32"
        )


if __name__ == "__main__":
    main()
