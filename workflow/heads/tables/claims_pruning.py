"""Claims of Voita et al. about pruned models: cost in BLEU, order of pruning, training from scratch (sec. 6).

BLEU, and all that is derived from it, is computed on all test sentences and on draws of them, the same for every model
of an experiment and seed. Claims about the kinds and layers of the heads that are left are tested by shuffling kinds,
or layers, among the heads of the model, or have an interval by draws of heads. Their units are heads, each with its
fate in the whole sweep, so that there is one p value over all models.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heads.base.bootstrap import ROUNDING, resampled_sums
from heads.base.names import ATTENTIONS, HEAD
from heads.tables.chances import HEADS_DRAWN, shares_drawn, shuffled_p
from heads.tables.curves import SETTLED
from heads.tables.evidence import Evidence, Scores, of_draws
from heads.tables.measures import rank_correlation
from heads.tables.picking import is_control, original, pruned_by_gates
from heads.tables.reading import RUN_COLUMNS
from heads.tables.verdicts import NOT_MEASURED, Finding


def specialised_last(evidence: Evidence) -> Finding:
    """Rank correlation of having any function with the share of the encoder-only lambdas that a head survives.

    Not measured without syntactic roles, since a head without any function may have one of these.
    """
    heads = evidence.baseline_functions.dropna(subset="gate_survival_enc_self")
    if not len(heads) or "syntactic" not in evidence.roles_with_cases:
        return NOT_MEASURED
    special = (heads["function"] != "other").astype(float)
    rho, p = rank_correlation(special, heads["gate_survival_enc_self"], np.zeros(len(heads), int))
    return Finding(rho, p_value=p)


def gates_between(evidence: Evidence) -> Finding:
    """Share of gates that end neither at 0 nor at 1, over all pruned models; units: heads."""
    gates = evidence.gates
    gates = pruned_by_gates(gates[gates["kind"] == "gates"]) if len(gates) else gates
    if not len(gates):
        return NOT_MEASURED
    heads = gates.groupby([*HEAD])["strictly_between"].agg(["sum", "size"]).to_numpy()
    sums = np.concatenate([heads.sum(0, dtype=float)[None], resampled_sums(heads.astype(np.float32), HEADS_DRAWN)])
    return of_draws(sums[:, 0] / sums[:, 1])


def change_at(evidence: Evidence, scope: str, share: float, *, control: bool) -> Finding:
    """Delta BLEU with `share` of the scope's heads left, against the baseline or the control.

    Interpolated between the two nearest models. Not measured if the sweep does not reach down to the share.
    """
    full, swept = _full(evidence, scope, control=control), evidence.pruned(scope)
    if full is None or not len(swept) or swept["share"].min() > share:
        return NOT_MEASURED
    return _relative_to(full, of_draws(_line(full, swept, share) - full))


def _full(evidence: Evidence, scope: str, *, control: bool) -> Scores | None:
    """The scores of the baseline or of the scope's control; None if there is no such run."""
    runs = evidence.runs
    controls = (runs["kind"] == "pruned") & (runs["scope"] == scope) & is_control(runs)
    rows = runs[controls if control else runs["kind"] == "baseline"]
    return np.asarray(rows["scores"].iloc[0]) if len(rows) else None


def _relative_to(full: Scores | None, change: Finding) -> Finding:
    """A change of BLEU with its percentage of the full model's BLEU, if that is known and above zero."""
    return change if full is None or full[0] <= 0 else replace(change, relative=100 * change.ours / float(full[0]))


def _line(full: Scores, swept: pd.DataFrame, share: float) -> Scores:
    """Scores at a share of heads, interpolated between the swept models and `full`, which has all heads."""
    fewer = swept[swept["share"] < 1]
    points = pd.DataFrame(np.stack(fewer["scores"].tolist()), index=fewer["share"]).groupby(level=0).mean()
    shares = [*points.index, 1.0]
    weights = [np.interp(share, shares, one) for one in np.eye(len(shares))]
    return np.asarray(np.array(weights) @ np.vstack([points, full]))


