"""The scoreboard: what the paper claims, a number for each claim from our own runs, and whether it holds here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from heads.names import SCOPES
from heads.tables.claims_michel import MICHEL_CLAIMS
from heads.tables.correlations import layer_numbers, rank_correlation
from heads.tables.measures import measures_table, relevance_columns
from heads.tables.pruning import heads_left, kept_share
from heads.tables.reading import RUN_COLUMNS, Frames, first_of
from heads.tables.roles import head_functions
from heads.tables.verdicts import NOT_MEASURED, Finding, holds

CONFIDENT = 0.8
"""What every positional head of the paper exceeds (sec. 5)."""

FUNCTIONS = {
    "positional": ("positional", "positional_and_syntactic"),
    "syntactic": ("syntactic", "positional_and_syntactic"),
    "rare": ("rare",),
}
"""Which functions of `heads.tables.roles` count as having a role."""

COLUMNS = (
    "experiment",
    "seed",
    "claim",
    "measure",
    "rule",
    "paper",
    "paper_of",
    "ours",
    "of",
    "low",
    "high",
    "p_value",
    "chance",
    "holds_if",
    "limit",
    "holds",
    "source",
    "tag",
)


@dataclass(frozen=True)
class Evidence:
    """What one experiment found with one seed.

    heads: measures of the baseline's heads. runs: heads left and BLEU of baseline and pruned models. model: a row for
    each head of each of them. functions: a row for each live encoder head, none without trees. roles: `roles.tsv`.
    """

    heads: pd.DataFrame
    runs: pd.DataFrame
    model: pd.DataFrame
    functions: pd.DataFrame
    roles: pd.DataFrame

    @property
    def encoder(self) -> pd.DataFrame:
        """Measures of the baseline's encoder heads."""
        return self.heads[self.heads["attention"] == "enc_self"].reset_index(drop=True)

    @property
    def baseline_functions(self) -> pd.DataFrame:
        """The encoder heads of the unpruned model with their measures and functions; no rows without trees."""
        functions = self.functions[self.functions["kind"] == "baseline"][["layer", "head", "function"]]
        return self.encoder.merge(functions, on=["layer", "head"])

    @property
    def roles_with_cases(self) -> set[str]:
        """The roles that there was anything to measure on: a relation may never occur, or no piece be rare."""
        return set(self.roles[(self.roles["kind"] == "baseline") & (self.roles["cases"] > 0)]["role"])

    @property
    def swept(self) -> pd.DataFrame:
        """Models pruned of all kinds of attention that lost some heads but not all."""
        runs = self.runs[(self.runs["scope"] == "all") & (self.runs["lam"] != "0")]
        return runs[(runs["total"] > 0) & (runs["total"] < runs["of"])]


