"""The grid of the heads that a model needs, read back from what is drawn."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from drawn_figures import draw
from fake_results import World, write_results
from heads.figures.importance import survival
from heads.tables.catalogue import FIGURES
from heads.tables.reading import Frames, load_runs

NAME = "heads_needed"


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Only to be copied."""
    world = World(layers=3, heads=4, lams=("0.01", "0.1"), seeds=(2, 3))
    return load_runs(FIGURES[NAME].need, write_results(tmp_path_factory.mktemp("needed") / "rich", world))


@pytest.fixture
def frames(read: Frames) -> Frames:
    return {name: rows.copy() for name, rows in read.items()}


def written(axes: Axes, layer: int, head: int) -> list[str]:
    """The texts in a cell."""
    inside = [
        text for text in axes.texts if (int(text.get_position()[1]), int(text.get_position()[0])) == (layer, head)
    ]
    return [text.get_text() for text in inside if text.get_text()]


def test_a_head_is_as_dark_as_the_share_of_prunings_over_all_seeds_that_leave_it(frames: Frames) -> None:
    gates = frames["heads.tsv"]
    runs = gates[(gates["kind"] == "gates") & (gates["attention"] == "enc_self") & (gates["scope"] == "enc_self")]
    runs = runs[runs["lam"].isin(["0.01", "0.1"])]
    assert runs.groupby(["seed", "lam"]).ngroups == 4
    figure = draw("heads_needed", frames)
    drawn = np.asarray(figure.axes[0].collections[0].get_array()).reshape(3, 4)
    for layer in range(3):
        for head in range(4):
            own = runs[(runs["layer"] == layer) & (runs["head"] == head)]
            assert drawn[layer, head] == pytest.approx(own["open"].sum() / 4)


def test_cross_attention_is_judged_by_prunings_of_all_kinds(frames: Frames) -> None:
    gates = frames["heads.tsv"]
    before = survival(gates)
    gates.loc[gates["scope"] == "enc_self", "open"] = 0
    after = survival(gates)
    assert not after[after["attention"] == "enc_self"]["open"].any()
    kept = [part[part["attention"] == "dec_enc"] for part in (before, after)]
    pd.testing.assert_frame_equal(*kept)
    assert kept[0]["open"].any()


def test_a_head_says_what_it_usually_looks_at_and_what_masking_it_costs_where_that_is_sure(frames: Frames) -> None:
    roles, cross, cost = (frames[f"{name}.tsv"] for name in ("roles", "cross_attention_roles", "ablation"))
    roles[["accuracy", "holds"]] = 0.1, 0
    cross["share"] = 0.1
    cost["p_value"] = 0.5
    is_named = {name: roles["name"] == name for name in ("+1", "obj dependent-to-head")}
    for place, name, accuracy, holds in (
        ((0, 1), "+1", 0.86, 0), ((1, 2), "obj dependent-to-head", 0.7, 0), ((2, 0), "obj dependent-to-head", 0.7, 1),
    ):  # fmt: skip
        here = (roles["layer"] == place[0]) & (roles["head"] == place[1]) & is_named[name]
        roles.loc[here, ["accuracy", "holds"]] = accuracy, holds
    cross.loc[(cross["layer"] == 1) & (cross["head"] == 3) & (cross["role"] == "written last"), "share"] = 0.9
    for kind, place, p_value in (("enc_self", (0, 1), 0.001), ("enc_self", (2, 2), 0.02), ("dec_enc", (1, 3), 0.009)):
        here = (cost["attention"] == kind) & (cost["layer"] == place[0]) & (cost["head"] == place[1])
        cost.loc[here, ["score_change", "p_value"]] = -1.25, p_value
    encoder, decoder = draw("heads_needed", frames).axes[:2]
    assert written(encoder, 0, 1) == ["next\n86%", "−1.2"]
    assert written(encoder, 1, 2) == []
    assert written(encoder, 2, 0) == ["obj→verb\n70%"]
    assert written(encoder, 2, 2) == []
    assert written(decoder, 1, 3) == ["source of\nthe last 90%", "−1.2"]


def test_without_trees_heads_say_nothing_of_what_they_look_at(frames: Frames) -> None:
    bare = {**frames, "roles.tsv": frames["roles.tsv"][:0]}
    encoder = draw("heads_needed", bare).axes[0]
    assert not [text for text in encoder.texts if "%" in text.get_text()]


def test_without_prunings_of_all_kinds_cross_attention_heads_are_there_without_a_colour(frames: Frames) -> None:
    gates = frames["heads.tsv"]
    encoder, decoder = draw("heads_needed", {**frames, "heads.tsv": gates[gates["scope"] != "all"]}).axes[:2]
    drawn: list[Any] = [np.asarray(axes.collections[0].get_array(), float) for axes in (encoder, decoder)]
    assert ["was not pruned" in axes.get_title(loc="left") for axes in (encoder, decoder)] == [False, True]
    assert np.isfinite(drawn[0]).all() and np.isnan(drawn[1]).all() and drawn[1].size == 12
    assert [text for text in decoder.texts if "source of" in text.get_text()]
