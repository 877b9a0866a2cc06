"""Which heads are kept, against sets known beforehand; impossible limits and damaged measures are one-sentence errors.

What each measure says of which head is tested by the command, in `tests/cli/test_choice_commands.py`.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from heads.__main__ import main
from heads.base.files import UserError, read_tsv, write_json, write_text, write_tsv
from heads.base.methods import files_read_by, least_of
from heads.base.names import ATTENTIONS, HEAD
from heads.base.targets import Target
from heads.model.shape import Head
from heads.pruning.selection import Measured, choose, keep_best, keep_optimal, random_scores, steps
from shape_facts import facts_with_shape

SCORES: dict[Head, float] = {
    ("dec_enc", 0, 0): 5.0,
    ("enc_self", 1, 0): 2.0,
    ("enc_self", 0, 1): 2.0,
    ("dec_self", 0, 0): 2.0,
    ("dec_enc", 0, 1): -1.0,
    ("enc_self", 0, 0): 0.5,
    ("dec_self", 1, 3): 3.0,
}


def test_the_best_heads_are_kept_and_among_equals_the_first_of_the_tables() -> None:
    assert keep_best(SCORES, 4) == [("enc_self", 0, 1), ("enc_self", 1, 0), ("dec_self", 1, 3), ("dec_enc", 0, 0)]
    assert keep_best(dict(reversed(SCORES.items())), 4) == keep_best(SCORES, 4)


def test_random_heads_are_each_kept_equally_often_and_the_same_for_the_same_seed() -> None:
    draws = 3000
    kept = Counter(head for seed in range(draws) for head in keep_best(random_scores(list(SCORES), seed), 3))
    expected, error = draws * 3 / 7, (draws * 3 / 7 * 4 / 7) ** 0.5
    assert all(abs(kept[head] - expected) < 5 * error for head in SCORES)
    assert random_scores(list(SCORES), 8) == random_scores(list(reversed(SCORES)), 8)


def test_stratified_draws_keep_as_many_of_each_kind_as_importance_and_each_head_of_a_kind_equally_often() -> None:
    important = {("enc_self", 0, 1): 9, ("enc_self", 1, 2): 8, ("dec_enc", 0, 0): 7, ("dec_enc", 1, 1): 6}
    table = [
        {**dict(zip(HEAD, map(str, head), strict=True)), "form": form, "importance": str(i),
         "importance_normalised": str(important.get(head, 0) if form == "example" else i)}
        for form in ("token", "example") for i, head in enumerate(HEADS)
    ]  # fmt: skip
    measured = Measured(HEADS, {"importance.tsv": table})
    draws, kept = 2000, Counter[Head]()
    for seed in range(draws):
        heads = choose(Target("stratified", (3,), seed), measured, {})
        assert Counter(kind for kind, _, _ in heads) == {"enc_self": 2, "dec_enc": 1}
        assert heads == sorted(heads, key=HEADS.index)
        kept.update(heads)
    for kind, share in (("enc_self", 2 / 4), ("dec_enc", 1 / 3)):
        error = (draws * share * (1 - share)) ** 0.5
        assert all(abs(kept[head] - draws * share) < 5 * error for head in HEADS if head[0] == kind)
    with pytest.raises(UserError, match="stratified1-9: cannot keep 9 of 8 heads"):
        choose(Target.parse("stratified1-9"), measured, {})


@pytest.mark.parametrize("budget", [-1, 8])
def test_a_budget_that_no_choice_has_is_an_error_of_the_user(budget: int) -> None:
    with pytest.raises(UserError, match="7"):
        keep_best(SCORES, budget)


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="nan"):
        keep_best({**SCORES, ("dec_enc", 1, 1): float("nan")}, 2)


def test_steps_mask_the_worst_heads_first_each_set_inside_the_next_up_to_all() -> None:
    masked = steps(SCORES, 0.2)
    assert [len(heads) for heads in masked] == [1, 3, 4, 6, 7]  # 1.4, 2.8, 4.2, 5.6 and 7 of 7
    assert masked[1] == [("dec_enc", 0, 1), ("enc_self", 0, 0), ("dec_self", 0, 0)]
    assert all(set(fewer) < set(more) for fewer, more in pairwise(masked))
    for heads in masked:
        assert set(keep_best(SCORES, 7 - len(heads))) == set(SCORES) - set(heads)


def test_ten_steps_of_144_heads_have_the_numbers_of_heads_of_a_tenth_each() -> None:
    heads = {("enc_self", i, j): float(i * 24 + j) for i in range(6) for j in range(24)}
    assert [len(masked) for masked in steps(heads)] == [14, 29, 43, 58, 72, 86, 101, 115, 130, 144]


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_zero_to_one_is_an_error_of_the_user(share: float) -> None:
    with pytest.raises(UserError, match="share"):
        steps(SCORES, share)


def test_with_nothing_but_a_number_of_heads_the_optimum_is_the_best_heads_also_among_equals() -> None:
    assert keep_optimal(SCORES, 4, {}) == keep_best(SCORES, 4)
    for seed in range(5):
        equal = {head: float(np.random.default_rng([seed, i]).integers(1, 3)) for i, head in enumerate(SCORES)}
        assert keep_optimal(equal, 4, {}) == keep_best(equal, 4)


def test_a_head_worth_less_than_nothing_is_left_out_even_where_there_is_room() -> None:
    assert set(SCORES) - set(keep_optimal(SCORES, 7, {})) == {("dec_enc", 0, 1)}


def test_tiny_scores_are_told_apart_like_large_ones() -> None:
    small = {head: score * 1e-9 for head, score in SCORES.items()}
    assert keep_optimal(small, 3, {}) == keep_optimal(SCORES, 3, {})


def test_limits_that_no_choice_holds_are_named_in_one_sentence() -> None:
    with pytest.raises(UserError) as error:
        keep_optimal(SCORES, 1, {("enc_self", 0): 2})
    sentence = str(error.value)
    assert "has at most 1 heads and" in sentence and "at least 2 heads in enc_self layer 0" in sentence
    assert sentence.count(". ") == 0 and sentence.endswith(".")


def test_many_layers_that_must_keep_as_many_heads_are_counted_and_not_listed() -> None:
    least = dict.fromkeys(((kind, layer) for kind in ("enc_self", "dec_enc") for layer in range(9)), 1)
    scores = {(kind, layer, head): float(head) for kind, layer in least for head in range(3)}
    with pytest.raises(UserError) as error:
        keep_optimal(scores, 4, {**least, ("dec_enc", 3): 2})
    sentence = str(error.value)
    assert "at least 1 head in each of 17 layers and at least 2 heads in dec_enc layer 3" in sentence
    assert sentence.count("layer") == 2


LIVE = {"enc_self": [[0, 1], [0, 2]], "dec_self": [[1], []], "dec_enc": [[0, 1], [1]]}
HEADS = tuple((kind, n, head) for kind in ATTENTIONS for n, layer in enumerate(LIVE[kind]) for head in layer)


def rows(*columns: str, **more: str) -> list[dict[str, str]]:
    """Measures by which the heads rank in table order, in rows of text as files have them."""
    return [
        {"attention": a, "layer": str(n), "head": str(h), **dict.fromkeys(columns, str(1 / (3 + i))), **more}
        for i, (a, n, h) in enumerate(HEADS)
    ]


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
    table = rows("importance", "importance_normalised", form="example")
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


def test_only_the_measures_that_the_methods_need_are_asked_for() -> None:
    assert files_read_by(["random", "random"]) == ["model.json"]
    assert files_read_by(["stratified"]) == ["model.json", "importance.tsv"]
    assert files_read_by(["lrp", "optimal", "token"]) == ["model.json", "lrp.tsv", "importance.tsv"]


def test_a_measure_that_lost_its_end_a_number_or_a_head_is_named() -> None:
    first, second, *others = rows("confidence")
    lost = "lacks head .'enc_self', 0, 1."
    for value, reason in (("", "is damaged"), ("nan", lost), (None, lost)):
        table = [first, *([{**second, "confidence": value}] if value is not None else []), *others]
        with pytest.raises(UserError, match=rf"confidence-2: confidence\.tsv {reason}"):
            choose(Target.parse("confidence-2"), Measured(HEADS, {"confidence.tsv": table}), {})


@pytest.mark.parametrize("targets", [["optimal-x"], ["optimal"], ["dsp-9"], ["random2-3", "optimal-3"]])
def test_a_wrong_target_or_a_measure_cut_off_ends_the_command_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], targets: list[str]
) -> None:
    words, out, path = command(tmp_path, "{}"), tmp_path / "selection.tsv", tmp_path / "importance.tsv"
    path.write_bytes(path.read_bytes()[:-9])
    assert main([*words, "--targets", *targets]) == 1
    said = capsys.readouterr().err
    assert (targets[-1] in said or str(path) in said) and said.count("\n") == 1 and not out.exists()