def claims_table(frames: Frames, claims: pd.DataFrame, michel: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment, seed and claim, and for each rule of relevance where the claim is about relevance.

    claims: the paper's claims, what decides them and the paper's own numbers, see `voita_claims.csv` and `holds`; those
    of Michel et al. stand after them.
    """
    measures = measures_table(frames)
    rows = []
    for experiment, seed in frames["model.json"][["experiment", "seed"]].drop_duplicates().itertuples(index=False):
        evidence = _evidence(frames, measures, str(experiment), int(seed))
        run = {"experiment": experiment, "seed": seed}
        for claim in claims.to_dict("records"):
            identity = str(claim["id"])
            if identity in RELEVANCE_CLAIMS:
                for rule, column in relevance_columns(measures).items():
                    rows.append({**run, **_row(claim, RELEVANCE_CLAIMS[identity](evidence, column)), "rule": rule})
            else:
                rows.append({**run, **_row(claim, CLAIMS[identity](evidence)), "rule": ""})
        own = {name: rows_of(frame, str(experiment), int(seed)) for name, frame in frames.items()}
        for claim in michel.to_dict("records"):
            rows.append({**run, **_row(claim, MICHEL_CLAIMS[str(claim["id"])](own)), "rule": ""})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(claim: dict[str, object], finding: Finding) -> dict[str, object]:
    condition, limit = str(claim["condition"]), claim["limit"]
    told = {name: claim[name] for name in ("claim", "measure", "paper", "paper_of", "limit", "source", "tag")}
    found = {name: getattr(finding, name) for name in ("ours", "of", "low", "high", "p_value", "chance")}
    return {**told, **found, "holds_if": condition, "holds": holds(finding, condition, limit)}  # type: ignore[arg-type]


def rows_of(frame: pd.DataFrame, experiment: str, seed: int) -> pd.DataFrame:
    """The rows of one experiment and seed."""
    return frame[(frame["experiment"] == experiment) & (frame["seed"] == seed)]


def _evidence(frames: Frames, measures: pd.DataFrame, experiment: str, seed: int) -> Evidence:
    def own(frame: pd.DataFrame) -> pd.DataFrame:
        return rows_of(frame, experiment, seed)

    model, roles = own(frames["model.json"]), first_of(own(frames["roles.tsv"]), "trees")
    functions = head_functions({"model.json": model, "roles.tsv": roles})
    keys = list(RUN_COLUMNS)
    bleu = own(frames["bleu.json"])[[*keys, "bleu"]]
    scratch = bleu[bleu["kind"] == "scratch"].assign(kind="pruned").rename(columns={"bleu": "bleu_scratch"})
    left = heads_left(model)
    runs = left.assign(share=kept_share(left)).merge(bleu, on=keys).merge(scratch, on=keys, how="left")
    return Evidence(own(measures), runs, model, functions if len(roles) else functions[:0], roles)


def top_heads_differ(evidence: Evidence, relevance: str) -> Finding:
    """Layers of the encoder whose most relevant head is not the most confident one."""
    tops = [layer[relevance].idxmax() != layer["confidence"].idxmax() for _, layer in evidence.encoder.groupby("layer")]
    return Finding(sum(tops), len(tops))


def relevance_confidence(evidence: Evidence, relevance: str) -> Finding:
    """Rank correlation within encoder layers."""
    rho, p = rank_correlation(*_columns(evidence.encoder, relevance), layer_numbers(evidence.encoder))
    return Finding(rho, p_value=p)


def exception(heads: pd.DataFrame, relevance: str) -> tuple[int, float]:
    """The row of the head whose removal raises the rank correlation within layers most, and the correlation without it.

    No p value is given: it would not know that the head was chosen for what it does to the number.
    """
    without = [heads.drop(index=row) for row in heads.index]
    rhos = [rank_correlation(*_columns(rest, relevance), layer_numbers(rest))[0] for rest in without]
    best = int(np.argmax(np.nan_to_num(rhos, nan=-1.0)))
    return best, rhos[best]


def without_exception(evidence: Evidence, relevance: str) -> Finding:
    """Rank correlation within encoder layers without the head that disturbs it most."""
    return Finding(exception(evidence.encoder, relevance)[1])


def exception_is_first(evidence: Evidence, relevance: str) -> Finding:
    """1 if the head that disturbs most is the most relevant of the first layer and not its most confident one."""
    heads = evidence.encoder
    row = exception(heads, relevance)[0]
    first = heads[heads["layer"] == 0]
    return Finding(float(first[relevance].idxmax() == row and first["confidence"].idxmax() != row), 1)


def _columns(heads: pd.DataFrame, relevance: str) -> tuple[pd.Series, pd.Series]:
    return heads[relevance], heads["confidence"]


def specialised_last(evidence: Evidence) -> Finding:
    """Rank correlation of having any function with the share of the encoder-only lambdas survived."""
    heads = evidence.baseline_functions.dropna(subset="gate_survival_enc_self")
    if not len(heads):
        return NOT_MEASURED
    special = (heads["function"] != "other").astype(float)
    rho, p = rank_correlation(special, heads["gate_survival_enc_self"], np.zeros(len(heads), int))
    return Finding(rho, p_value=p)


def change_at(evidence: Evidence, scope: str, share: float, *, control: bool) -> Finding:
    """BLEU with `share` of the scope's heads left, between the two nearest models, minus the baseline or the control.

    Not measured where the sweep does not reach down to the share.
    """
    runs, pruned = evidence.runs, evidence.runs[evidence.runs["scope"] == scope]
    full = pruned[pruned["lam"] == "0"] if control else runs[runs["kind"] == "baseline"]
    swept = pruned[pruned["lam"] != "0"]
    if not len(full) or not len(swept) or swept["share"].min() > share:
        return NOT_MEASURED
    level = float(full["bleu"].iloc[0])
    curve = pd.concat([pd.Series([level], index=[1.0]), swept[swept["share"] < 1].set_index("share")["bleu"]])
    curve = curve.groupby(level=0).mean()
    return Finding(float(np.interp(share, curve.index.to_numpy(float), curve.to_numpy(float))) - level)


def scratch_not_better(evidence: Evidence) -> Finding:
    """Pruned models that score no less than the same heads trained from scratch."""
    gain = _gain(evidence)
    return Finding(float((gain >= 0).sum()), len(gain)) if len(gain) else NOT_MEASURED


def scratch_gain(evidence: Evidence) -> Finding:
    """Mean BLEU of pruned models minus that of the same heads from scratch."""
    return Finding(float(_gain(evidence).mean()))


def _gain(evidence: Evidence) -> pd.Series:
    return (evidence.runs["bleu"] - evidence.runs["bleu_scratch"]).dropna()


def encoder_fewest(evidence: Evidence) -> Finding:
    """Models in which fewer encoder heads are left than heads of either other kind."""
    left = evidence.swept
    fewest = left["enc_self"] < left[["dec_self", "dec_enc"]].min(axis=1)
    return Finding(float(fewest.sum()), len(left)) if len(left) else NOT_MEASURED


def source_over_self(evidence: Evidence) -> Finding:
    """Mean share of decoder-encoder heads left minus that of decoder self-attention heads, over the sweep."""
    left = evidence.swept
    return Finding(float(((left["dec_enc"] - left["dec_self"]) / (left["of"] / len(SCOPES["all"]))).mean()))


def low_minus_high(evidence: Evidence, attention: str, *, sign: int) -> Finding:
    """Mean share of heads left over the sweep, lowest third of the layers minus highest, times `sign`.

    Layers that do not divide by three give the first and the last layer.
    """
    model = evidence.model.merge(evidence.swept[list(RUN_COLUMNS)], on=list(RUN_COLUMNS))
    live = model[model["attention"] == attention].groupby("layer")["live"].mean()
    third = len(live) // 3 if len(live) % 3 == 0 else 1
    return Finding(float(sign * (live[:third].mean() - live[-third:].mean()))) if len(live) else NOT_MEASURED


def rare_in_first_layer(evidence: Evidence) -> Finding:
    """Rare-word heads of the unpruned model in the first encoder layer; not measured where there are none."""
    heads = evidence.baseline_functions
    rare = heads[heads["function"] == "rare"]
    return Finding(float((rare["layer"] == 0).sum()), len(rare)) if len(rare) else NOT_MEASURED


def share_with(evidence: Evidence, role: str) -> Finding:
    """Encoder heads of the unpruned model with a role, by all of them; not measured where the role has no case."""
    if role not in evidence.roles_with_cases:
        return NOT_MEASURED
    return Finding(float(evidence.baseline_functions["function"].isin(FUNCTIONS[role]).mean()))


def positional_confident(evidence: Evidence) -> Finding:
    """Positional heads with confidence above 0.8; not measured where there are none."""
    heads = evidence.baseline_functions
    positional = heads[heads["function"].isin(FUNCTIONS["positional"])]
    confident = float((positional["confidence"] > CONFIDENT).sum())
    return Finding(confident, len(positional)) if len(positional) else NOT_MEASURED


def relations_beaten(evidence: Evidence) -> Finding:
    """Relations by direction in which the best head of the unpruned model beats the best fixed offset."""
    roles = evidence.roles[(evidence.roles["kind"] == "baseline") & (evidence.roles["role"] == "syntactic")]
    best = roles.dropna(subset=["accuracy", "baseline"]).groupby("name")[["accuracy", "baseline"]].max()
    return Finding(float((best["accuracy"] > best["baseline"]).sum()), len(best)) if len(best) else NOT_MEASURED


def functions_left(evidence: Evidence, share: float) -> Finding:
    """Kinds of function in the encoder-only model nearest to `share` of the encoder heads, the larger one on a tie.

    Not measured where one of them has no case.
    """
    pruned = evidence.runs[(evidence.runs["scope"] == "enc_self") & (evidence.runs["lam"] != "0")]
    if not len(pruned) or not evidence.roles_with_cases >= FUNCTIONS.keys():
        return NOT_MEASURED
    ordered = pruned.sort_values("share", ascending=False, kind="stable")
    lam = ordered.loc[(ordered["share"] - share).abs().idxmin(), "lam"]
    functions = evidence.functions
    found = set(functions[(functions["scope"] == "enc_self") & (functions["lam"] == lam)]["function"])
    return Finding(sum(bool(found & set(names)) for names in FUNCTIONS.values()), len(FUNCTIONS))


RELEVANCE_CLAIMS: dict[str, Callable[[Evidence, str], Finding]] = {
    "top_heads_differ": top_heads_differ,
    "relevance_confidence": relevance_confidence,
    "without_exception": without_exception,
    "exception_is_first": exception_is_first,
}
"""By id in `voita_claims.csv`; each is told the column of one rule's relevance."""

CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    "specialised_last": specialised_last,
    "encoder_10_of_48": partial(change_at, scope="enc_self", share=10 / 48, control=False),
    "encoder_10_of_48_control": partial(change_at, scope="enc_self", share=10 / 48, control=True),
    "encoder_5_of_48": partial(change_at, scope="enc_self", share=5 / 48, control=False),
    "encoder_4_of_48": partial(change_at, scope="enc_self", share=4 / 48, control=False),
    "all_75_of_144": partial(change_at, scope="all", share=75 / 144, control=False),
    "all_75_of_144_control": partial(change_at, scope="all", share=75 / 144, control=True),
    "all_58_of_144": partial(change_at, scope="all", share=58 / 144, control=False),
    "scratch_not_better": scratch_not_better,
    "scratch_gain": scratch_gain,
    "encoder_fewest": encoder_fewest,
    "source_over_self": source_over_self,
    "self_in_low_layers": partial(low_minus_high, attention="dec_self", sign=1),
    "source_in_high_layers": partial(low_minus_high, attention="dec_enc", sign=-1),
    "rare_in_first_layer": rare_in_first_layer,
    "positional_share": partial(share_with, role="positional"),
    "positional_confident": positional_confident,
    "syntactic_share": partial(share_with, role="syntactic"),
    "relations_beaten": relations_beaten,
    "functions_at_17_of_48": partial(functions_left, share=17 / 48),
}
