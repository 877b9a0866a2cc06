"""Prune the inputs of an output map in closed form: which cost least, and how those that stay make up for them.

A sub-layer adds H W to the states: H [N, C] has a row for each of N subwords, with the outputs of all heads side by
side or the hidden units of a feed-forward network, and W [C, D] is its output map. Of all weights W' that do not use
the inputs P, the least squares solution comes closest to H W over a text, and it misses it by

    |H W - H W'|^2 = tr(W_P' ((G^-1)_PP)^-1 W_P),    G = H' H,

so a text is read only once, for G. The group of inputs (a unit, or all of a head's) that costs least goes, the others
are refitted, and so on: optimal brain surgeon (Hassibi and Stork 1993) on the output of a layer, as in ZipLM (Kurtic,
Frantar and Alistarh 2023, sec. 3.1). It is computed in double precision. A ridge on the diagonal of G keeps weights as
they are where the text does not determine them, such as those of units that are always zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-6
"""Added to the diagonal of a Gram matrix, as a share of its mean."""
FRESH = 0.5
"""G is inverted again, so that rounding errors do not add up, whenever only this share of the inputs is left."""
LATER = 64
"""The inverse is brought up to date in one product when so many inputs have gone: for each alone it takes longer."""


@dataclass(frozen=True, slots=True)
class OutputMap:
    """What the surgeon knows of one sub-layer."""

    gram: Tensor
    """G [C, C] in double precision, with the ridge; the last row and column are those of the bias, if there is one."""
    weight: Tensor
    """W [C, D] in double precision; the last row is the bias, if there is one."""
    groups: int
    """Number of heads or units; each has as many inputs as the others, and they lie one after the other."""
    size: int
    """Number of inputs in a group: the width of a head, or 1."""

    @classmethod
    def of(cls, gram: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> "OutputMap":
        """The map of a linear layer with weight [D, C] and bias [D]. gram: of its inputs, and ones if it has a bias."""
        rows = weight.detach().double().T
        if bias is not None:
            rows = torch.cat([rows, bias.detach().double()[None]])
        ridge = RIDGE * gram.diagonal().mean().clamp_min(torch.finfo(torch.float64).tiny)
        return cls(gram + ridge * torch.eye(len(gram), dtype=torch.float64), rows, groups, weight.shape[1] // groups)

    def inputs(self, groups: Sequence[int]) -> Tensor:
        """The places in C of these groups, in that order, then that of the bias."""
        own = torch.arange(self.size) + self.size * torch.tensor(groups, dtype=torch.long)[:, None]
        return torch.cat([own.flatten(), torch.arange(self.groups * self.size, len(self.gram))])


def refitted(what: OutputMap, kept: Sequence[int]) -> Tensor:
    """The weights [K, D] of the inputs of these groups, and of the bias, that miss the whole map's outputs least."""
    return refitted_by(what, what.inputs(kept), factor_of(what, kept))


def factor_of(what: OutputMap, kept: Sequence[int]) -> Tensor:
    """The lower triangular factor of the Gram matrix of these groups and the bias (Cholesky)."""
    places = what.inputs(kept)
    factor: Tensor = torch.linalg.cholesky(what.gram[places][:, places])
    return factor


def refitted_by(what: OutputMap, places: Tensor, factor: Tensor) -> Tensor:
    """As `refitted`, with the factor of the Gram matrix of the inputs that are kept."""
    if len(places) == len(what.weight):
        return what.weight.clone()
    weight = what.weight.clone()
    weight[places] = 0.0  # those that go
    return what.weight[places] + torch.cholesky_solve(what.gram[places] @ weight, factor)


def order_of_removal(what: OutputMap, fewest: int = 0) -> tuple[list[int], list[float]]:
    """The groups in the order in which they go, until `fewest` are left, and the squared error after each."""
    left, order, errors = list(range(what.groups)), [], [0.0]
    while len(left) > fewest:
        number = len(left) - max(fewest, min(len(left) - 1, int(FRESH * len(left))))
        for group, cost in cheapest(what, left, number):
            order.append(group)
            errors.append(errors[-1] + cost)
        left = [group for group in left if group not in {*order}]
    return order, errors[1:]


def cheapest(what: OutputMap, left: Sequence[int], number: int) -> Iterator[tuple[int, float]]:
    """From the groups that are left, so many to remove one after the other, and the squared error that each adds.

    Without those that went last, the inverse is G^-1 - A B and the weights are W - A V. Only what is needed of these is
    computed, blocks and rows, until there is enough to subtract; of each group's weights w, the products w w' are kept
    up to date.
    """
    places, factor = what.inputs(left), factor_of(what, left)
    inverse, weight = torch.cholesky_inverse(factor), refitted_by(what, places, factor)
    inputs, groups, size = len(places), len(left), what.size
    own = torch.arange(groups * size).view(groups, size)

    def by_group(rows: Tensor) -> Tensor:
        """The rows [C, X] of each group [n, e, X]."""
        return rows[: own.numel()].reshape(groups, size, -1)

    blocks, squares = inverse[own[:, :, None], own[:, None]], by_group(weight) @ by_group(weight).mT
    gone, removed, most = torch.zeros(groups, dtype=torch.bool), 0, max(size, LATER // size * size)
    a, b, v = inverse.new_zeros(inputs, most), inverse.new_zeros(most, inputs), weight.new_zeros(most, weight.shape[1])
    for _ in range(number):
        if removed == most:
            inverse.addmm_(a, b, alpha=-1)
            weight.addmm_(a, v, alpha=-1)
            removed = 0
        costs = solve_blocks(blocks, squares, gone).diagonal(dim1=1, dim2=2).sum(1).masked_fill(gone, torch.inf)
        group = int(costs.argmin())
        yield left[group], float(costs[group])
        mine, new = slice(group * size, (group + 1) * size), slice(removed, removed + size)
        before, b_before, v_before = a[:, :removed], b[:removed], v[:removed]
        row, weights = inverse[mine] - before[mine] @ b_before, weight[mine] - before[mine] @ v_before
        solved = torch.linalg.solve(row[:, mine], torch.cat([row, weights], 1))
        b[new], v[new] = solved[:, :inputs], solved[:, inputs:]
        along = weight @ v[new].T - before @ (v_before @ v[new].T)
        moved = by_group(row.T)
        crossed = by_group(along) @ moved.mT
        squares += moved @ (v[new] @ v[new].T) @ moved.mT - crossed - crossed.mT
        blocks -= moved @ by_group(b[new].T).mT
        a[:, new], gone[group], removed = row.T, True, removed + size


def solve_blocks(blocks: Tensor, values: Tensor, gone: Tensor) -> Tensor:
    """B^-1 X for blocks B [n, e, e] and values X [n, e, e]; anything where a group is gone [n]."""
    blocks = torch.where(gone[:, None, None], torch.eye(blocks.shape[1], dtype=blocks.dtype), blocks)
    return values / blocks if blocks.shape[1] == 1 else torch.linalg.solve(blocks, values)
