"""Table of a model's heads: each head's share of the relevance of its layer, over all generation steps.

The relevance R of a head in a step is the signed sum over its neurons. As it may be negative, there are three shares,
each of which sums to one over the heads of a layer:

    relevance            mean over steps of R / sum of R over heads. The paper as written (sec. 4): a share for each
                         step, then their average. Few steps, where a layer's relevance nearly cancels, dominate it.
    relevance_of_sums    sum of R over steps / the same summed over heads. Signed and robust: each step is weighted by
                         the relevance of its layer, the part of the step's top-1 logit that comes through these heads.
                         So a large logit counts more, one that nearly cancels hardly at all, a negative part against
                         the others. It breaks down only where a layer's relevance cancels over all steps together.
    relevance_absolute   mean over steps of |R| / sum of |R| over heads. Every step has equal weight; signs are lost.

Under rules that give all heads of a step relevance of one sign, such as `z-plus` and the authors' released code, which
takes absolute values, the first and the last are the same. All three use the same steps: those that conserved relevance
and have shares, see `shares`.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from heads.analysis.lrp.ratio import AttnLrp, PlainProduct, PlainRatio
from heads.analysis.lrp.released import Voita2019
from heads.analysis.lrp.rules import Rule
from heads.analysis.lrp.split import SignSplit
from heads.analysis.lrp.steps import HeadRelevance, head_relevance
from heads.base.columns import RELEVANCE_COLUMNS
from heads.base.files import UserError
from heads.base.names import ATTENTIONS
from heads.config.analyses import LrpSettings
from heads.model.encoder import Encoder
from heads.model.transformer import Transformer
from heads.text.batches import Batch, make_batch
from heads.translation.beam_search import greedy

CONSERVATION_COLUMNS = (
    "rule", "conservation", "place", "under_way", "absorbed", "largest_deviation", "steps_off", "steps",
)  # fmt: skip

Row = dict[str, object]

TOLERANCE = 1e-3
"""Largest deviation from conservation, as a share of the initial relevance, of a step that counts as conserved.

A denominator keeps stabiliser / |denominator| of what passes it, so deviations grow in proportion to the stabiliser:
with 1e-9 they stayed below 1e-5 in trained models of three layers. The table gives the number of steps that are off.
"""
MOST_OFF = 0.1
"""Largest share of steps that may be off under a rule whose conservation is "shares" (see `Rule.conservation`).

These steps are left out of the averages. Where denominators of the paper's ratio are near zero, float64 itself loses
more than the tolerance: in a model of real text in 3 steps of 100 with a stabiliser of 1e-15, in 39 with 1e-12.
"""


def rule_of(name: str, stabiliser: float) -> Rule:
    """The rule of a name such as `plain` or `z-plus-values`; a suffix overrides its usual way through attention.

    plain: the paper's ratio, through values alone. plain-product: the same with the paper's rule for products, so that
    attention weights have their share. z-plus, alpha-beta: Bach et al. 2015, through the softmax by its derivatives.
    attnlrp: Achtibat et al. 2024, through the softmax. voita-2019: the authors' released code, with its own constants
    instead of `stabiliser`.
    """
    if name == "plain-product":
        return PlainProduct(stabiliser)
    if name == "voita-2019":
        return Voita2019()
    base, _, end = name.rpartition("-") if name.endswith(("-values", "-softmax")) else (name, "", "")
    softmax = end == "softmax" if end else base != "plain"
    if base == "plain":
        return PlainRatio(stabiliser, softmax)
    if base == "attnlrp":
        return AttnLrp(softmax)
    return SignSplit({"z-plus": 1.0, "alpha-beta": 0.5}[base], stabiliser, softmax)


@dataclass(slots=True)
class Sums:
    """Sums over generation steps for one rule."""

    heads: dict[tuple[str, int], list[Tensor]]
    """By attention and layer: signed shares, relevance itself and absolute shares [H]; number of steps with shares."""
    places: dict[str, tuple[Tensor, Tensor]]
    """By sub-layer, from the top: shares under way and absorbed, steps that are off [3], and the largest deviation."""
    conservation: str
    steps: int = 0


def shares(relevance: Tensor, stabiliser: float) -> tuple[Tensor, Tensor, Tensor]:
    """Signed and absolute shares [N, H] of relevances [N, H] of a layer's heads, and which steps have shares [N].

    A step has none, and rows of zeros, if its relevances cancel: |sum| <= stabiliser * sum of absolute values.
    """
    signed, absolute = relevance.sum(1, keepdim=True), relevance.abs().sum(1, keepdim=True)
    usable = signed.abs() > stabiliser * absolute
    zero = torch.zeros_like(relevance)
    return (
        torch.where(usable, relevance / signed, zero),
        torch.where(usable, relevance.abs() / absolute, zero),
        usable[:, 0],
    )


def generated(model: Encoder, batch: Batch) -> Batch:
    """The batch with the model's own greedy translations instead of the references; unchanged for a classifier."""
    if not isinstance(model, Transformer):
        return batch
    sources = [ids[mask][:-1].cpu().numpy() for ids, mask in zip(batch.source, batch.source_mask, strict=True)]
    targets = [np.array(ids, np.int32) for ids in greedy(model, batch.source, batch.source_mask)]
    return make_batch(sources, targets).to(batch.source.device)


