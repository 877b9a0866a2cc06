"""The data of the page as JSON: the contents of tables and runs, grouped by experiment.

    {"experiments": [{
      name, task, seed, seeds, heads, score, sentences_scored, signature,
      note                                       a remark on the model, or ""
      metric     {name, unit}                    what models are scored by; BLEU is called fidelity if the references
                                                 were not written by people
      measures   [{key, name, what}]             what heads can be coloured by, in menu order
      table      [{attention, layer, head,       all heads of the unpruned model, sorted by kind, layer and head
                   values {key: number},         the cells of table_measures.tsv
                   score_change, p_value,        from table_michel_table1.tsv
                   function, label,              as in the paper's Figs 1 and 2; "" outside the encoder. Heads in
                                                 alignment_heads.tsv have the function alignment or other, those in
                                                 cross_attention_roles.tsv the label now, last or next
                   alignment {aer, low, high, precision, recall, offset, offset_aer, pairs, aligns},     of its first
                                                 step; or null. aer is in values too
                   roles [{role, name, label, accuracy, low, high, baseline, cases, holds,
                         by_bias, by_content, bias_weight}]}]     these only in models with biases of distances
      sentences  [{number, words, relations, tree_heads, subwords, membership,
                   wanted}]                      from maps.json; wanted, only in examples, is the label in the corpus
      models     [{run, name, kind, scope, asked, score,
                   live "1101…",                 a digit for each head, in the order of `table`
                   translations [text],          by sentence, or the predicted labels; null if none were kept
                   written [[subword]],              the same in subwords, null for a label
                   attention [{kind: base64}]}]  by sentence, see heads.analysis.attention_maps; null if not kept
      points     [{run, series, name, scope, kept, of, score}]     curves of table_pruning.tsv, table_selection.tsv
      closing    [{run, name, scope, budgets,    heads asked for, in all or of each kind; [] with a penalty
                   updates, p_open: base64}]     bytes [updates, heads of the scope]
      concrete   {temperature, low, high, log_alpha_init, trained [{run, name, scope, budgets, log_alpha [number]}]}
      claims     [{study, topic, name, claim, rule, source, tag, paper, paper_of, ours, of, relative_percent, low,
                   high, p_value, verdict,
                   other_readings,               readings of relevance that disagree; "" if all agree
                   figure}]                      from table_claims.tsv; figure is a path from the page, or ""
    }]}

`run` is a folder such as pruned/all/lam-0.01/seed-1. With several seeds, the first is shown and `seeds` counts them.
Numbers are as in the tables, null where they have none. Attention is kept for the unpruned model and models pruned in
the widest scope, translations for all pruned models. For classifiers, `signature` gives the accuracy of the likeliest
label alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import pandas as pd

from heads.analysis.attention_maps import packed
from heads.base.files import UserError
from heads.base.methods import DRAWN
from heads.base.names import (
    ACCURACY,
    CLASSIFICATION,
    EMBEDDING,
    METRIC_NAMES,
    REFERENCES,
    SCOPES,
    TASK_OF,
    TEXT_TO_TEXT,
    TRANSLATION,
)
from heads.base.runs import Run
from heads.base.targets import Target
from heads.config.trainings import HardConcrete
from heads.explore.head_rows import head_rows, measures_of
from heads.explore.needs import figure_of
from heads.explore.wording import GROWN, METRICS, asked_of, name_of, number, run_in, units_left
from heads.tables.labels import bleu_name
from heads.tables.picking import is_control
from heads.tables.reading import SCORED, Frames

SHOWN = ("number", "words", "relations", "tree_heads", "subwords", "membership", "wanted")
ANSWER = {TRANSLATION: "translation", CLASSIFICATION: "label", EMBEDDING: ""}
"""The key in maps.json of a model's output for a sentence, by task; "" if there is none."""
OTHER_SCORES = {
    "score_scratch": ("from scratch", "scratch"),
    "score_trained_on": ("same heads, trained on", "selected"),
}
"""By column of table_pruning.tsv: the series, and the kind of run that has this score."""
CLAIM_NUMBERS = ("paper", "paper_of", "ours", "of", "relative_percent", "low", "high", "p_value")
CLAIM_TEXTS = ("claim", "rule", "other_readings", "source", "tag")
OF_ALL = "figures"
"""The folder of figures that show all experiments in one."""
CLAIM_KEYS = ["metric", "claim", "measure", "rule"]
Record = dict[str, Any]


