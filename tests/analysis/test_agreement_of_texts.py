"""The scripts behind two kept tables: how far costs agree between halves of a text, and importance between texts."""

import runpy
from itertools import combinations
from pathlib import Path
from statistics import correlation, fmean
from typing import Any

import numpy as np
import pytest
import sacrebleu

from checkouts import ROOT
from heads.analysis.metrics import counted_bleu
from heads.base.files import read_tsv, write_tsv

SCRIPTS = ROOT / "docs/measured/paper-size-en-pt"
REFERENCES = [
    "the old cat sees a dog in the house",
    "a man reads the long book to the child",
    "she gave the tall man a cup of tea",
    "we saw the two dogs of the old man",
    "the child runs to the house of the cat",
    "they read a book about the sea and the wind",
    "a cup of tea is on the long table",
]
WHOLE = [line.replace("old", "young") for line in REFERENCES]
WITHOUT = [
    [line.replace(word, other) for line in WHOLE]
    for word, other in (("the", "a"), ("dog", "wolf"), ("man", "boy"), ("of", "in"), ("tea", "milk"))
]
HEADS = [("enc_self", 0, 0), ("enc_self", 0, 1), ("enc_self", 1, 0), ("dec_self", 0, 0), ("dec_self", 0, 1)]
HEADS += [("dec_self", 1, 1), ("dec_enc", 0, 0), ("dec_enc", 1, 1), ("dec_enc", 1, 0)]


def bleu(lines: list[str], members: tuple[int, ...]) -> float:
    return sacrebleu.corpus_bleu([lines[i] for i in members], [[REFERENCES[i] for i in members]]).score


def costs(members: tuple[int, ...]) -> list[float]:
    """What each head masked alone costs on some sentences."""
    return [bleu(WHOLE, members) - bleu(lines, members) for lines in WITHOUT]


def test_random_halves_are_all_halves_of_a_text_and_agree_as_pearson_says() -> None:
    script = runpy.run_path(str(SCRIPTS / "halves.py"))
    counts = np.stack([counted_bleu(lines, REFERENCES, "13a") for lines in (WHOLE, *WITHOUT)]).astype(float)
    every = tuple(range(len(REFERENCES)))
    assert script["costs"](counts) == pytest.approx(costs(every))
    splits = [(half, tuple({*every} - {*half})) for half in combinations(every, 3)]
    expected = [correlation(costs(one), costs(other)) for one, other in splits]
    found = script["halves"](counts)
    nearest = np.abs(found[:, None] - np.array(expected)).argmin(1)
    assert found == pytest.approx(np.array(expected)[nearest])
    assert len({*nearest.tolist()}) == len(expected) == 35
    # Four deviations of a mean of 1000 draws.
    assert found.mean() == pytest.approx(fmean(expected), abs=4 * np.std(expected) / 1000**0.5)


def ranks(values: list[float]) -> list[float]:
    return [float(sorted(values).index(value)) for value in values]


def written(path: Path, seed: int) -> dict[tuple[Any, ...], dict[str, float]]:
    """Write a table of importance, heads in any order and another form first; return numbers of the paper's form."""
    draw = np.random.default_rng(seed)
    heads = [HEADS[i] for i in draw.permutation(len(HEADS))]
    rows = [
        {"attention": kind, "layer": layer, "head": head, "form": form, "importance": a, "importance_normalised": b}
        for form in ("token", "example")
        for (kind, layer, head), (a, b) in zip(heads, draw.integers(1, 1000, (len(heads), 2)) / 1000, strict=True)
    ]
    write_tsv(path, rows, [*rows[0]])
    return {(row["attention"], row["layer"], row["head"]): row for row in rows if row["form"] == "example"}


def test_importance_of_two_texts_is_compared_head_by_head_over_all_heads_and_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [written(tmp_path / f"{name}.importance.tsv", seed) for seed, name in enumerate(("own", "far", "near"))]
    paths = [str(tmp_path / f"{name}.importance.tsv") for name in ("own", "far", "near")]
    monkeypatch.setattr("sys.argv", ["domains.py", str(tmp_path / "out.tsv"), *paths])
    runpy.run_path(str(SCRIPTS / "domains.py"), run_name="__main__")
    expected = []
    for name, other in zip(("far", "near"), tables[1:], strict=True):
        for column in ("importance_normalised", "importance"):
            groups = [
                HEADS,
                *([head for head in HEADS if head[0] == kind] for kind in ("enc_self", "dec_self", "dec_enc")),
            ]
            both = [
                [[float(table[head][column]) for head in group] for table in (tables[0], other)] for group in groups
            ]
            r = [correlation(*both[0]), *(correlation(*map(ranks, pair)) for pair in both)]
            expected.append([name, column, *(pytest.approx(value, abs=1e-5) for value in r)])
    rows = read_tsv(tmp_path / "out.tsv")
    assert list(rows[0]) == ["text", "column", "r", "rho_all", "rho_enc_self", "rho_dec_self", "rho_dec_enc"]
    assert [[row["text"], row["column"], *(float(row[name]) for name in list(row)[2:])] for row in rows] == expected
