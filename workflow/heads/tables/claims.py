"""The papers' claims, a number for each from our own runs, whether it holds here, and the scoreboard of all."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import pandas as pd

from heads.base.names import BLEU, MEAN, OVER_SEEDS
from heads.tables.claims_alignment import ALIGNMENT_CLAIMS
from heads.tables.claims_heads import HEAD_CLAIMS, RELEVANCE_CLAIMS
from heads.tables.claims_michel import MICHEL_CLAIMS, share
from heads.tables.claims_pruning import PRUNING_CLAIMS
from heads.tables.curves import NOT_SETTLED
from heads.tables.evidence import Evidence, gather
from heads.tables.labels import SIDE_BY_SIDE, relevance_columns, side_by_side
from heads.tables.measures import measures_table
from heads.tables.reading import SCORED, Frames
from heads.tables.seeds import with_spread
from heads.tables.verdicts import NOT_MEASURED, TOO_FEW, TOO_WEAK, Finding, holds, t_quantile


def _on_frames(claim: Callable[[Frames], Finding]) -> Callable[[Evidence], Finding]:
    return lambda evidence: claim(evidence.frames)


CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    **HEAD_CLAIMS,
    **PRUNING_CLAIMS,
    **{name: _on_frames(claim) for name, claim in {**MICHEL_CLAIMS, **ALIGNMENT_CLAIMS}.items()},
}
"""By id in the papers' files of claims, which share one namespace."""
LEAST_BLEU = 5.0
"""The least BLEU of a translation model that has something to lose; our bound, as is the next."""
TIMES_COPIED = 2.0
"""The same as a multiple of the BLEU of the copied source text, since names and numbers alone score."""

PAPERS = ("paper", "paper_of", "limit", "margin", "source", "tag")
CLAIM_COLUMNS = (
    *("experiment", "seed", "metric", "claim", "measure", "rule", "paper", "paper_of", "ours", "of"),
    *("relative_percent", "low", "high", "p_value", "chance", "holds_if", "limit", "margin", "holds", "source", "tag"),
)
STATED = (
    *("study", "topic", "name", "metric", "claim", "measure", "rule", "holds_if", "limit", "margin", "source", "tag"),
    *("paper", "paper_of"),
)
"""Columns of the papers' files of claims, and the reading of relevance that decides."""
FOUND = {"ours": "ours", "of": "of", "relative_percent": "relative_percent", "holds": "verdict"}
FOUND |= {"other_readings": "other_readings"}
"""Columns of results in the table of claims, and their names here, which precede the experiment's name."""


