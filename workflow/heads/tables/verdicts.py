"""Whether a claim of a paper holds here: our number, how sure it is, and the verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heads.tables.correlations import SIGNIFICANT
from heads.tables.settling import NOT_SETTLED

UNKNOWN = float("nan")
TOO_FEW = "too few heads to tell"
TOO_WEAK = "model too weak to tell"

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The quantile 0.975 of Student's t distribution with one degree of freedom and more."""


def t_quantile(values: int) -> float:
    """By which an interval of 95 % for the mean of so many values is wider than its standard error.

    Of more than ten values that of ten, which makes it a little too wide; NaN for less than two.
    """
    return STUDENT[min(values - 2, len(STUDENT) - 1)] if values >= 2 else UNKNOWN


@dataclass(frozen=True)
class Finding:
    """Our number for a claim; NaN: not measured.

    of: out of how many, where something is counted. p_value: where the number was tested against no effect. low, high:
    the ends of its 95 % interval. chance: how likely the condition is to be met where there is nothing to be found,
    such as by two unrelated measures on as many heads. settled: whether the trainings behind it had ended, where that
    could change it. relative: percent of the score that the number is a change of, where it is one.
    """

    ours: float
    of: float = UNKNOWN
    p_value: float = UNKNOWN
    low: float = UNKNOWN
    high: float = UNKNOWN
    chance: float = UNKNOWN
    settled: bool = True
    relative: float = UNKNOWN


NOT_MEASURED = Finding(UNKNOWN)


def holds(finding: Finding, condition: str, limit: float) -> str:
    """Whether our number meets the condition: all, above, at least or at most the limit.

    "yes" or "no" where the whole interval, if there is one, says so; "unclear" where the interval holds the limit, or
    where p, of no effect, is above 0.05, unless the number is short of a limit beyond none; "too few heads to tell"
    where the condition is met, and would be met by chance alone in more than one case of twenty; "not settled" where
    trainings behind the number had not ended; "" for a number that was not measured, such as none of none.
    """
    if np.isnan(finding.ours) or finding.of == 0:
        return ""
    if not finding.settled:
        return NOT_SETTLED
    ends = [finding.ours if np.isnan(end) else end for end in (finding.low, finding.high)]
    verdicts = {_meets(number, finding.of, condition, limit) for number in (finding.ours, *ends)}
    could_be_none = finding.p_value >= SIGNIFICANT
    if verdicts == {False} and not (could_be_none and limit == 0):
        return "no"
    if len(verdicts) == 2 or could_be_none:
        return "unclear"
    return TOO_FEW if finding.chance > SIGNIFICANT else "yes"


def _meets(number: float, of: float, condition: str, limit: float) -> bool:
    met = {"all": number == of, "above": number > limit, "at least": number >= limit, "at most": number <= limit}
    return bool(met[condition])
