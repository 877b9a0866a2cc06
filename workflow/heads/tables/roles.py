"""What encoder heads do: tables of dependencies, roles and role drift (Voita et al., Table 1, Fig 8), and dynamics.

If heads were measured on trees from several sources, the first source decides functions and roles, and the results of
the second are in the columns that begin with `other_`; further ones are only in `roles.tsv`.
"""

import math
from collections.abc import Collection

import pandas as pd

from heads.base.bootstrap import ROUNDING
from heads.base.names import HALVES, MEAN, NO_TREES
from heads.tables.picking import first_of, run_order
from heads.tables.reading import RUN_COLUMNS, Frames

FUNCTIONS = ("positional", "positional_and_syntactic", "syntactic", "rare", "other")
"""Every encoder head has exactly one, as in Fig 8 of the paper."""

OF_TREES = ("positional_and_syntactic", "syntactic")
"""Those that no head is measured for without trees."""

HEAD_COLUMNS = (*RUN_COLUMNS, "layer", "head")
NONE = "none"
SEPARATOR = "; "


def function_of(roles: Collection[str]) -> str:
    """The function of a head with these roles; the rare-word role, being the rarest, takes precedence."""
    if "rare" in roles:
        return "rare"
    if {"positional", "syntactic"} <= set(roles):
        return "positional_and_syntactic"
    return next((role for role in ("positional", "syntactic") if role in roles), "other")


def head_functions(frames: Frames) -> pd.DataFrame:
    """The function and the roles of each live encoder head, a row each, measured on the first trees.

    Columns: HEAD_COLUMNS; `function`, one of FUNCTIONS; `roles`, the names of all its roles, such as "-1; obj
    dependent-to-head", or "none"; `held`, the number of these; `reaching`, 1 if it reaches any role by its accuracy
    alone.
    """
    model, roles = frames["model.json"], first_of(frames["roles.tsv"], "trees")
    heads = model[(model["attention"] == "enc_self") & (model["live"] == 1)][list(HEAD_COLUMNS)]
    held: dict[tuple[object, ...], dict[str, str]] = {}
    for *head, name, role in roles[roles["holds"] == 1][[*HEAD_COLUMNS, "name", "role"]].itertuples(index=False):
        held.setdefault(tuple(head), {})[name] = role
    reached = roles[roles["reaches"] == 1][list(HEAD_COLUMNS)]
    reaching = set(reached.itertuples(index=False, name=None))
    keys = list(heads.itertuples(index=False, name=None))
    of_head = [held.get(key, {}) for key in keys]
    return heads.assign(
        function=[function_of(roles.values()) for roles in of_head],
        roles=[SEPARATOR.join(roles) or NONE for roles in of_head],
        held=[len(roles) for roles in of_head],
        reaching=[int(key in reaching) for key in keys],
    ).reset_index(drop=True)


def count_functions(frames: Frames) -> pd.DataFrame:
    """The number of encoder heads with each function, with `several` roles, and `reaching` one by accuracy, by run.

    Without trees, the numbers of syntactic heads are missing; some `positional` and `other` heads may be syntactic.
    """
    model, roles = frames["model.json"], frames["roles.tsv"]
    encoder = model[model["attention"] == "enc_self"].groupby(list(RUN_COLUMNS), sort=False)["live"]
    counts = encoder.agg(live="sum", of="size")
    heads = head_functions(frames)
    kinds = {name: heads["function"] == name for name in FUNCTIONS}
    kinds |= {"several": heads["held"] > 1, "reaching": heads["reaching"] == 1}
    for name, are in kinds.items():
        counts[name] = heads[are].groupby(list(RUN_COLUMNS)).size().reindex(counts.index, fill_value=0)
    counts = counts.reset_index()
    without = counts["experiment"].isin(roles[roles["trees"] == NO_TREES]["experiment"])
    counts[list(OF_TREES)] = counts[list(OF_TREES)].mask(without)
    return run_order(counts)


