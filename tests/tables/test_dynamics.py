"""The table of how roles come about: the best head of each measure at each checkpoint, and what was gained since."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from heads.tables.roles import dynamics_table

COLUMNS = ["update", "finished", "layer", "head", "role", "name", "accuracy", "low", "high", "baseline"]
NONE = float("nan")


def made(*rows: tuple[object, ...], seed: int = 1) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).assign(experiment="e", seed=seed)


def course(role: str, name: str, *shares: tuple[int, float, float], baseline: float = NONE) -> list[tuple[object, ...]]:
    """The shares of heads 0.0 and 1.2 at each update; the last is the finished model."""
    last = shares[-1][0]
    return [
        (update, int(update == last), *place, role, name, share, share - 0.03, share + 0.01, baseline)
        for update, *both in shares
        for place, share in zip(((0, 0), (1, 2)), both, strict=True)
    ]


def test_the_best_head_stands_at_each_checkpoint_and_what_it_gained_since_the_last_one_of_the_first_half() -> None:
    shares = (5, 0.1, 0.2), (20, 0.35, 0.3), (21, 0.4, 0.1), (40, 0.2, 0.6)
    relation = course("syntactic", "obj head-to-dependent", *shares, baseline=0.25)
    rows = dynamics_table({"dynamics.tsv": made(*relation)}).to_dict("records")
    assert [(row["update"], row["layer"], row["head"], row["accuracy"]) for row in rows] == [
        (5, 1, 2, 0.2), (20, 0, 0, 0.35), (21, 0, 0, 0.4), (40, 1, 2, 0.6),
    ]  # fmt: skip
    assert [row["above_baseline"] for row in rows] == pytest.approx([-0.05, 0.1, 0.15, 0.35])
    assert all(math.isnan(row["gained"]) for row in rows[:3])
    assert rows[3]["gained"] == pytest.approx(0.6 - 0.35)
    assert (rows[3]["low"], rows[3]["high"]) == pytest.approx((0.57, 0.61))


def test_of_all_offsets_the_best_counts_and_of_confidence_the_best_head_and_the_mean() -> None:
    rows = course("positional", "-1", (4, 0.1, 0.3), (8, 0.5, 0.2)) + course(
        "positional", "+2", (4, 0.2, 0.1), (8, 0.4, 0.6)
    )
    rows += course("confidence", "", (4, 0.2, 0.4), (8, 0.9, 0.3)) + course(
        "rare", "rarest", (4, 0.9, 0.9), (8, 0.9, 0.9)
    )
    rows += course("rare", "one of two rarest", (4, 0.1, 0.0), (8, 0.2, 0.7))
    table = dynamics_table({"dynamics.tsv": made(*rows)})
    found = {(r["role"], r["name"], r["update"]): r["accuracy"] for r in table.to_dict("records")}
    assert found == pytest.approx({
        ("positional", "any offset", 4): 0.3, ("positional", "any offset", 8): 0.6,
        ("confidence", "", 4): 0.4, ("confidence", "", 8): 0.9,
        ("confidence", "mean", 4): 0.3, ("confidence", "mean", 8): 0.6,
        ("rare", "one of two rarest", 4): 0.1, ("rare", "one of two rarest", 8): 0.7,
    })  # fmt: skip
    gained = table[table["finished"] == 1].set_index(["role", "name"])["gained"]
    assert gained.to_dict() == pytest.approx({
        ("positional", "any offset"): 0.3, ("confidence", ""): 0.5, ("confidence", "mean"): 0.3,
        ("rare", "one of two rarest"): 0.6,
    })  # fmt: skip


def test_seeds_are_told_apart_and_without_a_checkpoint_in_the_first_half_nothing_was_gained() -> None:
    one = made(*course("positional", "-1", (30, 0.1, 0.3), (40, 0.5, 0.2)))
    other = made(*course("positional", "-1", (20, 0.6, 0.3), (40, 0.7, 0.2)), seed=2)
    table = dynamics_table({"dynamics.tsv": pd.concat([one, other])})
    end = table[table["finished"] == 1].set_index("seed")
    assert end["accuracy"].to_dict() == {1: 0.5, 2: 0.7}
    assert math.isnan(end["gained"][1]) and end["gained"][2] == pytest.approx(0.1)


def test_a_relation_without_cases_has_no_row() -> None:
    rows = course("syntactic", "nsubj head-to-dependent", (4, NONE, NONE), (8, NONE, NONE), baseline=NONE)
    table = dynamics_table({"dynamics.tsv": made(*rows, *course("positional", "0", (4, 0.1, 0.2), (8, 0.1, 0.2)))})
    assert set(table["role"]) == {"positional"}
