"""Heads chosen by their measurements: each method reads its own numbers; impossible limits are one-sentence errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from heads.__main__ import main
from heads.base.criteria import MEASURED_IN, files_of, least_of
from heads.base.files import UserError, read_tsv, write_json, write_text, write_tsv
from heads.base.names import ATTENTIONS
from heads.base.targets import Target
from heads.model.shape import Head
from heads.pruning.criteria import Measured, choose, selection_rows
from shape_facts import facts_with_shape

LIVE = {"enc_self": [[0, 1], [0, 2]], "dec_self": [[1], []], "dec_enc": [[0, 1], [1]]}
HEADS = tuple((kind, n, head) for kind in ATTENTIONS for n, layer in enumerate(LIVE[kind]) for head in layer)
NONE: dict[str, int] = {}


def chosen(target: str, measured: Measured, at_least: Mapping[str, int]) -> list[Head]:
    return choose(Target.parse(target), measured, at_least)


def rows(*columns: str, **more: str) -> list[dict[str, str]]:
    """Measures by which the heads rank in table order, in rows of text as files have them."""
    return [
        {"attention": a, "layer": str(n), "head": str(h), **dict.fromkeys(columns, str(1 / (3 + i))), **more}
        for i, (a, n, h) in enumerate(HEADS)
    ]


MEASURED = Measured(
    HEADS,
    {
        "importance.tsv": [
            row
            for form in ("example", "token", "batch", "signed")
            for row in rows("importance", "importance_normalised", form=form)
        ],
        "ablation.dev.tsv": rows("bleu_change"),
        "confidence.tsv": rows("confidence"),
        "causal.tsv": rows("causal_gate"),
        "lrp.tsv": rows("relevance_absolute", rule="plain"),
    },
)
"""What each measure says of which head is tested by the command, in `tests/cli/test_choice_commands.py`."""


def test_an_optimal_choice_keeps_its_least_heads_and_is_the_best_heads_where_nothing_else_is_asked() -> None:
    for number in range(1, len(HEADS)):
        assert chosen(f"optimal-{number}", MEASURED, NONE) == chosen(f"example-{number}", MEASURED, NONE)
    worst = chosen("example-7", MEASURED, NONE)
    dropped = next(head for head in HEADS if head not in worst)
    assert dropped in chosen("optimal-3", MEASURED, {f"{dropped[0]}.{dropped[1]}": len(LIVE[dropped[0]][dropped[1]])})


def test_what_is_asked_of_one_layer_goes_before_what_is_asked_of_all() -> None:
    asked = {"enc_self.1": 2, "enc_self": 1, "dec_enc": 0}
    heads = Counter((kind, layer) for kind, layer, _ in HEADS)
    assert least_of(asked, heads, "at_least") == {("enc_self", 0): 1, ("enc_self", 1): 2}
    assert least_of({"dec_self.1": 1}, {("enc_self", 0): 2}, "at_least") == {}, "a model may lack this kind"
    with pytest.raises(UserError, match=r"at_least names enc_self\.9, a layer that the model does not have"):
        least_of({"enc_self.9": 1}, heads, "at_least")


def command(folder: Path, at_least: str) -> list[str]:
    """Write what the command reads, importance alone of all measures; its words but for the targets."""
    write_json(folder / "model.json", {"shape": facts_with_shape(LIVE)})
    table = MEASURED.tables["importance.tsv"]
    write_tsv(folder / "importance.tsv", table, tuple(table[0]))
    write_text(folder / "s.yaml", f"selection: {{at_least: {at_least}, resamples: 100}}\n")
    paths = {"settings": "s.yaml", "baseline": "", "out": "selection.tsv"}
    return ["selection", *(f"--{flag}={folder / name}" for flag, name in paths.items())]


def test_a_budget_below_the_least_numbers_is_one_sentence_without_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, out = command(tmp_path, "{enc_self: 1, dec_enc.0: 2}"), tmp_path / "selection.tsv"
    assert main([*words, "--targets", "optimal-3"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: optimal-3: no choice among 8 heads has at most 3 heads")
    assert (
        "at least 1 head in each of 2 layers and at least 2 heads in dec_enc layer 0" in said
        and said.count("\n") == 1
        and not out.exists()
    )
    assert main([*words, "--targets", "optimal-4", "random2-3"]) == 0
    kept = {(row["method"], row["attention"], row["layer"]) for row in read_tsv(out) if row["open"] == "1"}
    assert {("optimal", "enc_self", "0"), ("optimal", "enc_self", "1"), ("optimal", "dec_enc", "0")} <= kept


@pytest.mark.parametrize(
    "target", ["rndom-3", "random-3", "lrp2-3", "optimal-x", "optimal", "dsp-9", "lrp-", "lrp--1", ""]
)
def test_a_method_that_there_is_not_is_named(target: str) -> None:
    with pytest.raises(UserError, match=f"{target!r} is not a choice of heads: .*confidence"):
        Target.parse(target, by_gates=False)


def test_every_head_has_a_row_for_every_target_and_budgets_are_held() -> None:
    targets = [f"{method.replace('random', 'random3')}-{n}" for method in MEASURED_IN for n in (2, 8)]
    table = selection_rows([Target.parse(target) for target in targets], MEASURED, NONE)
    assert len(table) == len(targets) * len(HEADS)
    for target in targets:
        method, _, budget = target.partition("-")
        mine = [row for row in table if (row["method"], row["budget"]) == (method, budget)]
        assert sum(int(row["open"]) for row in mine) == int(budget)


def test_only_the_measures_that_the_methods_need_are_asked_for() -> None:
    assert files_of(["random", "random"]) == ["model.json"]
    assert files_of(["lrp", "optimal", "token"]) == ["model.json", "lrp.tsv", "importance.tsv"]


def test_a_measure_that_lost_its_end_a_number_or_a_head_is_named() -> None:
    first, second, *others = MEASURED.tables["confidence.tsv"]
    lost = "lacks head .'enc_self', 0, 1."
    for value, reason in (("", "is damaged"), ("nan", lost), (None, lost)):
        rows = [first, *([{**second, "confidence": value}] if value is not None else []), *others]
        with pytest.raises(UserError, match=rf"confidence-2: confidence\.tsv {reason}"):
            chosen("confidence-2", Measured(HEADS, {"confidence.tsv": rows}), NONE)


@pytest.mark.parametrize("targets", [["optimal-x"], ["optimal"], ["dsp-9"], ["random2-3", "optimal-3"]])
def test_a_wrong_target_or_a_measure_cut_off_ends_the_command_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], targets: list[str]
) -> None:
    words, out, path = command(tmp_path, "{}"), tmp_path / "selection.tsv", tmp_path / "importance.tsv"
    path.write_bytes(path.read_bytes()[:-9])
    assert main([*words, "--targets", *targets]) == 1
    said = capsys.readouterr().err
    assert (targets[-1] in said or str(path) in said) and said.count("\n") == 1 and not out.exists()