def most_encoder_heads_free(evidence: Evidence, encoder: float, decoder: float) -> Finding:
    """Delta BLEU against the baseline of the largest model, pruned in all kinds, with at most these shares of heads."""
    full, swept = _full(evidence, "all", control=False), evidence.pruned("all")
    if full is None or not len(swept):
        return NOT_MEASURED
    of_encoder = swept[original("enc_self")]
    if not of_encoder.all() or (of_encoder == swept["of"]).any():
        return NOT_MEASURED
    few = (swept["enc_self"] <= encoder * of_encoder) & (
        swept["dec_self"] + swept["dec_enc"] <= decoder * (swept["of"] - of_encoder)
    )
    if not few.any():
        return NOT_MEASURED
    largest = swept[few].sort_values("total", ascending=False, kind="stable").iloc[0]
    return _relative_to(full, of_draws(largest["scores"] - full))


def scratch_not_better(evidence: Evidence) -> Finding:
    """The number of models pruned in all kinds of attention that score no less than the same heads from scratch."""
    gains, settled = _gains(evidence, "all")
    if not len(gains):
        return NOT_MEASURED
    return replace(of_draws((gains >= -ROUNDING).sum(0).astype(float), len(gains)), settled=settled)


def scratch_gain(evidence: Evidence, scope: str) -> Finding:
    """Mean BLEU of the models pruned in a scope minus that of the same heads trained from scratch."""
    gains, settled = _gains(evidence, scope)
    if not len(gains):
        return NOT_MEASURED
    return replace(_relative_to(_full(evidence, scope, control=False), of_draws(gains.mean(0))), settled=settled)


def _gains(evidence: Evidence, scope: str) -> tuple[NDArray[np.float64], bool]:
    """Scores minus those from scratch [models, 1+B], and whether these are settled pairs.

    Where the same heads were cut out and fine-tuned, that model replaces the pruned one. If some pairs are settled, the
    others are left out.
    """
    both = evidence.pruned(scope)
    both = both[both["scores_scratch"].notna()]
    settled = both["pair"] == SETTLED
    if settled.any():
        both = both[settled]
    ours = [a if b is None else b for a, b in zip(both["scores"], both["scores_trained_on"], strict=True)]
    return np.array([a - b for a, b in zip(ours, both["scores_scratch"], strict=True)]), bool(settled.any())


def penalty_gain(evidence: Evidence) -> Finding:
    """Mean BLEU of fine-tuned pruned models minus that of gates trained with their penalty from scratch.

    Compared at the share of heads left by training from scratch, interpolated between the pruned models; not measured
    if these do not reach down to it.
    """
    gains = []
    for run in evidence.runs[evidence.runs["kind"] == "pruned_from_scratch"].to_dict("records"):
        full, swept = _full(evidence, run["scope"], control=True), evidence.pruned(run["scope"])
        full = _full(evidence, run["scope"], control=False) if full is None else full
        if full is not None and len(swept) and swept["share"].min() <= run["share"]:
            gains.append(_line(full, swept, run["share"]) - run["scores"])
    if not gains:
        return NOT_MEASURED
    return _relative_to(_full(evidence, "", control=False), of_draws(np.mean(gains, 0)))


