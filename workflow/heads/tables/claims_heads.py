"""Claims of Voita et al. about the unpruned model's heads: relevance, confidence and functions (secs 4 and 5).

Counts are of heads of one model. Where a count depends on roles, its interval runs from the heads whose role the
sentences ensure to all those whose role they do not rule out. `chance` assumes heads drawn at random, or two measures
that are unrelated within each layer.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from heads.tables.chances import all_of_kind, best_exceptions, every_group_drawn, tops_differ
from heads.tables.evidence import BASELINE, FUNCTIONS, Evidence, Model, Places
from heads.tables.measures import layer_numbers, rank_correlation, rank_rho
from heads.tables.verdicts import NOT_MEASURED, UNKNOWN, Finding

CONFIDENT = 0.8
"""The confidence that every positional head of the paper exceeds (sec. 5)."""

EXCEPTIONS = 1
"""The number of exceptions in the paper: the first layer's most relevant head is not confident (sec. 4)."""

AGREES = 0.5
"""Our bound: the smallest correlation that counts as agreement."""


def top_heads_differ(evidence: Evidence, relevance: str) -> Finding:
    """The number of encoder layers whose most relevant head is not the most confident one."""
    layers = [layer for _, layer in evidence.encoder.groupby("layer")]
    tops = [layer[relevance].idxmax() != layer["confidence"].idxmax() for layer in layers]
    return Finding(sum(tops), len(tops), chance=tops_differ([len(layer) for layer in layers], EXCEPTIONS))


def relevance_confidence(evidence: Evidence, relevance: str) -> Finding:
    """Rank correlation of relevance and confidence within encoder layers."""
    heads = evidence.encoder
    rho, p = rank_correlation(heads[relevance], heads["confidence"], layer_numbers(heads))
    return Finding(rho, p_value=p)


def exception(heads: pd.DataFrame, relevance: str) -> tuple[int, float]:
    """The row of the head without which the rank correlation within layers is highest, and that correlation.

    There is no p value, as it would ignore that the head was chosen for its effect on the correlation.
    """
    columns = heads[relevance].to_numpy(float), heads["confidence"].to_numpy(float), layer_numbers(heads)
    rhos = [rank_rho(*(np.delete(column, row) for column in columns)) for row in range(len(heads))]
    best = int(np.argmax(np.nan_to_num(np.round(rhos, 9), nan=-1.0)))
    return best, rhos[best]


def without_exception(evidence: Evidence, relevance: str) -> Finding:
    """Rank correlation within encoder layers without the head that disturbs it most."""
    chance = float((best_exceptions(_sizes(evidence.encoder))[0] >= AGREES).mean())
    return Finding(exception(evidence.encoder, relevance)[1], chance=chance)


def exception_is_first(evidence: Evidence, relevance: str) -> Finding:
    """1 if all others agree and the head that disturbs most is the first layer's most relevant, not most confident."""
    heads = evidence.encoder
    row, rho = exception(heads, relevance)
    first = heads[heads["layer"] == 0]
    met = rho >= AGREES and first[relevance].idxmax() == row and first["confidence"].idxmax() != row
    rhos, is_first = best_exceptions(_sizes(heads))
    return Finding(float(met), 1, chance=float((is_first & (rhos >= AGREES)).mean()))


def _sizes(heads: pd.DataFrame) -> tuple[int, ...]:
    return tuple(int(size) for size in heads.groupby("layer").size())


def role_rank(evidence: Evidence, measure: str, role: str, *, within_layers: bool = True) -> Finding:
    """Rank correlation of having a role with a measure, within layers or over all encoder heads; NaN if none has it."""
    heads = evidence.baseline_functions
    if not len(heads):
        return NOT_MEASURED
    blocks = layer_numbers(heads) if within_layers else np.zeros(len(heads), int)
    rho, p = rank_correlation(heads["function"].isin(FUNCTIONS[role]).astype(float), heads[measure], blocks)
    return Finding(rho, p_value=p)


