"""Short labels of relations, functions of heads and readings of relevance, for figures and the page."""

from __future__ import annotations

import pandas as pd

from heads.tables.relevance import PAPERS_RULE

MINUS = "\N{MINUS SIGN}"
ENDS = {"nsubj": ("verb", "subj"), "obj": ("verb", "obj"), "amod": ("noun", "adj"), "advmod": ("verb", "adv")}
"""Words for the head and the dependent of the paper's relations."""
RULE_LABELS = {
    "plain": "plain ratio",
    "plain-product": "products shared",
    "z-plus": "z⁺",
    "alpha-beta": "α–β",
    "attnlrp": "AttnLRP",
    "voita-2019": "code of 2019",
}
"""Short names of propagation rules; other rules keep their own."""


def relation_label(name: str, *, short: bool) -> str:
    """The label `subj→verb` for `nsubj dependent-to-head`, or `s→v` if short; other relations keep their name."""
    relation, direction = name.split(" ", maxsplit=1)
    head, dependent = ENDS.get(relation, ("head", relation))
    if short:
        head, dependent = ("adv" if end == "adv" else end[0] for end in (head, dependent))
    return f"{dependent}→{head}" if direction == "dependent-to-head" else f"{head}→{dependent}"


def function_label(rows: pd.DataFrame) -> str:
    """The text on a head: its offset, its relation with the largest gain and "rare", one per line.

    rows: one head's rows of `roles.tsv`. A "+" means that the head has further relations.
    """
    held = rows[rows["holds"] == 1]
    lines = []
    if len(offsets := held[held["role"] == "positional"]):
        best = offsets.sort_values("accuracy", ascending=False)["name"].iloc[0]
        lines.append(str(best).replace("-", MINUS))
    if len(relations := held[held["role"] == "syntactic"]):
        gains = (relations["accuracy"] - relations["baseline"]).sort_values(ascending=False, kind="stable")
        name = str(relations.loc[gains.index[0], "name"])
        lines.append(relation_label(name, short=True) + ("+" if len(relations) > 1 else ""))
    if (held["role"] == "rare").any():
        lines.append("rare")
    return "\n".join(lines)


def rule_label(rule: str) -> str:
    """The name of a propagation rule in figures."""
    short = RULE_LABELS.get(rule, rule)
    return short if short.endswith("LRP") else f"LRP, {short}"


def reading_label(reading: str) -> str:
    """The name of a reading of relevance in figures: its rule, and its share if several are shown for that rule."""
    rule, _, share = reading.partition(", ")
    return f"{rule_label(rule)}, {share}" if rule == PAPERS_RULE else rule_label(rule)
