"""What gates on hidden units left, against numbers given by hand."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from heads.base.runs import Run
from heads.model.shape import ModelShape
from heads.tables.catalogue import TABLES
from heads.tables.reading import RunContent, RunFiles, frames_of
from heads.tables.units import units_table

Shape = Callable[..., ModelShape]
HEADS = {"enc_self": ((0, 2), (1,)), "dec_self": ((0, 1, 2), ()), "dec_enc": ((0,), (1, 2))}


def run(name: str, shape: ModelShape, bleu: float) -> RunFiles:
    facts: Mapping[str, Any] = {"shape": shape.as_dict(), "dev_loss": 1.5, "total_updates": 9}
    files = {"model.json": facts, "bleu.json": {"bleu": bleu, "sentences": 4, "signature": "s"}}
    return "tiny", Run.parse(name), RunContent(files)


def test_heads_and_units_that_are_left_stand_beside_the_scores_of_the_same_scope(tiny_shape: Shape) -> None:
    units = {"enc_ffn": (7, 2), "dec_ffn": (0, 4)}
    runs = [
        run("baseline/seed-1", tiny_shape(), 30.0),
        run("pruned/feedforward/lam-0/seed-1", tiny_shape(), 31.0),
        run("pruned/feedforward/lam-0.5/seed-1", tiny_shape(live_units=units), 28.5),
        run("pruned/everything/lam-0/seed-1", tiny_shape(), 33.0),
        run("pruned/everything/keep-9-8/seed-1", tiny_shape(live_heads=HEADS, live_units=units), 27.0),
        run("pruned/all/lam-0.5/seed-1", tiny_shape(live_heads=HEADS), 1.0),
    ]
    rows = units_table(frames_of(TABLES["units"].need, runs)).to_dict("records")
    assert [(row["kind"], row["scope"], row["lam"], row["keep"]) for row in rows] == [
        ("baseline", "", "", ""),
        *(("pruned", "feedforward", lam, "") for lam in ("0", "0.5")),
        *(("pruned", "everything", lam, keep) for lam, keep in (("0", ""), ("", "9-8"))),
    ]
    assert [(row["total"], row["units"], row["of"], row["of_units"]) for row in rows] == [
        *((18, 28, 18, 28), (18, 28, 18, 28), (18, 13, 18, 28), (18, 28, 18, 28), (9, 13, 18, 28)),
    ]
    assert (rows[0]["enc_ffn"], rows[0]["dec_ffn"]) == ("7 7", "7 7")
    assert (rows[4]["enc_ffn"], rows[4]["dec_ffn"], rows[4]["enc_self"]) == ("7 2", "0 4", 3)
    minus = [(row["score_minus_control"], row["score_minus_baseline"]) for row in rows]
    assert minus[1:] == [pytest.approx(each) for each in ((0, 1), (-2.5, -1.5), (0, 3), (-6, -3))]
