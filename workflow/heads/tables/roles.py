"""What heads do: the tables of dependencies and of roles (Voita et al., Table 1, Fig 8), and one function a head."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from heads.tables.pruning import run_order
from heads.tables.reading import RUN_COLUMNS, Frames

FUNCTIONS = ("positional", "positional_and_syntactic", "syntactic", "rare", "other")
"""Every encoder head has exactly one, as in Fig 8 of the paper."""

HEAD_COLUMNS = (*RUN_COLUMNS, "layer", "head")


def function_of(roles: Collection[str]) -> str:
    """The function of a head that carries these roles; the rare-word role, being the rarest, outranks the others."""
    if "rare" in roles:
        return "rare"
    if {"positional", "syntactic"} <= set(roles):
        return "positional_and_syntactic"
    return next((role for role in ("positional", "syntactic") if role in roles), "other")


def head_functions(frames: Frames) -> pd.DataFrame:
    """One row for each live encoder head: RUN_COLUMNS, layer, head and its function.

    frames: `model.json` and `roles.tsv`.
    """
    model, roles = frames["model.json"], frames["roles.tsv"]
    heads = model[(model["attention"] == "enc_self") & (model["live"] == 1)][list(HEAD_COLUMNS)]
    holding = roles[roles["holds"] == 1]
    carried: dict[tuple[object, ...], set[str]] = {}
    for *head, role in holding[[*HEAD_COLUMNS, "role"]].itertuples(index=False, name=None):
        carried.setdefault(tuple(head), set()).add(role)
    functions = [function_of(carried.get(head, set())) for head in heads.itertuples(index=False, name=None)]
    return heads.assign(function=functions).reset_index(drop=True)


def count_functions(frames: Frames) -> pd.DataFrame:
    """One row a run, also for a run without encoder heads: RUN_COLUMNS, `live`, `of` and the count of each function."""
    model = frames["model.json"]
    encoder = model[model["attention"] == "enc_self"].groupby(list(RUN_COLUMNS), sort=False)["live"]
    counts = encoder.agg(live="sum", of="size")
    functions = head_functions(frames)
    for name in FUNCTIONS:
        found = functions[functions["function"] == name].groupby(list(RUN_COLUMNS)).size()
        counts[name] = found.reindex(counts.index, fill_value=0)
    return run_order(counts.reset_index())


def roles_table(frames: Frames, figure8: pd.DataFrame) -> pd.DataFrame:
    """Functions of the live encoder heads of every run, and the paper's model nearest by share of encoder heads kept.

    figure8: the paper's numbers, a row for each size and function.
    """
    counts = count_functions(frames)
    paper = figure8.pivot(index="enc_self", columns="function", values="heads").sort_index(ascending=False)
    full = float(figure8["of"].iloc[0])
    tags = figure8.groupby("enc_self")["tag"].agg(lambda tags: "; ".join(dict.fromkeys(tags)))
    sizes = [paper.index[abs(paper.index / full - share).argmin()] for share in counts["live"] / counts["of"]]
    beside = paper.loc[sizes, list(FUNCTIONS)].add_prefix("paper_").reset_index(drop=True)
    beside.insert(0, "paper_corpus", figure8["corpus"].iloc[0])
    beside.insert(1, "paper_live", sizes)
    beside.insert(2, "paper_of", full)
    return pd.concat([counts, beside.assign(paper_tag=tags.loc[sizes].to_numpy())], axis=1)


def dependencies_table(frames: Frames, table1: pd.DataFrame) -> pd.DataFrame:
    """For every relation and direction the baseline's most accurate head, beside the paper's two corpora.

    The best head is chosen on the sentences it is reported on, as in the paper. Cells are empty where a relation never
    occurs. frames: `roles.tsv` of baseline runs; table1: the paper's numbers.
    """
    roles = frames["roles.tsv"]
    rows = []
    for keys, group in roles[roles["role"] == "syntactic"].groupby(["experiment", "seed", "name"], sort=False):
        experiment, seed, name = keys
        relation, direction = str(name).split(" ", maxsplit=1)
        row: dict[str, object] = {
            "experiment": experiment,
            "seed": seed,
            "relation": relation,
            "direction": direction,
        }
        counted = group[(group["cases"] > 0) & group["accuracy"].notna()]
        row["cases"] = group["cases"].max()
        if len(counted):
            best = counted.sort_values(["accuracy", "layer", "head"], ascending=[False, True, True]).iloc[0]
            row |= {
                "layer": best["layer"],
                "head": best["head"],
                "best_percent": 100 * best["accuracy"],
                "baseline_percent": 100 * best["baseline"],
                "gain_points": 100 * (best["accuracy"] - best["baseline"]),
            }
        rows.append(row | _paper_accuracy(table1, relation, direction))
    return pd.DataFrame(rows, columns=list(DEPENDENCY_COLUMNS))


PAPER_DEPENDENCY_COLUMNS = (
    "paper_relation",
    "paper_wmt_best_percent",
    "paper_wmt_baseline_percent",
    "paper_opensubtitles_best_percent",
    "paper_opensubtitles_baseline_percent",
    "paper_tag",
)
DEPENDENCY_COLUMNS = (
    "experiment",
    "seed",
    "relation",
    "direction",
    "layer",
    "head",
    "cases",
    "best_percent",
    "baseline_percent",
    "gain_points",
    *PAPER_DEPENDENCY_COLUMNS,
)


def _paper_accuracy(table1: pd.DataFrame, relation: str, direction: str) -> dict[str, object]:
    same = table1[(table1["relation"] == relation) & (table1["direction"] == direction)]
    found: dict[str, object] = dict.fromkeys(PAPER_DEPENDENCY_COLUMNS)
    for row in same.to_dict("records"):
        corpus = row["corpus"].lower()
        found["paper_relation"] = f"{row['paper_relation']} {row['paper_direction']}"
        found[f"paper_{corpus}_best_percent"] = row["best_percent"]
        found[f"paper_{corpus}_baseline_percent"] = row["baseline_percent"]
        found["paper_tag"] = row["tag"]
    return found