def content(
    frames: Frames,
    tables: Mapping[str, pd.DataFrame],
    distributions: Mapping[str, HardConcrete],
    figures: Iterable[str],
) -> Record:
    """Everything that the page shows, as described above.

    frames: of the files in EXPLORED. tables: by name. distributions: of gates, by experiment. figures: paths from the
    page to existing figures. Experiments without a baseline are skipped. Raises UserError if there is no baseline at
    all, or if the distribution of an experiment is missing.
    """
    models = frames["model.json"]
    names = list(models[models["kind"] == "baseline"]["experiment"].unique())
    if not names:
        raise UserError("--runs names no baseline: give one, such as results/demo/baseline/seed-1.")
    if missing := [name for name in names if name not in distributions]:
        raise UserError(f"--gates lacks {missing[0]}: give the distribution of its gates too.")
    return {"experiments": [_experiment(name, frames, tables, distributions[name], list(figures)) for name in names]}


def _experiment(
    name: str,
    frames: Frames,
    tables: Mapping[str, pd.DataFrame],
    distribution: HardConcrete,
    figures: list[str],
) -> Record:
    models = frames["model.json"][frames["model.json"]["experiment"] == name]
    seed = int(models["seed"].min())

    def own(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["experiment"] == name) & (frame["seed"].astype(str) == str(seed))]

    mine = {file: own(frame) for file, frame in frames.items()}
    base = mine[SCORED][mine[SCORED]["kind"] == "baseline"].iloc[0]
    task = TASK_OF[base["metric"]]
    given = "model" if not models[models["kind"] == "baseline"]["live"].all() else base["against"]
    against = "" if base["against"] == REFERENCES else f"against what the {given} wrote, "
    metric = dict(METRICS[base["metric"]])
    if base["metric"] in METRIC_NAMES:
        metric["name"] = bleu_name(base.to_frame().T).replace("BLEU", metric["name"])
    size = (
        f"the likeliest label alone has {base['majority']:.1f} %" if base["metric"] == ACCURACY else base["signature"]
    )
    shown = SHOWN if ANSWER[task] else SHOWN[:-1]
    maps: list[Record] = next(iter(mine["maps.json"][mine["maps.json"]["kind"] == "baseline"]["maps"]), [])
    own_tables = {key: own(table) for key, table in tables.items() if "seed" in table}
    return {
        "name": name,
        "task": TEXT_TO_TEXT if task == TRANSLATION and models["any_text"].any() else task,
        "metric": metric,
        "seed": seed,
        "seeds": int(models["seed"].nunique()),
        "heads": int(models["head"].max()) + 1,
        "score": round(float(base["score"]), 2),
        "sentences_scored": int(base["sentences"]),
        "signature": f"{against}{size}",
        "note": GROWN if models["grown"].any() else "",
        "measures": measures_of(task, metric["name"], own_tables.get("measures"), mine["alignment_heads.tsv"]),
        "table": head_rows(mine, own_tables),
        "sentences": [{key: one[key] for key in shown if key in one} for one in maps],
        "models": _models(mine, ANSWER[task]),
        "points": _points(own_tables),
        "closing": _closing(mine["gates.jsonl"]),
        "concrete": _concrete(mine["heads.tsv"], distribution),
        "claims": _claims(name, tables.get("claims"), tables.get("scoreboard"), figures),
    }


def _grouped(frame: pd.DataFrame) -> list[tuple[Run, pd.DataFrame]]:
    """The rows of each run, the baseline first, then sorted by kind, scope and target."""
    parts = frame.groupby(["kind", "scope", "method", "lam", "keep", "seed"], sort=False, dropna=False)
    found = [(run_in(rows.iloc[0].to_dict()), rows) for _, rows in parts]
    kinds = ("baseline", "gates", "pruned", "scratch")
    return sorted(
        found, key=lambda one: (kinds.index(one[0].kind), one[0].scope or "", one[0].target or Target.of_penalty(0))
    )


def _models(frames: Frames, answer: str) -> list[Record]:
    """All models on the page. answer: the key of a model's output in maps.json, see ANSWER."""
    scores = {run: rows["score"].iloc[0] for run, rows in _grouped(frames[SCORED])}
    maps = {run: rows["maps"].iloc[0] for run, rows in _grouped(frames["maps.json"])}
    widest = "all" if any(run.scope == "all" for run in maps) else "enc_self"
    found = []
    for run, rows in _grouped(frames["model.json"]):
        kept = maps.get(run)
        whole = kept and (run.scope in (None, widest)) and not (run.target and run.target.is_control)
        found.append({
            "run": run.folder, "name": name_of(run, whole=rows["live"].all()), "kind": run.kind,
            "scope": run.scope or "",
            "asked": asked_of(run.target), "score": round(float(scores[run]), 2),
            "live": "".join(str(int(live)) for live in rows["live"]),
            "units": units_left(rows.iloc[0].to_dict()),
            "translations": [one[answer] for one in kept] if kept and answer else None,
            "written": [one.get("target_subwords") for one in kept] if kept else None,
            "attention": [one["weights"] for one in kept] if kept and whole else None,
        })  # fmt: skip
    return found