def role_drift(frames: Frames) -> pd.DataFrame:
    """The roles of every encoder head of the unpruned model before pruning, and after it in each pruned model.

    Columns: HEAD_COLUMNS; `gone`; function and roles `_before` and `_after`, empty if the head is gone; `new_roles` and
    `lost_roles`, the numbers of roles, relations or offsets that it has gained and lost. Models from scratch are left
    out, as their heads are not those of the unpruned model.
    """
    model, heads = frames["model.json"], head_functions(frames)
    runs = model[model["kind"] == "pruned"][list(RUN_COLUMNS)].drop_duplicates()
    before = heads[heads["kind"] == "baseline"][["experiment", "seed", "layer", "head", "function", "roles"]]
    after = heads[[*HEAD_COLUMNS, "function", "roles"]]
    drift = runs.merge(before, on=["experiment", "seed"])
    drift = drift.merge(after, on=list(HEAD_COLUMNS), how="left", suffixes=("_before", "_after"))
    drift.insert(len(HEAD_COLUMNS), "gone", drift["function_after"].isna().astype(int))
    drift = drift.fillna({"function_after": "", "roles_after": ""})
    pairs = [(_role_set(b), _role_set(a)) for b, a in zip(drift["roles_before"], drift["roles_after"], strict=True)]
    return run_order(drift.assign(new_roles=[len(a - b) for b, a in pairs], lost_roles=[len(b - a) for b, a in pairs]))


def _role_set(text: str) -> set[str]:
    return set(text.split(SEPARATOR)) - {NONE, ""}


