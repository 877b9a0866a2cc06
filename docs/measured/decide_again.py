"""Decide the papers' claims again from kept tables alone: PYTHONPATH=workflow python docs/measured/decide_again.py

With --scoreboard, put the claims of the experiments kept here side by side, see scoreboard/. With --figures, draw again
two figures whose tables are kept, as figures are drawn now.

The rules for verdicts were corrected after some experiments had been measured, and the results of those are gone. This
script reads the tables of the last commit before the correction, and gives each claim the verdict that the same number
gets now: by its limit with the margin, by the paper's corpus, by losses alone, by the share of relevance as in the
paper. What those tables do not contain is left empty. Their p-values of BLEU come from the former bootstrap, which
found p < .01 in 1.7 % of null pairs.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from heads.base.files import write_text
from heads.base.keeping import COLOURS, compress
from heads.base.names import ATTENTIONS, BLEU, WMT
from heads.figures.michel import fig3
from heads.figures.pruning import heads_by_type
from heads.figures.scoreboard import drawn, page_of
from heads.figures.style import STYLE, save
from heads.tables.catalogue import TABLES
from heads.tables.claims import CLAIM_COLUMNS, LEAST_BLEU, board_of, claim_row, over_seeds, stated, with_other_readings
from heads.tables.claims_heads import RELEVANCE_CLAIMS
from heads.tables.claims_michel import MICHEL_CLAIMS
from heads.tables.curves import NOT_SETTLED
from heads.tables.evidence import Evidence
from heads.tables.gathering import write_frame
from heads.tables.labels import relevance_columns
from heads.tables.reading import RUN_COLUMNS, SCORED, load_reference
from heads.tables.seeds import with_spread
from heads.tables.verdicts import NOT_MEASURED, UNKNOWN, Finding

BEFORE = "4c87e51"
HERE = Path(__file__).parent
AGAIN = ("multi30k", "news-en-ru", "pretrained")
SHOWN = (
    "paper-size-en-pt",
    *("firefox-en-pt", "firefox-pt-en", "firefox-grown-en-pt", "firefox-scratch-en-pt", "firefox-scratch-6-en-pt"),
    *("minilm-sick", "demo", "multi30k", "news-en-ru"),
)
KEYS = ["experiment", "claim", "measure", "rule"]
SAME_HEADS = ("top_heads_differ", "relevance_confidence", "without_exception", "exception_is_first")
"""Claims about relevance that depend on the measures of heads alone."""
FROM_HEADS = {"heads_that_matter": "table1", "gains_among_them": "table1"}
FROM_LAYERS = {"layers_with_one_head": "table2", "layers_with_one_head_oracle": "table2"}
BY_CONTROL = "_control"
FIGURE9 = "voita_figure9_types.csv"
BOARD_COLOURS = 24
"""Of the scoreboard, which has no more than its verdicts need."""


def kept(path: str) -> pd.DataFrame:
    """A table of that commit, or one of the papers' files; empty if there was none."""
    found = subprocess.run(["git", "show", f"{BEFORE}:{path}"], capture_output=True, text=True, cwd=HERE, check=False)
    if found.returncode:
        return pd.DataFrame()
    return pd.read_csv(io.StringIO(found.stdout), sep="\t" if path.endswith("tsv") else ",", keep_default_na=True)


def table(experiment: str, name: str) -> pd.DataFrame:
    """A table of an experiment, without means over seeds, with today's names of scores."""
    frame = kept(f"docs/measured/{experiment}/tables/table_{name}.tsv")
    if frame.empty:
        return frame
    frame = frame.rename(columns=lambda column: column.replace("bleu", "score")).assign(metric=BLEU)
    return frame[~frame["seed"].isin(["mean", "sd"])].assign(seed=lambda rows: rows["seed"].astype(int))


def former_claims(experiment: str) -> pd.DataFrame:
    """The former table of claims, with their ids."""
    files = ("voita_claims", "michel_claims", "alignment_claims")
    papers = pd.concat([kept(f"workflow/reference/{name}.csv") for name in files])
    return table(experiment, "claims").merge(papers[["id", "claim", "measure"]], on=["claim", "measure"])


