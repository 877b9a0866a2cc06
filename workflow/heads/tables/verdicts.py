"""Whether a claim of a paper holds here: our number, its uncertainty, and the verdict that follows."""

import operator
from dataclasses import dataclass

import numpy as np

from heads.base.bootstrap import SIGNIFICANT
from heads.tables.curves import NOT_SETTLED

UNKNOWN = float("nan")
TOO_FEW = "too few heads to tell"
TOO_WEAK = "model too weak to tell"

MEETS = {"all": operator.eq, "above": operator.gt, "at least": operator.ge, "at most": operator.le}
"""How a number meets a condition: it is all there are, or stands so to the limit."""

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 0.975 quantile of Student's t distribution, from one degree of freedom on."""


def t_quantile(values: int) -> float:
    """The half width of a 95 % interval for the mean of `values` numbers, in standard errors.

    For more than ten it is that of ten, which is a little too wide; NaN for fewer than two.
    """
    return STUDENT[min(values - 2, len(STUDENT) - 1)] if values >= 2 else UNKNOWN


@dataclass(frozen=True)
class Finding:
    """Our number for a claim; NaN if it was not measured.

    of: the total, if the number is a count. p_value: of the test against no effect, if there was one. low, high: the
    ends of its 95 % interval. chance: the probability of meeting the condition if there is nothing to find, such as
    with two unrelated measures on as many heads. settled: whether the trainings behind it had converged, if that could
    change it. relative: the number in percent of the score that it is a change of, if it is a change.
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
    """The verdict on whether our number meets the condition: all, above, at least or at most the limit.

    "yes" or "no" if the whole interval, if there is one, agrees; "unclear" if the interval contains the limit, or if p,
    for no effect, is at least 0.05, unless the number falls short of a limit other than zero; "too few heads to tell"
    if the condition is met, but chance alone would meet it in more than one case out of twenty; "not settled" if
    trainings behind the number had not converged; "" if the number was not measured, such as none out of none.
    """
    if np.isnan(finding.ours) or finding.of == 0:
        return ""
    if not finding.settled:
        return NOT_SETTLED
    ends = [finding.ours if np.isnan(end) else end for end in (finding.low, finding.high)]
    bound = finding.of if condition == "all" else limit
    verdicts = {bool(MEETS[condition](number, bound)) for number in (finding.ours, *ends)}
    could_be_none = finding.p_value >= SIGNIFICANT
    if verdicts == {False} and not (could_be_none and limit == 0):
        return "no"
    if len(verdicts) == 2 or could_be_none:
        return "unclear"
    return TOO_FEW if finding.chance > SIGNIFICANT else "yes"
