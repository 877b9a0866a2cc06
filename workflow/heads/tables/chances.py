"""How likely a result is by chance: with heads drawn at random, or with measures that are unrelated.

Nothing here depends on a claim; everything is exact or drawn by a fixed generator. N heads, M models, B draws.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from heads.base.bootstrap import resampled_sums
from heads.tables.measures import shuffles

SIMULATIONS = 10_000
HEADS_DRAWN = 1000

Labels = NDArray[np.int_]
Floats = NDArray[np.float64]


def tops_differ(sizes: Sequence[int], at_most: int) -> float:
    """The probability that two unrelated measures have different highest heads in `at_most` or fewer layers."""
    differing = np.ones(1)
    for size in sizes:
        differing = np.convolve(differing, [1 / size, 1 - 1 / size])
    return float(differing[: at_most + 1].sum())


@lru_cache(maxsize=32)
def best_exceptions(sizes: tuple[int, ...]) -> tuple[Floats, NDArray[np.bool_]]:
    """Simulated rank correlations of two unrelated measures without the head that disturbs them most.

    For each of SIMULATIONS pairs of measures of heads in layers of these sizes: the rank correlation within layers
    without that head, and whether that head is the first layer's highest by the first measure but not by the second.
    """
    rng = np.random.default_rng(1)
    ranks = [[rng.random((SIMULATIONS, size)).argsort(1) for size in sizes] for _ in range(2)]
    products = [_centred_product(a, b) for a, b in zip(*ranks, strict=True)]
    squares = np.array([_squares(size) for size in sizes])
    without = []
    for layer, (a, b) in enumerate(zip(*ranks, strict=True)):
        rest = sum(products) - products[layer]
        scale = squares.sum() - squares[layer] + _squares(sizes[layer] - 1)
        for head in range(sizes[layer]):
            left = np.delete(np.arange(sizes[layer]), head)
            # Without a head, the ranks above its own fall by one.
            fewer = [of[:, left] - (of[:, left] > of[:, [head]]) for of in (a, b)]
            without.append((rest + _centred_product(*fewer)) / scale if scale else np.full(SIMULATIONS, np.nan))
    rhos = np.nan_to_num(np.round(np.stack(without, 1), 9), nan=-1.0)
    best = rhos.argmax(1)
    tops = [own[0].argmax(1) for own in ranks]
    return rhos.max(1), (best == tops[0]) & (tops[0] != tops[1])


def _centred_product(a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
    return np.asarray(((a - (a.shape[1] - 1) / 2) * (b - (b.shape[1] - 1) / 2)).sum(1))


def _squares(size: int) -> float:
    """The sum of squares of the centred ranks of `size` heads."""
    return (size**3 - size) / 12


def all_of_kind(drawn: int, kind: int, heads: int) -> float:
    """The probability that `drawn` of `heads` heads, drawn at random, are all among the `kind` heads of one kind."""
    return comb(kind, drawn) / comb(heads, drawn)


def every_group_drawn(groups: Sequence[Collection[object]], drawn: int, heads: int) -> float:
    """The probability that `drawn` of `heads` heads, drawn at random, include a head of every group."""
    choices = chain.from_iterable(combinations(groups, size) for size in range(len(groups) + 1))
    missed = [(1 - 2 * (len(some) % 2)) * comb(heads - len(set().union(*some)), drawn) for some in choices]
    return sum(missed) / comb(heads, drawn)


def shuffled_p(statistic: Callable[[Floats], Floats], live: NDArray[np.int_], labels: Labels) -> float:
    """The share of shuffled labels [N] with a statistic at least as large as observed, observed labels included.

    live [N, M]: whether each head is left. statistic: of the shares of heads left [..., K, M], ordered by label.
    """
    shuffled = np.concatenate([labels[None], labels[shuffles((0,) * len(labels))]])
    shares = np.stack([(shuffled == label) @ live / (labels == label).sum() for label in np.unique(labels)], 1)
    values = statistic(shares)
    return float((values >= values[0] - 1e-9).mean())


def shares_drawn(live: NDArray[np.int_], labels: Labels) -> Floats:
    """The share of heads left [1+B, K, M] by label, from live [N, M]: over all heads, then over draws of heads."""
    groups = [(labels == label)[:, None] for label in np.unique(labels)]
    counts = np.concatenate([part for group in groups for part in (group, group * live)], 1).astype(np.float32)
    sums = np.concatenate([counts.sum(0, dtype=float)[None], resampled_sums(counts, HEADS_DRAWN)])
    parts = sums.reshape(len(sums), len(groups), 1 + live.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(parts[:, :, 1:] / parts[:, :, :1])