def claims_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment, seed and claim, and for each reading of relevance if the claim depends on it.

    `rule` is the reading, such as `plain, signed by step`, see `heads.tables.labels`; it is "" for other claims.

    papers: the claims of each paper, see `stated`. A claim about one of the paper's corpora is tested on experiments
    that are compared with that corpus, and is not measured on others; a claim about a metric is tested on models scored
    by it.
    """
    measures, claims = measures_table(frames), stated(*papers)
    metrics = dict(frames[SCORED][["experiment", "metric"]].itertuples(index=False))
    rows = []
    runs = frames["model.json"][["experiment", "seed", "compared_with"]].drop_duplicates()
    for experiment, seed, corpus in runs.itertuples(index=False):
        evidence = gather(frames, measures, str(experiment), int(seed))
        run, weak = {"experiment": experiment, "seed": seed}, too_weak(evidence.frames)
        for claim in claims[claims["metric"] == metrics[experiment]].to_dict("records"):
            identity = str(claim["id"])
            if identity in RELEVANCE_CLAIMS:
                for reading, column in relevance_columns(measures).items():
                    found = claim_row(claim, RELEVANCE_CLAIMS[identity](evidence, column))
                    rows.append({**run, **found, "rule": reading})
            else:
                asked = claim["corpus"] in ("", corpus)
                finding = CLAIMS[identity](evidence) if asked else NOT_MEASURED
                rows.append({**run, **claim_row(claim, finding, weak=weak), "rule": ""})
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


def stated(*papers: pd.DataFrame) -> pd.DataFrame:
    """The papers' claims as in their files, such as `voita_claims.csv`, but with the margin applied to the limit.

    `study`: the paper that makes the claim, "ours" for our controls. `condition` and `limit`: see `holds`. `margin`: by
    how much a number may be worse than the paper's limit. `corpus`: the paper's corpus that the claim is about, empty
    for both. `floor`: whether it is about a small loss, which a model that can hardly do its task (`too_weak`) would
    show anyway. `metric`: the metric of the models that it is about, BLEU if a file does not say.
    """
    # A limit with a margin is a number that a paper found once; even the paper's own model could not show an interval
    # that lies entirely beyond it. Draws of 3,000 news sentences, the size of the paper's test set, give BLEU +-0.2.
    # With a margin of 0.25 a model with the paper's number passes, and one that loses half a point more does not.
    # Shares of rare words are more certain, but come from one head in one training: those of two of our trainings
    # differ by up to 0.01, and those of different texts by more.
    claims = pd.concat(papers, ignore_index=True)
    margin, corpus = claims["margin"].fillna(0.0), claims["corpus"].astype(object).fillna("")
    limit = claims["limit"] + margin * claims["condition"].map({"at most": 1}).fillna(-1)
    metric = claims.get("metric", pd.Series(BLEU, claims.index)).astype(object).fillna(BLEU)
    return claims.assign(limit=limit, margin=margin, corpus=corpus, metric=metric)


def claim_row(claim: dict[str, object], finding: Finding, *, weak: bool = False) -> dict[str, object]:
    """A claim, its finding and its verdict, by column of CLAIM_COLUMNS; weak: whether the model is `too_weak`."""
    condition, limit = str(claim["condition"]), claim["limit"]
    shared = {name: claim[name] for name in ("metric", "claim", "measure", *PAPERS)}
    found = {name: getattr(finding, name) for name in ("ours", "of", "low", "high", "p_value", "chance")}
    verdict = holds(finding, condition, limit)  # type: ignore[arg-type]
    if verdict and weak and claim["floor"] == "yes":
        verdict = TOO_WEAK
    return {**shared, **found, "relative_percent": finding.relative, "holds_if": condition, "holds": verdict}


def too_weak(frames: Frames) -> bool:
    """Whether the unpruned model of one experiment and seed is too weak for a claim about a small loss.

    A classifier is too weak if the lower end of its accuracy's exact 95 % interval, over draws of test examples, is not
    above the share of the likeliest label. A translation model is too weak below LEAST_BLEU, or TIMES_COPIED times the
    BLEU of the copied source if that was scored. A model without a score is not called weak.
    """
    scores = frames[SCORED][frames[SCORED]["kind"] == "baseline"]
    if scores.empty:
        return False
    row = scores.iloc[0]
    if row["metric"] == BLEU:
        return bool(row["score"] < LEAST_BLEU or row["score"] < TIMES_COPIED * row["copied_bleu"])
    of = int(row["sentences"])
    return not 100 * share(round(row["score"] * of / 100), of).low > row["majority"]


def decided_claims(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """As `claims_table`, with means over several seeds and their own verdicts, and with `other_readings`."""
    keys = ["experiment", "claim", "measure", "rule"]
    return with_other_readings(over_seeds(with_spread(claims_table(frames, *papers), keys), keys))


def with_other_readings(claims: pd.DataFrame) -> pd.DataFrame:
    """Add `other_readings` after `holds` in a table of claims: verdicts that differ from the deciding reading's.

    For example `absolute: yes, z-plus: unclear`; empty if all agree, and in rows of readings that do not decide.
    """
    decides, *others = side_by_side(reading for reading in claims["rule"] if reading) or [""]
    rows = claims.fillna({"holds": ""}).to_dict("records")
    said = {_key(row, row["rule"]): row["holds"] for row in rows}

    def note(row: Mapping[Hashable, Any]) -> str:
        verdicts = {SIDE_BY_SIDE[other]: said.get(_key(row, other), row["holds"]) for other in others}
        differing = {name: verdict or "not measured" for name, verdict in verdicts.items() if verdict != row["holds"]}
        return ", ".join(f"{name}: {verdict}" for name, verdict in differing.items())

    noted = claims.copy()
    notes = [note(row) if row["rule"] == decides else "" for row in rows]
    noted.insert(claims.columns.get_loc("holds") + 1, "other_readings", notes)
    return noted


def _key(row: Mapping[Hashable, Any], reading: str) -> tuple[Any, ...]:
    return (*(row[name] for name in ("experiment", "seed", "claim", "measure")), reading)


def over_seeds(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Give each row of means in a table from `with_spread` an interval over its seeds (Student's t) and a verdict.

    If all seeds alone say yes, or all say no, so does the mean: a second training that agrees makes nothing less
    certain, although an interval over two is wide. Otherwise the interval decides. It is at least as wide as those of
    its seeds on average, since they share their test sentences and numbers of heads, so that agreement on an uncertain
    number does not make it more certain. If no seed could decide because there are too few heads, neither can the mean;
    the same holds if the model of any seed was too weak.
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
    """The ends of the interval over seeds, and the verdict."""
    values, verdicts = seeds["ours"].astype(float), set(seeds["holds"])
    condition, limit = seeds["holds_if"].iloc[0], seeds["limit"].iloc[0]
    agreed = TOO_WEAK if TOO_WEAK in verdicts else verdicts.copy().pop() if len(verdicts) == 1 else "unclear"
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
    if agreed in ("yes", "no", TOO_WEAK):
        verdict = agreed
    elif verdict == "yes" and "yes" not in verdicts and TOO_FEW in verdicts:
        verdict = TOO_FEW
    return [mean.low, mean.high, verdict]


def scoreboard_table(frames: Frames, *papers: pd.DataFrame) -> pd.DataFrame:
    """The scoreboard of the claims in `papers`, see `claims_table`."""
    return board_of(decided_claims(frames, *papers), *papers)


def board_of(found: pd.DataFrame, *papers: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim about a metric of `found`, in the order of `papers`: STATED, then FOUND by experiment.

    found: tables of decided claims. Relevance is read as in the paper, and `other_readings` has the verdicts of other
    readings where they differ, see `heads.tables.labels`. Several seeds are represented by their mean.
    """
    rule = next(iter(side_by_side(rule for rule in found["rule"] if rule)), "")
    board = stated(*papers).rename(columns={"condition": "holds_if"})
    board["rule"] = board["id"].isin(RELEVANCE_CLAIMS).map({True: rule, False: ""})
    board = board.loc[board["metric"].isin(found["metric"]), list(STATED)]
    for experiment, rows in found.groupby("experiment", sort=False):
        of_all_seeds = rows["seed"] == "mean"
        own = rows[of_all_seeds] if of_all_seeds.any() else rows
        own = own[["metric", "claim", "measure", "rule", *FOUND]]
        # The mean of counts has no total if the totals differ between seeds.
        own = own.assign(**{number: pd.to_numeric(own[number]) for number in ("ours", "of", "relative_percent")})
        own = own.rename(columns={column: f"{name}_{experiment}" for column, name in FOUND.items()})
        board = board.merge(own, on=["metric", "claim", "measure", "rule"], how="left", validate="one_to_one")
        # There is no row if relevance was not measured as in the paper.
        board = board.fillna({f"{FOUND[column]}_{experiment}": "" for column in ("holds", "other_readings")})
    return board


def experiments_of(board: pd.DataFrame) -> list[str]:
    """The experiments on a scoreboard, in their order."""
    verdict = f"{FOUND['holds']}_"
    return [name.removeprefix(verdict) for name in board.columns if name.startswith(verdict)]