def _points(tables: Mapping[str, pd.DataFrame]) -> list[Record]:
    """Score and number of heads of each model: pruned ones, the same from scratch, the control and other choices.

    tables: `pruning` and `selection` of one experiment and seed, if they exist.
    """
    points = _pruned(tables["pruning"]) if "pruning" in tables else []
    return points + (_chosen(tables["selection"]) if "selection" in tables else [])


def _pruned(table: pd.DataFrame) -> list[Record]:
    table = table.fillna(dict.fromkeys(("scope", "method", "lam", "keep"), ""))
    points = []
    for row, control in zip(table.to_dict("records"), is_control(table), strict=True):
        run = run_in(row)
        series = "unpruned" if run.kind == "baseline" else "control" if control else "pruned"
        place = {"scope": row["scope"], "kept": int(row["total"]), "of": int(row["of"])}
        name = name_of(run, whole=place["kept"] == place["of"])
        point = {"run": run.folder, "series": series, "name": name, **place, "score": number(row["score"])}
        points.append(point)
        for column, (name, kind) in OTHER_SCORES.items():
            if series == "pruned" and number(row[column]) is not None:
                folder = run.folder.replace("pruned", kind, 1)
                other = {"run": folder, "series": name, "name": f"{name}, {asked_of(run.target)}"}
                points.append(point | other | {"score": number(row[column])})
    return points


def _chosen(table: pd.DataFrame) -> list[Record]:
    """Points of heads chosen at random or by other means than gates, either masked or fine-tuned."""
    points = []
    for row in table.to_dict("records"):
        if row["treatment"] not in ("masked", "trained on") or Target.parse(str(row["target"])).hard_concrete:
            continue
        folder = "" if row["treatment"] == "masked" else f"selected/all/{row['target']}/seed-{row['seed']}"
        chosen = "random" if row["method"] in DRAWN else "other choices"
        points.append({
            "run": folder, "series": f"{chosen}, {row['treatment']}", "name": f"{row['target']}, {row['treatment']}",
            "scope": "all", "kept": int(row["kept"]), "of": int(row["of"]), "score": number(row["score"]),
        })  # fmt: skip
    return points


def _gated(run: Run) -> Record:
    """What a training with gates is called on the page, and the numbers of heads that it asks for."""
    budgets = run.target.budgets if run.target else ()
    return {"run": run.folder, "name": asked_of(run.target), "scope": run.scope, "budgets": budgets}


def _closing(gates: pd.DataFrame) -> list[Record]:
    found = []
    for run, rows in _grouped(gates):
        place = rows["attention"].map(list(SCOPES[run.scope or "all"]).index)
        ordered = rows.assign(place=place).sort_values(["update", "place", "layer", "head"])
        updates = [int(update) for update in ordered["update"].unique()]
        found.append(_gated(run) | {"updates": updates, "p_open": packed(ordered["p_open"].to_numpy(float))})
    return found


def _concrete(heads: pd.DataFrame, distribution: HardConcrete) -> Record:
    trained = [
        _gated(run) | {"log_alpha": [round(float(value), 4) for value in rows["log_alpha"]]}
        for run, rows in _grouped(heads)
    ]
    names = ("temperature", "low", "high", "log_alpha_init")
    return {**{name: getattr(distribution, name) for name in names}, "trained": trained}


def _claims(
    experiment: str, claims: pd.DataFrame | None, board: pd.DataFrame | None, figures: Sequence[str]
) -> list[Record]:
    """A record for each claim, in the order of the scoreboard.

    claims, board: table_claims.tsv and table_scoreboard.tsv of all experiments. With several seeds, their mean is used.
    figures: paths of figures relative to the page, of this experiment or of all in one.
    """
    if claims is None or board is None:
        return []
    own = claims[claims["experiment"] == experiment]
    means = own[own["seed"].astype(str) == "mean"]
    own = (means if len(means) else own).fillna(dict.fromkeys((*CLAIM_TEXTS, "holds"), ""))
    named = board[[*CLAIM_KEYS, "study", "topic", "name"]].fillna({"rule": ""})
    return [
        {
            **{name: row[name] for name in ("study", "topic", "name", *CLAIM_TEXTS)},
            **{name: number(row[name]) for name in CLAIM_NUMBERS},
            "verdict": row["holds"] or "not measured",
            "figure": _path_of(figure_of(row["source"], row["topic"]), experiment, figures),
        }
        for row in named.merge(own, on=CLAIM_KEYS, validate="one_to_one").to_dict("records")
    ]


def _path_of(name: str, experiment: str, figures: Sequence[str]) -> str:
    """Path of the figure with this name, of this experiment or of all in one; "" if there is none."""
    mine = [path for path in figures if PurePath(path).stem == name]
    return next((path for path in mine if PurePath(path).parent.name in (experiment, OF_ALL)), "")
