"""What the papers claim, a number for each claim from our own runs, and whether it holds here."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from heads.base.names import MEAN, OVER_SEEDS
from heads.tables.claims_alignment import ALIGNMENT_CLAIMS
from heads.tables.claims_michel import MICHEL_CLAIMS
from heads.tables.claims_voita import VOITA_CLAIMS, VOITA_RELEVANCE_CLAIMS
from heads.tables.evidence import Evidence, gather
from heads.tables.measures import measures_table
from heads.tables.reading import Frames
from heads.tables.relevance import relevance_columns, with_other_readings
from heads.tables.seeds import with_spread
from heads.tables.settling import NOT_SETTLED
from heads.tables.verdicts import TOO_FEW, Finding, holds, t_quantile


def _on_frames(claim: Callable[[Frames], Finding]) -> Callable[[Evidence], Finding]:
    return lambda evidence: claim(evidence.frames)


CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    **VOITA_CLAIMS,
    **{name: _on_frames(claim) for name, claim in {**MICHEL_CLAIMS, **ALIGNMENT_CLAIMS}.items()},
}
"""By id in the papers' files of claims, which is one name space."""

RELEVANCE_CLAIMS: dict[str, Callable[[Evidence, str], Finding]] = {**VOITA_RELEVANCE_CLAIMS}

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


def claims_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment, seed and claim, and where it is about relevance for each reading of that.

    `rule` is the reading, such as `plain, signed by step`, see `heads.tables.relevance`; "" of other claims.

    papers: the claims of each paper, what decides them and the paper's own numbers, see `voita_claims.csv` and `holds`.
    """
    measures, claims = measures_table(frames), pd.concat(papers).to_dict("records")
    rows = []
    for experiment, seed in frames["model.json"][["experiment", "seed"]].drop_duplicates().itertuples(index=False):
        evidence = gather(frames, measures, str(experiment), int(seed))
        run = {"experiment": experiment, "seed": seed}
        for claim in claims:
            identity = str(claim["id"])
            if identity in RELEVANCE_CLAIMS:
                for reading, column in relevance_columns(measures).items():
                    found = claim_row(claim, RELEVANCE_CLAIMS[identity](evidence, column))
                    rows.append({**run, **found, "rule": reading})
            else:
                rows.append({**run, **claim_row(claim, CLAIMS[identity](evidence)), "rule": ""})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def claim_row(claim: dict[str, object], finding: Finding) -> dict[str, object]:
    """What a claim states, what was found, and whether it holds, as COLUMNS."""
    condition, limit = str(claim["condition"]), claim["limit"]
    stated = {name: claim[name] for name in ("claim", "measure", "paper", "paper_of", "limit", "source", "tag")}
    found = {name: getattr(finding, name) for name in ("ours", "of", "low", "high", "p_value", "chance")}
    return {**stated, **found, "holds_if": condition, "holds": holds(finding, condition, limit)}  # type: ignore[arg-type]


def decided_claims(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """As `claims_table`, with means over several seeds and their own verdicts, and what other readings say."""
    keys = ["experiment", "claim", "measure", "rule"]
    return with_other_readings(over_seeds(with_spread(claims_table(frames, *papers), keys), keys))


def over_seeds(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The table after `with_spread`, each row of means with an interval over its seeds (Student's) and its own verdict.

    Where all seeds alone say yes, or no, so do they together: a second training that says the same makes nothing less
    sure, wide as an interval over two is. Else the interval decides. It is no narrower than those of its seeds on
    average, since they have their test sentences and numbers of heads in common, and seeds that agree on a number which
    none is sure of make it no surer. Where no seed could tell because heads are too few, nor can their mean.
    """
    parts = []
    for _, group in table.groupby(keys, sort=False, dropna=False):
        seeds, mean = group[~group["seed"].isin(OVER_SEEDS)], group["seed"] == MEAN
        measured = seeds[seeds["ours"].notna()]
        if mean.any() and len(measured) > 1:
            group.loc[mean, ["low", "high", "holds"]] = _verdict_of(measured)
        parts.append(group)
    return pd.concat(parts, ignore_index=True)


def _verdict_of(seeds: pd.DataFrame) -> list[object]:
    """Ends of the interval over seeds and the verdict."""
    values, verdicts = seeds["ours"].astype(float), set(seeds["holds"])
    condition, limit = seeds["holds_if"].iloc[0], seeds["limit"].iloc[0]
    agreed = verdicts.copy().pop() if len(verdicts) == 1 else "unclear"
    if condition == "all":
        return [None, None, agreed]
    half = t_quantile(len(values)) * values.std(ddof=1) / len(values) ** 0.5
    lows, highs = (seeds[end].astype(float).fillna(values) for end in ("low", "high"))
    mean = Finding(
        float(values.mean()),
        low=float(min(values.mean() - half, lows.mean())),
        high=float(max(values.mean() + half, highs.mean())),
        settled=NOT_SETTLED not in verdicts,
    )
    verdict = "unclear" if half == 0 and verdicts == {"unclear"} else holds(mean, condition, limit)
    if agreed in ("yes", "no"):
        verdict = agreed
    elif verdict == "yes" and "yes" not in verdicts and TOO_FEW in verdicts:
        verdict = TOO_FEW
    return [mean.low, mean.high, verdict]