def relevance_rows(model: Encoder, batches: Iterable[Batch], settings: LrpSettings) -> tuple[list[Row], list[Row]]:
    """Relevance shares of all live heads, under their original numbers, and the account of conservation, by rule.

    Averages over all generation steps of `batches`, except those in which a rule that should conserve relevance did
    not. Batches are on the model's device; relevance is computed on a copy of the model in float64. Raises UserError if
    a step's relevance is not a number, or if more than MOST_OFF of the steps were not conserved within TOLERANCE.
    """
    model = copy.deepcopy(model).double().eval()
    zeros = partial(torch.zeros, dtype=torch.float64)
    live = model.shape.live_heads
    sizes = {(kind, layer): len(heads) for kind in ATTENTIONS for layer, heads in enumerate(live[kind])}
    rules = {name: rule_of(name, settings.stabiliser) for name in settings.rules}
    found = {
        name: Sums({place: [*zeros(3, size), zeros(())] for place, size in sizes.items()}, {}, rule.conservation)
        for name, rule in rules.items()
    }
    for batch in batches:
        for name, rule in rules.items():
            add(found[name], head_relevance(model, batch, rule), settings.stabiliser)
    return (
        [row for name, sums in found.items() for row in _rows(name, model, sums, settings.stabiliser)],
        [row for name, sums in found.items() for row in conservation_rows(name, sums)],
    )


def add(sums: Sums, found: HeadRelevance, stabiliser: float) -> None:
    """Add the steps of one batch to the sums."""
    sums.steps += len(found.logits)
    deviations = found.deviations()
    kept = torch.ones_like(found.logits, dtype=torch.bool)
    if sums.conservation == "shares":
        for deviation in deviations.values():
            kept &= deviation <= TOLERANCE
    for (kind, layer), before in sums.heads.items():
        relevance = found.heads[kind][layer][kept]
        signed, absolute, usable = shares(relevance, stabiliser)
        parts = (signed, relevance[usable], absolute, usable)
        sums.heads[kind, layer] = [old + part.sum(0).cpu() for old, part in zip(before, parts, strict=True)]
    for place, amounts in found.places.items():
        total, largest = sums.places.get(place, (torch.zeros(3, dtype=torch.float64), torch.tensor(0.0)))
        off = ~(deviations[place] <= TOLERANCE)
        found_here = torch.cat([amounts, off[:, None]], 1).sum(0).cpu()
        # torch's maximum keeps a NaN, unlike max().
        sums.places[place] = (total + found_here, torch.maximum(largest, deviations[place].max().cpu()))


def _rows(rule: str, model: Encoder, sums: Sums, stabiliser: float) -> list[Row]:
    """One row per head; shares are zero if no step has any, `relevance_of_sums` also if the sums cancel."""
    rows: list[Row] = []
    for (kind, layer), (signed, summed, absolute, steps) in sums.heads.items():
        count = int(steps)
        of_sums = shares(summed[None], stabiliser)[0][0]
        columns = (signed / max(count, 1), of_sums, absolute / max(count, 1))
        for head, values in zip(model.shape.live_heads[kind][layer], torch.stack(columns, 1).tolist(), strict=True):
            rows.append(dict(zip(RELEVANCE_COLUMNS, (rule, kind, layer, head, *values, count), strict=True)))
    return rows


def conservation_rows(rule: str, sums: Sums) -> list[Row]:
    """One row per sub-layer, from the top. Raises UserError if too many steps are off."""
    rows: list[Row] = []
    for place, (total, largest) in sums.places.items():
        deviation, count = float(largest), max(sums.steps, 1)
        under_way, absorbed, off = total.tolist()
        if not math.isfinite(deviation) or (sums.conservation == "shares" and off > MOST_OFF * count):
            raise UserError(
                f"relevance is not conserved under the rule {rule} at {place}: {off:.0f} of {count} steps are off by "
                f"more than {TOLERANCE} of their logit (allowed: {MOST_OFF:.0%}), the worst by {deviation:.3g}; ratios "
                "break down near zero denominators: try another lrp.stabiliser, or remove the rule from lrp.rules."
            )
        facts = (rule, sums.conservation, place, under_way / count, absorbed / count, deviation, int(off), sums.steps)
        rows.append(dict(zip(CONSERVATION_COLUMNS, facts, strict=True)))
    return rows