def rare_most_relevant(evidence: Evidence, relevance: str) -> Finding:
    """1 if the most relevant head of the first layer is a rare-word head; not measured if that layer has none."""
    heads = evidence.baseline_functions
    first = heads[heads["layer"] == 0].reset_index(drop=True)
    rare = first["function"].isin(FUNCTIONS["rare"])
    return Finding(float(rare[first[relevance].idxmax()]), 1, chance=rare.mean()) if rare.any() else NOT_MEASURED


def rare_heads(evidence: Evidence) -> Finding:
    """The number of rare-word heads of the unpruned model; not measured if no subword is rare."""
    if "rare" not in evidence.roles_with_cases:
        return NOT_MEASURED
    has, may = evidence.with_role("rare")
    return Finding(len(has), low=len(has), high=len(may))


def rare_in_first_layer(evidence: Evidence) -> Finding:
    """The number of the unpruned model's rare-word heads in the first encoder layer; not measured if it has none."""
    return _all_among(evidence, "rare", {place for place in _all(evidence) if place[0] == 0})


def positional_confident(evidence: Evidence) -> Finding:
    """The number of positional heads with confidence above 0.8; not measured without positional heads."""
    heads = evidence.encoder
    confident = heads[heads["confidence"] > CONFIDENT]
    return _all_among(evidence, "positional", set(zip(confident["layer"], confident["head"], strict=True)))


def _all_among(evidence: Evidence, role: str, kind: Places) -> Finding:
    """The number of heads with a role that are in `kind`; the low end allows for other heads that may have the role."""
    has, may = evidence.with_role(role)
    if not has:
        return NOT_MEASURED
    count = len(has & kind)
    chance = all_of_kind(len(has), len(kind), len(_all(evidence)))
    return Finding(count, len(has), low=max(0, count - len(may - has - kind)), high=count, chance=chance)


def _all(evidence: Evidence) -> Places:
    return set(zip(evidence.encoder["layer"], evidence.encoder["head"], strict=True))


def rarest_hit(evidence: Evidence, name: str) -> Finding:
    """The largest share of cases in which a first-layer head points at what `name` says, with that head's interval."""
    roles = evidence.roles
    rows = roles[(roles["kind"] == "baseline") & (roles["role"] == "rare") & (roles["name"] == name)]
    rows = rows[rows["layer"] == 0].dropna(subset="accuracy")
    if not len(rows):
        return NOT_MEASURED
    best = rows.loc[rows["accuracy"].idxmax()]
    return Finding(float(best["accuracy"]), low=float(best["low"]), high=float(best["high"]))


def share_with(evidence: Evidence, role: str) -> Finding:
    """The share of the unpruned model's encoder heads that have a role; not measured if the role has no cases."""
    if role not in evidence.roles_with_cases:
        return NOT_MEASURED
    has, may = evidence.with_role(role)
    heads = len(_all(evidence))
    return Finding(len(has) / heads, low=len(has) / heads, high=len(may) / heads)


def relations_beaten(evidence: Evidence) -> Finding:
    """The number of relations, by direction, in which the unpruned model's best head beats the best fixed offset.

    The interval counts those in which the low end, and the high end, of some head's interval beats the offset; it
    ignores that the head is the best of many and that the offset is uncertain.
    """
    relations = _relations(evidence).dropna(subset=["accuracy", "baseline"])
    if not len(relations):
        return NOT_MEASURED
    best = relations.groupby("name")[["accuracy", "low", "high", "baseline"]].max()
    ours, low, high = (int((best[column] > best["baseline"]).sum()) for column in ("accuracy", "low", "high"))
    return Finding(ours, len(best), low=low, high=high)


def several_heads(evidence: Evidence) -> Finding:
    """The number of relations, by direction, that several heads of the unpruned model find, of those that any finds."""
    relations = _relations(evidence)
    if "syntactic" not in evidence.roles_with_cases:
        return NOT_MEASURED
    finders = relations[relations["holds"] == 1].groupby("name").size()
    possible = relations[relations["excess_high"] >= 0].groupby("name").size()
    ours = int((finders > 1).sum())
    # If no relation is found at all, the claim is denied rather than not measured.
    return Finding(ours, len(finders) or UNKNOWN, low=ours, high=max(ours, int((possible > 1).sum())))


def _relations(evidence: Evidence) -> pd.DataFrame:
    return evidence.roles[(evidence.roles["kind"] == "baseline") & (evidence.roles["role"] == "syntactic")]