def as_it_was(row: pd.Series) -> Finding:
    """The number of a claim with everything that its former row says."""
    numbers = {name: row[name] for name in ("ours", "of", "p_value", "low", "high", "chance")}
    return Finding(**numbers, settled=row["holds"] != NOT_SETTLED)


def findings(experiment: str, seed: int, claim: str, former: pd.DataFrame) -> dict[str, Finding]:
    """Our number for a claim, by reading of relevance ("" for claims that are not about relevance)."""
    rows = former[(former["seed"] == seed) & (former["id"] == claim)]
    if claim in RELEVANCE_CLAIMS:
        return of_relevance(experiment, seed, claim, rows)
    if rows.empty:
        return {"": NOT_MEASURED}
    for asked, name in ((FROM_HEADS, "ablation.tsv"), (FROM_LAYERS, "layers_to_one.tsv")):
        if claim in asked:
            frame = table(experiment, f"michel_{asked[claim]}")
            return {"": MICHEL_CLAIMS[claim]({name: frame[frame["seed"] == seed]}) if len(frame) else NOT_MEASURED}
    return {"": as_it_was(rows.iloc[0])}


def of_relevance(experiment: str, seed: int, claim: str, rows: pd.DataFrame) -> dict[str, Finding]:
    """Our number by reading; shares of sums were not kept, and those of roles depend on absolute shares alone."""
    measures = table(experiment, "measures")
    if measures.empty:
        return {f"{rule}, absolute": as_it_was(row) for rule, row in rows.set_index("rule").iterrows()}
    names = {name: f"{name.removesuffix('_signed')}_signed_by_step" for name in measures if name.endswith("_signed")}
    names |= {name: f"{name}_absolute" for name in measures if name.startswith("lrp_") and name not in names}
    names.pop("importance_signed", None)
    heads = measures[measures["seed"] == seed].rename(columns=names).reset_index(drop=True)
    if claim in SAME_HEADS:
        nothing = pd.DataFrame()
        evidence = Evidence(heads, nothing, nothing, nothing, nothing)
        return {reading: RELEVANCE_CLAIMS[claim](evidence, name) for reading, name in relevance_columns(heads).items()}
    old = rows.set_index("rule")
    return {
        reading: as_it_was(old.loc[reading.partition(",")[0]]) if reading.endswith("absolute") else NOT_MEASURED
        for reading in relevance_columns(heads)
    }


def decided(experiment: str) -> pd.DataFrame:
    """The table of claims of an experiment, decided again."""
    former, pruning = former_claims(experiment), table(experiment, "pruning")
    claims = stated(*map(load_reference, TABLES["scoreboard"].need.reference))
    claims = claims[claims["metric"] == BLEU].to_dict("records")
    rows = []
    for seed in sorted(former["seed"].unique()):
        whole = pruning[(pruning["seed"] == seed) & (pruning["kind"] == "baseline")]["score"].iloc[0]
        for claim in claims:
            asked = claim["corpus"] in ("", WMT)
            for rule, finding in findings(experiment, seed, claim["id"], former).items():
                row = claim_row(claim, finding if asked else NOT_MEASURED, weak=bool(whole < LEAST_BLEU))
                beside = beside_of(claim, pruning[pruning["seed"] == seed])
                row["relative_percent"] = 100 * row["ours"] / beside if beside else UNKNOWN
                rows.append({"experiment": experiment, "seed": seed, **row, "rule": rule})
    found = pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))
    return with_other_readings(over_seeds(with_spread(found, KEYS), KEYS))


def beside_of(claim: dict[str, object], pruning: pd.DataFrame) -> float | None:
    """The BLEU that a change is relative to, of the unpruned model or the control; None if there is none."""
    identity = str(claim["id"])
    if not identity.startswith(("encoder_10", "encoder_5", "encoder_4", "all_", "three_quarters")):
        return None
    scope = "enc_self" if identity.startswith("encoder") else "all"
    column = "score_control" if identity.endswith(BY_CONTROL) else "score"
    rows = (
        pruning[pruning["scope"] == scope] if identity.endswith(BY_CONTROL) else pruning[pruning["kind"] == "baseline"]
    )
    values = rows[column].dropna()
    return float(values.iloc[0]) if len(values) else None