def _other(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows on the second trees of their run."""
    return first_of(frame.drop(first_of(frame, "trees").index), "trees")


def roles_table(frames: Frames, figure8: pd.DataFrame) -> pd.DataFrame:
    """Functions of the live encoder heads of every run, beside the paper's model nearest by share of heads kept.

    `positional_on_words`: the number of live heads that would be positional with offsets counted in words.
    `heads_with_new_roles`, `heads_with_lost_roles`: the number of a pruned model's heads with a role that they did not
    have in the unpruned model, or without one that they had. `positional_percent`, `..._by_bias`, `..._by_content`: the
    mean accuracy of positional heads at their offsets, in models with biases of distances also by these alone and by
    products alone.
    """
    counts, runs = count_functions(frames), list(RUN_COLUMNS)
    on_words = _positional_on_words(first_of(frames["roles.tsv"], "trees"))
    counts = counts.merge(on_words, on=runs, how="left").fillna({"positional_on_words": 0})
    counts = counts.merge(_positional_halves(first_of(frames["roles.tsv"], "trees")), on=runs, how="left")
    drift = role_drift(frames)
    changes = {f"heads_with_{name}": drift[name] * (1 - drift["gone"]) > 0 for name in ("new_roles", "lost_roles")}
    drifted = drift.assign(**changes).groupby(runs, sort=False)[list(changes)].sum().reset_index()
    counts = counts.merge(drifted, on=runs, how="left")
    counts = counts.merge(_covered(first_of(frames["coverage.tsv"], "trees")), on=runs, how="left")
    counts = counts.merge(_other_functions(frames), on=runs, how="left")
    return pd.concat([counts, _paper_functions(figure8, counts["live"] / counts["of"])], axis=1)


def _positional_on_words(roles: pd.DataFrame) -> pd.DataFrame:
    """The number of heads in each run whose interval ensures that they attend to one fixed offset in words."""
    found = roles[(roles["role"] == "positional_words") & (roles["excess_low"] >= -ROUNDING)]
    heads = found[list(HEAD_COLUMNS)].drop_duplicates()
    return heads.groupby(list(RUN_COLUMNS), sort=False).size().rename("positional_on_words").reset_index()


def _positional_halves(roles: pd.DataFrame) -> pd.DataFrame:
    """By run, mean percentages of the heads that are positional, each at the offset that it looks at most often."""
    found = roles[(roles["role"] == "positional") & (roles["holds"] == 1)].sort_values("accuracy", kind="stable")
    best = found.groupby(list(HEAD_COLUMNS), sort=False).tail(1)
    names = {"accuracy": "positional_percent"} | {half: f"positional_percent_{half}" for half in HALVES[:2]}
    means = 100 * best.groupby(list(RUN_COLUMNS), sort=False)[list(names)].mean()
    return means.rename(columns=names).reset_index()


def _covered(coverage: pd.DataFrame) -> pd.DataFrame:
    """The number of words in the trees and of aligned words; the percentage is rounded down, so 100 means all."""
    columns = ["trees", "sentences", "measured", "tree_words", "aligned_words"]
    share = [
        math.floor(1000 * done / words) / 10 if words else math.nan
        for done, words in zip(coverage["aligned_words"], coverage["tree_words"], strict=True)
    ]
    return coverage[[*RUN_COLUMNS, *columns]].assign(aligned_percent=share)


def _other_functions(frames: Frames) -> pd.DataFrame:
    roles = _other(frames["roles.tsv"])
    names = _other(frames["coverage.tsv"])[[*RUN_COLUMNS, "trees"]].rename(columns={"trees": "other_trees"})
    found = count_functions({"model.json": frames["model.json"], "roles.tsv": roles})
    counts = found[list(FUNCTIONS)].add_prefix("other_").assign(**{key: found[key] for key in RUN_COLUMNS})
    return names.merge(counts, on=list(RUN_COLUMNS), how="left")


def _paper_functions(figure8: pd.DataFrame, shares: pd.Series) -> pd.DataFrame:
    paper = figure8.pivot(index="enc_self", columns="function", values="heads").sort_index(ascending=False)
    full = float(figure8["of"].iloc[0])
    tags = figure8.groupby("enc_self")["tag"].agg(lambda tags: "; ".join(dict.fromkeys(tags)))
    sizes = [paper.index[abs(paper.index / full - share).argmin()] for share in shares]
    beside = paper.loc[sizes, list(FUNCTIONS)].add_prefix("paper_").reset_index(drop=True)
    beside.insert(0, "paper_corpus", figure8["corpus"].iloc[0])
    beside.insert(1, "paper_live", sizes)
    beside.insert(2, "paper_of", full)
    return beside.assign(paper_tag=tags.loc[sizes].to_numpy())


PAPER_DEPENDENCY_COLUMNS = (
    *("paper_relation", "paper_wmt_best_percent", "paper_wmt_baseline_percent"),
    *("paper_opensubtitles_best_percent", "paper_opensubtitles_baseline_percent", "paper_tag"),
)
DEPENDENCY_COLUMNS = (
    *("experiment", "seed", "relation", "direction", "trees", "layer", "head", "cases"),
    *("best_percent", "low_percent", "high_percent", "baseline_percent", "gain_points", "reaches", "holds"),
    *("other_trees", "other_cases", "other_best_percent", "other_baseline_percent", "other_gain_points"),
    *("other_same_head_percent", "tree_words", "aligned_words", "aligned_percent", *PAPER_DEPENDENCY_COLUMNS),
)


def dependencies_table(frames: Frames, table1: pd.DataFrame) -> pd.DataFrame:
    """The baseline's most accurate head for every relation and direction, beside the paper's two corpora.

    The best head is chosen on the sentences it is reported on, as in the paper, and its interval ignores that choice.
    On the second trees the best head is chosen again; `other_same_head_percent` is the accuracy there of the best head
    on the first trees. Cells are empty if a relation never occurs.
    """
    roles, keys = frames["roles.tsv"], ["experiment", "seed"]
    aligned = _covered(first_of(frames["coverage.tsv"], "trees")).set_index(keys)
    others = dict(list(_other(roles).groupby([*keys, "name"], sort=False)))
    first = first_of(roles[roles["role"] == "syntactic"], "trees")
    rows = []
    for (experiment, seed, name), group in first.groupby([*keys, "name"], sort=False):
        relation, direction = str(name).split(" ", maxsplit=1)
        row: dict[str, object] = {"experiment": experiment, "seed": seed, "relation": relation, "direction": direction}
        row |= _best_head(group)
        if (experiment, seed, name) in others:
            other = others[experiment, seed, name]
            row |= {f"other_{key}": value for key, value in _best_head(other).items()}
            same = other[(other["layer"] == row.get("layer")) & (other["head"] == row.get("head"))]
            row["other_same_head_percent"] = 100 * same["accuracy"].max()
        row |= aligned.loc[(experiment, seed), ["tree_words", "aligned_words", "aligned_percent"]].to_dict()
        rows.append(row | _paper_accuracy(table1, relation, direction))
    return pd.DataFrame(rows, columns=list(DEPENDENCY_COLUMNS))


def _best_head(group: pd.DataFrame) -> dict[str, object]:
    """The most accurate head of the rows of one measure; ties go to the first."""
    found: dict[str, object] = {"trees": group["trees"].iloc[0], "cases": group["cases"].max()}
    counted = group[(group["cases"] > 0) & group["accuracy"].notna()]
    if len(counted):
        best = counted.sort_values(["accuracy", "layer", "head"], ascending=[False, True, True]).iloc[0]
        columns = {"best": "accuracy", "low": "low", "high": "high", "baseline": "baseline"}
        found |= {key: best[key] for key in ("layer", "head", "reaches", "holds")}
        found |= {f"{key}_percent": 100 * best[column] for key, column in columns.items()}
        found["gain_points"] = 100 * (best["accuracy"] - best["baseline"])
    return found


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


DYNAMICS_TABLE_COLUMNS = (
    *("experiment", "seed", "update", "finished", "role", "name", "layer", "head"),
    *("accuracy", "low", "high", "baseline", "above_baseline", "gained"),
)
MEASURE = ["experiment", "seed", "role", "name"]
ANY_OFFSET = "any offset"


def dynamics_table(frames: Frames) -> pd.DataFrame:
    """A row for each checkpoint and measure, with its best encoder head; positional measures use the best offset.

    `above_baseline` is the accuracy of a relation's best head minus that of the best fixed offset. `gained`, in rows of
    the finished model, is the accuracy of its best head minus that of the best head at the last checkpoint in the first
    half of its updates. Of confidence, rows named MEAN have the mean of all heads, and rows named "" the largest.
    """
    rows = frames["dynamics.tsv"]
    positional = rows["role"].isin(["positional", "positional_words"])
    rows = rows.assign(name=rows["name"].where(~positional, ANY_OFFSET))
    rows = rows[rows["name"] != "rarest"]  # see roles.tsv instead; the other row of rare words decides
    at = [*MEASURE, "update", "finished"]
    best = rows.dropna(subset=["accuracy"]).sort_values("accuracy", kind="stable").groupby(at, sort=False).tail(1)
    confidence = rows[rows["role"] == "confidence"]
    means = confidence.assign(name=MEAN).groupby(at, as_index=False)["accuracy"].mean()
    table = pd.concat([best, means], ignore_index=True)
    table["place"] = table["role"].map(list(rows["role"].unique()).index)
    table = table.sort_values(["experiment", "seed", "finished", "update", "place"], kind="stable")
    table = table.assign(above_baseline=table["accuracy"] - table["baseline"], gained=float("nan"))
    for _, measure in table.groupby(MEASURE, sort=False):
        end = measure[measure["finished"] == 1]
        half = measure[(measure["finished"] == 0) & (measure["update"] <= end["update"].max() / 2)]
        if len(half):
            table.loc[end.index, "gained"] = float(end["accuracy"].iloc[0] - half["accuracy"].iloc[-1])
    return table[list(DYNAMICS_TABLE_COLUMNS)].reset_index(drop=True)
