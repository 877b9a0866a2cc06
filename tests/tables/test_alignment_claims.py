"""Claims about word alignment by rows made by hand, each met and not met, and sure and unsure of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import pytest

from heads.tables.claims_alignment import ALIGNMENT_CLAIMS
from heads.tables.reading import COLUMNS, RUN_COLUMNS, Frames, frame_of, load_reference
from heads.tables.verdicts import TOO_FEW, Finding, holds

FILE = "alignment_heads.tsv"
REFERENCE = load_reference("alignment_claims.csv").set_index("id")
OFFSET = 0.7
RUN = dict.fromkeys(RUN_COLUMNS, "")


def frames(*layers: Sequence[float], margin: float = 0.01) -> Frames:
    """Error rates of each layer's heads at the first step; the second step and a pruned model say the opposite.

    Layers are not in order, as in a file that somebody has sorted.
    """
    rows: list[dict[str, Any]] = []
    for kind in ("pruned", "baseline"):
        for step in ("output", "input"):
            turned = kind == "pruned" or step == "input"
            for layer in reversed(range(len(layers))):
                for head, rate in enumerate(layers[layer]):
                    aer = 1 - rate if turned else rate
                    gain = OFFSET - aer
                    rows.append(
                        {**RUN, "kind": kind, "seed": 1, "step": step, "layer": layer, "head": head, "aer": aer,
                         "aer_low": aer - margin, "aer_high": aer + 2 * margin, "gain": gain,
                         "gain_low": gain - 2 * margin, "gain_high": gain + margin}
                    )  # fmt: skip
    return {FILE: frame_of(rows, (*RUN_COLUMNS, *COLUMNS[FILE]))}


def found(claim: str, *layers: Sequence[float], margin: float = 0.01) -> Finding:
    return ALIGNMENT_CLAIMS[claim](frames(*layers, margin=margin))


def verdict(claim: str, *layers: Sequence[float], margin: float = 0.01) -> str:
    row = REFERENCE.loc[claim]
    return holds(found(claim, *layers, margin=margin), row["condition"], row["limit"])


def test_every_claim_has_its_function_and_none_has_a_number_of_the_paper() -> None:
    """The paper itself was not read, but what its authors' code and others say of it."""
    assert list(REFERENCE.index) == list(ALIGNMENT_CLAIMS)
    assert REFERENCE["paper"].isna().all() and set(REFERENCE["tag"]) == {"[second-hand]", "[repo]"}


@pytest.mark.parametrize("claim", ALIGNMENT_CLAIMS)
def test_without_a_word_alignment_nothing_is_claimed(claim: str) -> None:
    assert isnan(found(claim).ours) and verdict(claim) == ""


def test_the_best_head_of_all_is_held_against_the_best_offset() -> None:
    best = found("heads_align", [0.9, 0.65], [0.6, 0.8])
    assert (best.ours, best.low, best.high) == pytest.approx((0.1, 0.08, 0.11))
    assert verdict("heads_align", [0.9, 0.65], [0.6, 0.8]) == "yes"
    assert verdict("heads_align", [0.9, 0.69]) == "unclear" and verdict("heads_align", [0.8, 0.75]) == "no"


def test_the_upper_half_is_held_against_the_lower_without_the_layer_between() -> None:
    late = found("aligned_late", [0.6, 0.9], [0.5], [0.1], [0.4, 0.8], [0.7])
    assert (late.ours, late.low, late.high) == pytest.approx((0.1, 0.07, 0.13))
    assert verdict("aligned_late", [0.6], [0.5], [0.4], [0.7]) == "yes"
    assert verdict("aligned_late", [0.4], [0.8], [0.7], [0.6]) == "no"
    assert verdict("aligned_late", [0.42], [0.41]) == "unclear" and verdict("aligned_late", [0.3]) == ""


def test_layers_better_than_the_last_but_one_are_counted_with_those_that_may_be() -> None:
    counted = found("last_but_one", [0.5], [0.305, 0.9], [0.2], [0.6], [0.3, 0.7], [0.31])
    assert (counted.ours, counted.of, counted.low, counted.high) == (1, 5, 1, 3)
    assert counted.chance == pytest.approx(1 / 6)
    assert verdict("last_but_one", [0.5], [0.2], [0.3], [0.6]) == "no"
    assert verdict("last_but_one", [0.5], [0.6], [0.3], [0.32]) == "unclear"
    assert verdict("last_but_one", [0.5], [0.6], [0.3], [0.4]) == TOO_FEW
    assert verdict("last_but_one", *([0.9],) * 19, [0.3], [0.4]) == "yes" and verdict("last_but_one", [0.3]) == ""
