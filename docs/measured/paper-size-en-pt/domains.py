"""How far the importance of heads agrees between two texts: python domains.py OUT ONE.tsv OTHER.tsv ...

Of the first table with each other one: Pearson's r over all heads, as Michel et al. compare domains, and rank
correlations over all heads and those of each kind. Importance is by sentence, as it is and divided by its layer's norm.
"""

import sys
from pathlib import Path

from scipy.stats import pearsonr, spearmanr

from heads.base.files import read_tsv, write_tsv
from heads.base.names import ATTENTIONS, HEAD


def importance(path: Path, column: str) -> dict[tuple[str, ...], float]:
    """Importance of each head, as in the paper."""
    rows = [row for row in read_tsv(path) if row["form"] == "example"]
    return {tuple(row[name] for name in HEAD): float(row[column]) for row in rows}


def agreement(first: dict[tuple[str, ...], float], other: dict[tuple[str, ...], float]) -> dict[str, float]:
    """Pearson's r of all heads, and Spearman's of all and of each kind."""
    groups = {"all": [*first]} | {kind: [head for head in first if head[0] == kind] for kind in ATTENTIONS}
    pairs = {name: ([first[head] for head in heads], [other[head] for head in heads]) for name, heads in groups.items()}
    found = {"r": pearsonr(*pairs["all"])} | {f"rho_{name}": spearmanr(*pair) for name, pair in pairs.items()}
    return {name: float(test.statistic) for name, test in found.items()}


if __name__ == "__main__":
    out, one, *others = map(Path, sys.argv[1:])
    rows = [
        {"text": path.name.removesuffix(".importance.tsv"), "column": column}
        | agreement(importance(one, column), importance(path, column))
        for path in others
        for column in ("importance_normalised", "importance")
    ]
    write_tsv(out, rows, [*rows[0]])