def functions_left(evidence: Evidence, share: float) -> Finding:
    """The number of the unpruned model's kinds of function that the encoder-only model nearest to `share` still has.

    On a tie, the larger model counts. chance: the probability that heads kept at random include every one of these
    kinds. Not measured without syntactic roles, since one of the kinds is unknown.
    """
    if "syntactic" not in evidence.roles_with_cases:
        return NOT_MEASURED
    pruned = evidence.pruned("enc_self")
    groups = {role: evidence.with_role(role)[0] for role in FUNCTIONS}
    own = [role for role, heads in groups.items() if heads]
    if not len(pruned) or not own:
        return NOT_MEASURED
    ordered = pruned.sort_values("share", ascending=False, kind="stable")
    model = ordered.loc[(ordered["share"] - share).abs().idxmin()]
    left = [evidence.with_role(role, ("pruned", "enc_self", model["lam"], model["keep"])) for role in own]
    ours, may = (sum(bool(heads) for heads in kind) for kind in zip(*left, strict=True))
    chance = every_group_drawn([groups[role] for role in own], int(model["enc_self"]), len(_all(evidence)))
    return Finding(ours, len(own), low=ours, high=may, chance=chance)


def functions_drift(evidence: Evidence, share: float) -> Finding:
    """The change, by pruning the encoder, in the share of positional heads that are syntactic too.

    This is the share in encoder-only models of at most `share` of the heads, all counted together, minus that in the
    unpruned model. Not measured if either has no positional head. The ends take syntactic roles that are ensured on one
    side, and only not ruled out on the other.
    """
    pruned = evidence.pruned("enc_self")
    few = pruned[pruned["share"] <= share]
    small = [("pruned", "enc_self", lam, keep) for lam, keep in zip(few["lam"], few["keep"], strict=True)]
    if "syntactic" not in evidence.roles_with_cases:
        return NOT_MEASURED
    (low, high), (low_before, high_before) = _doubled(evidence, small), _doubled(evidence, [BASELINE])
    return Finding(low - low_before, low=low - high_before, high=high - low_before)


def _doubled(evidence: Evidence, models: list[Model]) -> tuple[float, float]:
    """The shares of some models' positional heads that are, and that may be, syntactic too; NaN without any."""
    counts = [(0, 0, 0)]
    for model in models:
        heads, (has, may) = evidence.with_role("positional", model)[0], evidence.with_role("syntactic", model)
        counts.append((len(heads), len(heads & has), len(heads & may)))
    positional, doubled, possibly = (sum(column) for column in zip(*counts, strict=True))
    return (doubled / positional, possibly / positional) if positional else (UNKNOWN, UNKNOWN)


RELEVANCE_CLAIMS: dict[str, Callable[[Evidence, str], Finding]] = {
    "top_heads_differ": top_heads_differ,
    "relevance_confidence": relevance_confidence,
    "without_exception": without_exception,
    "exception_is_first": exception_is_first,
    "positional_relevant": partial(role_rank, role="positional"),
    "syntactic_relevant": partial(role_rank, role="syntactic"),
    "rare_most_relevant": rare_most_relevant,
}
"""By id in `voita_claims.csv`; each function takes the column of one reading of relevance."""

HEAD_CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    "positional_share": partial(share_with, role="positional"),
    "positional_confident": positional_confident,
    "positional_most_confident": partial(role_rank, measure="confidence", role="positional", within_layers=False),
    "syntactic_share": partial(share_with, role="syntactic"),
    "relations_beaten": relations_beaten,
    "several_heads": several_heads,
    "rare_heads": rare_heads,
    "rare_in_first_layer": rare_in_first_layer,
    "rarest": partial(rarest_hit, name="rarest"),
    "two_rarest": partial(rarest_hit, name="one of two rarest"),
    "two_rarest_wmt": partial(rarest_hit, name="one of two rarest"),
    "functions_at_17_of_48": partial(functions_left, share=17 / 48),
    "functions_drift": partial(functions_drift, share=17 / 48),
}
"""The others about the unpruned model's heads, and about the functions that are left after pruning."""
