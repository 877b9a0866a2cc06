"""Names of what is measured: readings of relevance, and labels of these, of relations and of functions of heads.

A reading of relevance is a propagation rule and a share, written as `plain, signed by step`; its column of measures is
`lrp_plain_signed_by_step`.
"""

import re
from collections.abc import Iterable

import pandas as pd

from heads.base.names import DEFAULT_TOKENISER, REFERENCES

SHARES = {"relevance": "signed by step", "relevance_of_sums": "signed of sums", "relevance_absolute": "absolute"}
"""The share in each column of `lrp.tsv`; see `heads.analysis.lrp.rows`."""
PAPERS_RULE = "plain"
PREFIX = "lrp_"

SIDE_BY_SIDE = {
    "plain, signed by step": "as written",
    "plain, signed of sums": "signed of sums",
    "plain, absolute": "absolute",
    "z-plus, signed by step": "z-plus",
}
"""Short names by reading. The first is the paper as written (Voita et al., sec. 4 and app. A.2), and decides; the next
two are the same rule with shares that a few steps cannot decide; the last represents the authors' released code, which
makes all parts positive, so that its shares are the same with and without signs."""

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


def bleu_name(scores: pd.DataFrame) -> str:
    """What BLEU is called in pictures: fidelity if it is not against references, with tokenisers other than 13a.

    scores: rows of score files, with their signatures.
    """
    found = (re.search(r"tok:([^|]+)", str(signature)) for signature in scores["signature"])
    tokenisers = dict.fromkeys(tok[1] for tok in found if tok and tok[1] != DEFAULT_TOKENISER)
    notes = [*(() if (scores["against"] == REFERENCES).all() else ("fidelity",)), *tokenisers]
    return f"BLEU ({', '.join(notes)})" if notes else "BLEU"


def relevance_columns(table: pd.DataFrame) -> dict[str, str]:
    """The column of each reading in a table of measures, in the order of the files."""
    return {reading_of(name): name for name in table.columns if name.startswith(PREFIX)}


def column_pattern(share: str) -> str:
    """The name of the column of measures for a share of SHARES, with a gap for the rule."""
    return f"{PREFIX}{{}}_{SHARES[share].replace(' ', '_')}"


def reading_of(column: str) -> str:
    """The reading of a column of measures."""
    rule, _, share = column.removeprefix(PREFIX).partition("_")
    return f"{rule}, {share.replace('_', ' ')}"


def is_shown(reading: str) -> bool:
    """Whether figures show this reading: all those of the paper's rule, and the absolute share of other rules."""
    rule, _, share = reading.partition(", ")
    return rule == PAPERS_RULE or share == SHARES["relevance_absolute"]


def side_by_side(readings: Iterable[str]) -> list[str]:
    """The readings of SIDE_BY_SIDE that are in `readings`, or else the first one there; the first returned decides."""
    there = list(dict.fromkeys(readings))
    return [reading for reading in SIDE_BY_SIDE if reading in there] or there[:1]


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