def write_scoreboard() -> None:
    """Write the scoreboard of the experiments whose claims are kept, and its figure."""
    papers = [load_reference(name) for name in TABLES["scoreboard"].need.reference]
    read = partial(pd.read_csv, sep="\t", keep_default_na=True, dtype={"seed": str})
    found = pd.concat([read(HERE / name / "tables" / "table_claims.tsv") for name in SHOWN])
    found = found.fillna({"rule": "", "holds": "", "other_readings": ""})
    board = board_of(found, *papers)
    write_frame(HERE / "scoreboard" / "table_scoreboard.tsv", board)
    seeds = found[~found["seed"].isin(["mean", "sd"])].groupby("experiment")["seed"].nunique()
    write_picture(partial(drawn, board, seeds), HERE / "scoreboard" / "scoreboard.png", BOARD_COLOURS)
    write_text(HERE / "scoreboard" / "scoreboard.html", page_of(board))


def write_picture(figure: Callable[[], Figure], to: Path, colours: int = COLOURS) -> None:
    """Draw in the project's style and write with few colours."""
    mpl.use("Agg")
    with plt.style.context(STYLE), TemporaryDirectory() as place:
        save(figure(), Path(place, "x.pdf"), Path(place, "x.png"))
        compress(Path(place, "x.png"), to, colours)


def rows_of(experiment: str, name: str) -> pd.DataFrame:
    """A kept table without means over seeds; missing words are empty."""
    found = pd.read_csv(HERE / experiment / "tables" / f"table_{name}.tsv", sep="\t", dtype={"lam": str, "keep": str})
    words = ["scope", "method", "lam", "keep"]
    found = found.astype({name: object for name in words if name in found})
    found = found.fillna({name: "" for name in words if name in found})
    return found[~found["seed"].isin(["mean", "sd"])].assign(seed=lambda rows: rows["seed"].astype(int))


def masked_again() -> Figure:
    """MiniLM while heads are masked; shares as in the file that the table was made of."""
    curve = rows_of("minilm-sick", "michel_masking_curve")
    kept = {f"score_kept_{end}": curve[f"kept_percent_{end}"] / 100 for end in ("low", "high")}
    curve = curve.assign(share=curve["masked"] / curve["of"], **kept)
    figure = fig3({"masking_curve.tsv": curve, SCORED: curve}, "minilm-sick")
    figure.axes[0].set_ylabel("accuracy (%), first 1,000 of the test set")  # masking_curve.sentences of settings.yaml
    return figure


def heads_again() -> Figure:
    """The grown model's heads by kind; the table counts heads, so which ones are left is made up, and not drawn."""
    runs = rows_of("firefox-grown-en-pt", "pruning")
    runs = runs[runs["scope"].isin(["", "all"])]
    whole = runs[runs["kind"] == "baseline"].iloc[0]
    rows = [
        {**{name: run[name] for name in (*RUN_COLUMNS, "dev_loss")}, "attention": kind, "live": int(head < run[kind])}
        for run in runs.to_dict("records") for kind in ATTENTIONS for head in range(int(whole[kind]))
    ]  # fmt: skip
    return heads_by_type({"model.json": pd.DataFrame(rows)}, load_reference(FIGURE9), "firefox-grown-en-pt")


def write_figures() -> None:
    """Draw again what kept tables allow."""
    write_picture(masked_again, HERE / "minilm-sick" / "figures" / "michel_fig3.png")
    write_picture(heads_again, HERE / "firefox-grown-en-pt" / "figures" / "heads_by_type.png")


if __name__ == "__main__":
    if "--scoreboard" in sys.argv:
        write_scoreboard()
    elif "--figures" in sys.argv:
        write_figures()
    else:
        for each in AGAIN:
            write_frame(HERE / each / "tables" / "table_claims.tsv", decided(each))