def encoder_fewest(evidence: Evidence) -> Finding:
    """The number of models that keep a smaller share of the encoder heads than of any other kind of heads.

    p: how often shuffled kinds put the encoder as far behind the nearest of the others, on average over the sweep. The
    count itself says little: by chance the encoder is last everywhere in one case out of three or four.
    """
    there = tuple(kind for kind in ATTENTIONS if kind in {*evidence.model["attention"]})
    heads, live = _survival(evidence, there)
    if not live.size or there[0] != "enc_self" or len(there) < 2:
        return NOT_MEASURED

    def behind(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(shares[..., 1:, :].min(-2) - shares[..., 0, :])

    kinds = heads["attention"].map(ATTENTIONS.index).to_numpy()
    p_value = shuffled_p(lambda shares: np.asarray(behind(shares).mean(-1)), live, kinds)
    own = np.stack([live[kinds == kind].mean(0) for kind in np.unique(kinds)])
    return Finding(float((behind(own) > 0).sum()), live.shape[1], p_value=p_value)


def more_left(evidence: Evidence, most: str, least: str) -> Finding:
    """Mean share of heads left of one kind minus that of another, over the sweep; p: by shuffling these two kinds."""
    heads, live = _survival(evidence, (most, least))
    return _difference(live, (heads["attention"] == most).to_numpy(int)) if live.size else NOT_MEASURED


def low_minus_high(evidence: Evidence, attention: str, *, sign: int) -> Finding:
    """Mean share of heads left over the sweep, lowest third of the layers minus highest, times `sign`.

    If the number of layers is not divisible by three, the first and the last layer are compared. p: by shuffling layers
    among heads of this kind.
    """
    heads, live = _survival(evidence, (attention,))
    if not live.size:
        return NOT_MEASURED
    layers = heads["layer"].to_numpy(int)
    count = layers.max() + 1
    if count < 2:
        return NOT_MEASURED
    third = count // 3 if count % 3 == 0 else 1
    return _difference(live, sign * np.where(layers < third, 1, np.where(layers >= count - third, -1, 0)))


def _difference(live: NDArray[np.int_], labels: NDArray[np.int_]) -> Finding:
    """Mean of live [heads, models] for the highest label minus that for the lowest, with a two-sided p."""
    p_value = shuffled_p(lambda shares: np.abs((shares[..., -1, :] - shares[..., 0, :]).mean(-1)), live, labels)
    return Finding(float(live[labels == labels.max()].mean() - live[labels == labels.min()].mean()), p_value=p_value)


def nearly_equal(evidence: Evidence, one: str, other: str) -> Finding:
    """Mean distance over the sweep between the shares of heads left of two kinds; units: heads of both kinds."""
    heads, live = _survival(evidence, (one, other))
    if not live.size:
        return NOT_MEASURED
    shares = shares_drawn(live, (heads["attention"] == one).to_numpy(int))
    return of_draws(np.abs(shares[:, 0] - shares[:, 1]).mean(-1))


def _survival(evidence: Evidence, kinds: tuple[str, ...]) -> tuple[pd.DataFrame, NDArray[np.int_]]:
    """The heads of some kinds, none if the models never had one of these, and whether each is left [heads, models]."""
    model = evidence.model.merge(evidence.swept[[*RUN_COLUMNS, "target"]], on=list(RUN_COLUMNS))
    model = model[model["attention"].isin(kinds if {*kinds} <= {*model["attention"]} else ())]
    live = model.pivot(index=[*HEAD], columns="target", values="live")
    return live.index.to_frame(index=False), live.to_numpy(int)


PRUNING_CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    "specialised_last": specialised_last,
    "gates_between": gates_between,
    "penalty_from_scratch": penalty_gain,
    "encoder_from_scratch": partial(scratch_gain, scope="enc_self"),
    "encoder_10_of_48": partial(change_at, scope="enc_self", share=10 / 48, control=False),
    "encoder_10_of_48_control": partial(change_at, scope="enc_self", share=10 / 48, control=True),
    "encoder_5_of_48": partial(change_at, scope="enc_self", share=5 / 48, control=False),
    "encoder_4_of_48": partial(change_at, scope="enc_self", share=4 / 48, control=False),
    "all_75_of_144": partial(change_at, scope="all", share=75 / 144, control=False),
    "all_75_of_144_control": partial(change_at, scope="all", share=75 / 144, control=True),
    "all_58_of_144": partial(change_at, scope="all", share=58 / 144, control=False),
    "three_quarters_of_encoder": partial(most_encoder_heads_free, encoder=14 / 48, decoder=61 / 96),
    "scratch_not_better": scratch_not_better,
    "scratch_gain": partial(scratch_gain, scope="all"),
    "encoder_fewest": encoder_fewest,
    "source_over_self": partial(more_left, most="dec_enc", least="dec_self"),
    "self_near_source": partial(nearly_equal, one="dec_self", other="dec_enc"),
    "self_over_encoder": partial(more_left, most="dec_self", least="enc_self"),
    "self_near_encoder": partial(nearly_equal, one="dec_self", other="enc_self"),
    "self_in_low_layers": partial(low_minus_high, attention="dec_self", sign=1),
    "source_in_high_layers": partial(low_minus_high, attention="dec_enc", sign=-1),
}
"""By id in `voita_claims.csv`."""
