"""Claims about pruned models, each where it is true, where it is not, and where nobody can tell."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heads.tables import claims_pruning as claims
from heads.tables.claims import stated
from heads.tables.evidence import Evidence
from heads.tables.reading import load_reference
from heads.tables.verdicts import Finding, holds
from made_evidence import driven, heads_frame, numbers, run_of, scored, swept, with_functions

PAPER = stated(load_reference("voita_claims.csv")).set_index("id")
SURE, TORN = (30.0, 30.02, 29.98, 30.01, 29.99), (30.0, 30.9, 29.1, 30.4, 29.6)
"""BLEU of all sentences and of four draws of them."""


def verdict(identity: str, evidence: Evidence) -> str:
    finding = claims.PRUNING_CLAIMS[identity](evidence)
    return holds(finding, PAPER.loc[identity, "condition"], PAPER.loc[identity, "limit"])


def less(scores: Sequence[float], loss: float) -> list[float]:
    """The same draws, each lower by `loss`: a difference of which a paired comparison is sure."""
    return [score - loss for score in scores]


def line(scope: str, losses: dict[float, float], control: float = 1.0, draws: Sequence[float] = TORN) -> Evidence:
    """A baseline, a control better by `control` BLEU, and models of a scope by share of heads and BLEU lost."""
    models = [
        ("pruned", scope, f"0.{number}", share, less(draws, loss), None)
        for number, (share, loss) in enumerate(losses.items(), start=1)
    ]
    return scored(("baseline", "", "", 1.0, draws, None), ("pruned", scope, "0", 1.0, less(draws, -control), None),
                  *models)  # fmt: skip


def test_bleu_at_a_share_lies_on_the_line_between_the_nearest_models() -> None:
    found = line("enc_self", {0.5: 1.0, 0.25: 5.0})
    at = [claims.change_at(found, "enc_self", share, control=False).ours for share in (0.75, 0.5, 0.375, 0.25)]
    assert at == pytest.approx([-0.5, -1, -3, -5])
    assert claims.change_at(found, "enc_self", 0.75, control=True).ours == pytest.approx(-1)
    assert claims.change_at(found, "enc_self", 0.5, control=True).ours == pytest.approx(-2)
    assert np.isnan(claims.change_at(found, "enc_self", 0.2, control=False).ours)
    assert np.isnan(claims.change_at(found, "all", 0.5, control=False).ours)
    two = scored(("baseline", "", "", 1.0, [30.0], None), ("pruned", "all", "0.1", 0.5, [28.0], None),
                 ("pruned", "all", "0.2", 0.5, [24.0], None))  # fmt: skip
    assert claims.change_at(two, "all", 0.5, control=False) == Finding(-4, relative=-400 / 30)


def test_models_that_were_asked_for_numbers_of_heads_stand_where_no_penalty_was_swept() -> None:
    found = line("enc_self", {0.5: 1.0, 0.25: 5.0})
    for share, control in ((0.375, False), (0.5, True)):
        expected = claims.change_at(found, "enc_self", share, control=control)
        assert astuple(claims.change_at(driven(found), "enc_self", share, control=control)) == numbers(expected)
        assert expected.ours < 0
    kinds = {"enc_self": [[0, 0, 1]], "dec_self": [[1, 1, 0]], "dec_enc": [[1, 1, 1]]}
    fewer = {"enc_self": [[0, 0, 0]], "dec_self": [[1, 0, 0]], "dec_enc": [[1, 1, 0]]}
    models = swept(**{"lam0.1": kinds, "lam0.2": fewer})
    assert astuple(claims.encoder_fewest(driven(models))) == numbers(claims.encoder_fewest(models))
    both = ("dec_enc", "dec_self")
    assert astuple(claims.nearly_equal(driven(models), *both)) == numbers(claims.nearly_equal(models, *both))
    assert claims.encoder_fewest(driven(models)).ours == 2 and claims.nearly_equal(driven(models), *both).ours > 0
    gates = pd.DataFrame([{**run_of(("gates", "all", "", str(keep))), "attention": "dec_enc", "layer": 0, "head": head,
                           "strictly_between": int(head == keep)} for keep in (1, 2) for head in range(4)])  # fmt: skip
    assert claims.gates_between(replace(models, gates=gates)).ours == 2 / 8


def test_the_interval_of_bleu_at_a_share_is_that_of_the_line_in_each_draw() -> None:
    base, upper, lower = [30.0, 31, 29, 30.5], [29.0, 29.5, 28.0, 29], [26.0, 27, 22, 26.5]
    found = scored(("baseline", "", "", 1.0, base, None), ("pruned", "all", "0.2", 0.2, lower, None),
                   ("pruned", "all", "0.1", 0.6, upper, None))  # fmt: skip
    finding = claims.change_at(found, "all", 0.3, control=False)
    each = [0.25 * u + 0.75 * b - a for a, u, b in zip(base, upper, lower, strict=True)]
    assert (finding.ours, finding.low, finding.high) == pytest.approx((each[0], min(each[1:]), max(each[1:])))
    # Above the first model the line leads to the baseline.
    assert claims.change_at(found, "all", 0.8, control=False).ours == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("identity", "scope", "share", "limit"),
    [("encoder_10_of_48", "enc_self", 10 / 48, 0.15 + 0.25), ("encoder_5_of_48", "enc_self", 5 / 48, 0.52 + 0.25),
     ("encoder_4_of_48", "enc_self", 4 / 48, 0.25 + 0.25), ("all_75_of_144", "all", 75 / 144, 0.25),
     ("all_58_of_144", "all", 58 / 144, 0.24 + 0.25)],
)  # fmt: skip
def test_heads_go_at_so_little_cost_or_not(identity: str, scope: str, share: float, limit: float) -> None:
    other = "all" if scope == "enc_self" else "enc_self"
    assert verdict(identity, line(scope, {share: limit - 0.01})) == "yes"
    assert verdict(identity, line(scope, {share: limit + 0.01})) == "no"
    assert verdict(identity, line(other, {share: limit - 0.01})) == ""
    unpaired = scored(("baseline", "", "", 1.0, SURE, None), ("pruned", scope, "0.1", share, TORN, None))
    assert verdict(identity, unpaired) == "unclear"
    half_as_far = line(scope, {share / 2: limit + 0.01, 1.5 * share: limit - 0.05})
    assert verdict(identity, half_as_far) == "yes"


@pytest.mark.parametrize(
    ("identity", "scope", "share"),
    [("encoder_10_of_48", "enc_self", 10 / 48), ("all_75_of_144", "all", 75 / 144)],
)
def test_the_control_decides_only_where_it_is_asked(identity: str, scope: str, share: float) -> None:
    better, worse = line(scope, {share: 0.1}, control=1.0), line(scope, {share: 1.0}, control=-1.0)
    assert [verdict(identity, found) for found in (better, worse)] == ["yes", "no"]
    assert [verdict(f"{identity}_control", found) for found in (better, worse)] == ["no", "yes"]


def test_the_control_is_that_of_its_own_scope() -> None:
    both = line("all", {0.5: 2.0}, control=3.0), line("enc_self", {0.5: 1.0}, control=0.5)
    for first, second in (both, both[::-1]):
        found = replace(first, runs=pd.concat([first.runs, second.runs], ignore_index=True))
        assert claims.change_at(found, "enc_self", 0.5, control=True).ours == pytest.approx(-1.5)
        assert claims.change_at(found, "all", 0.5, control=True).ours == pytest.approx(-5)


def gained(*gains: Sequence[float] | None, scope: str = "all") -> Evidence:
    """Models of a scope by draws of their gain over the same heads from scratch; None for one without such a model."""
    rows: list[Any] = [("baseline", "", "", 1.0, [30.0] * 3, None), ("pruned", scope, "0", 1.0, [30.0] * 3, [99.0] * 3)]
    for number, gain in enumerate(gains, start=1):
        scratch = None if gain is None else [30 - value for value in gain]
        rows.append(("pruned", scope, f"0.{number}", 0.5, [30.0] * 3, scratch))
    return scored(*rows)


def test_pruned_models_are_held_against_the_same_heads_from_scratch_where_both_were_trained() -> None:
    better = gained([1, 0.8, 1.2], [0.5, 0.4, 0.6], None)
    assert claims.scratch_not_better(better) == Finding(2, 2, low=2, high=2)
    assert astuple(claims.scratch_gain(better, "all")) == numbers(Finding(0.75, low=0.6, high=0.9, relative=2.5))
    asked = ("scratch_not_better", "scratch_gain")
    assert [verdict(name, better) for name in asked] == ["yes", "yes"]
    assert [verdict(name, gained([1, 0.8, 1.2], [0.1, -0.2, 0.4])) for name in asked] == ["unclear", "yes"]
    assert [verdict(name, gained([-1, -1.2, -0.8], [0.5, 0.4, 0.6])) for name in asked] == ["no", "no"]
    assert verdict("scratch_gain", gained([0.5, 1.0, -0.2])) == "unclear"
    assert claims.scratch_not_better(gained([0.0, 0.0, 0.0])) == Finding(1, 1, low=1, high=1)
    assert [verdict(name, gained(None)) for name in asked] == ["", ""]


def test_a_pair_whose_trainings_had_not_ended_says_nothing_and_gives_way_to_settled_ones() -> None:
    asked = ("scratch_not_better", "scratch_gain")
    better = gained([1, 0.8, 1.2], [-9, -9.5, -8.5])
    better.runs["pair"] = ["", "not settled", "not settled", "not settled"]
    assert [verdict(name, better) for name in asked] == ["not settled", "not settled"]
    better.runs.loc[2, "pair"] = "settled"
    assert [verdict(name, better) for name in asked] == ["yes", "yes"]
    assert claims.scratch_gain(better, "all").ours == pytest.approx(1)


def test_heads_that_were_cut_out_and_trained_on_stand_for_the_pruned_model() -> None:
    found = gained([-1, -1.2, -0.8], [0.5, 0.4, 0.6])
    found.runs.at[2, "scores_trained_on"] = np.array([33.0, 33.2, 32.8])
    assert astuple(claims.scratch_gain(found, "all")) == numbers(Finding(1.25, low=1.2, high=1.3, relative=125 / 30))
    assert verdict("scratch_not_better", found) == "yes"


def test_scratch_of_the_encoder_alone_is_its_own_claim() -> None:
    asked = ("scratch_gain", "encoder_from_scratch")
    assert [verdict(name, gained([0.3, 0.25, 0.35], scope="enc_self")) for name in asked] == ["", "yes"]
    assert [verdict(name, gained([0.1, 0.05, 0.15], scope="enc_self")) for name in asked] == ["", "no"]
    assert [verdict(name, gained([0.3, 0.1, 0.5], scope="enc_self")) for name in asked] == ["", "unclear"]
    assert [verdict(name, gained([0.3, 0.25, 0.35])) for name in asked] == ["yes", ""]


def penalised(share: float, scores: Sequence[float], scope: str = "enc_self") -> Evidence:
    """Fine-tuned models that lose 1 and 2 BLEU, and one trained from scratch with the penalty."""
    found = line(scope, {0.5: 1.0, 0.25: 2.0}, control=0.4)
    other = scored(("pruned_from_scratch", scope, "0.3", share, scores, None))
    return replace(found, runs=pd.concat([found.runs, other.runs], ignore_index=True))


def test_the_penalty_from_scratch_is_held_against_fine_tuning_at_the_same_share_of_heads() -> None:
    # On the line from the control, 30.4 with all heads, to 29.0 with half of them.
    assert claims.penalty_gain(penalised(0.75, less(TORN, 2.0))).ours == pytest.approx(29.7 - 28.0)
    assert claims.penalty_gain(penalised(0.3, less(TORN, 2.0))).ours == pytest.approx(0.2)
    assert verdict("penalty_from_scratch", penalised(0.5, less(TORN, 1.3))) == "yes"
    assert verdict("penalty_from_scratch", penalised(0.5, less(TORN, 1.1), "all")) == "no"
    assert verdict("penalty_from_scratch", penalised(0.5, less(SURE, 1.3))) == "unclear"
    assert verdict("penalty_from_scratch", penalised(0.1, less(TORN, 9.0))) == ""
    assert verdict("penalty_from_scratch", line("enc_self", {0.5: 1.0})) == ""
    encoder_only = line("enc_self", {0.5: 1.0})
    in_all = penalised(0.5, less(TORN, 9.0), "all").runs.query("kind == 'pruned_from_scratch'")
    only_other = replace(encoder_only, runs=pd.concat([encoder_only.runs, in_all]))
    assert verdict("penalty_from_scratch", only_other) == "", "fine-tuned in another scope"


def test_fine_tuning_is_held_against_the_mean_over_all_penalties_from_scratch() -> None:
    two = pd.concat([penalised(0.5, less(TORN, loss)).runs for loss in (1.1, 1.5)]).drop_duplicates(
        ["kind", "share", "lam"], keep="first"
    )
    more = penalised(0.25, less(TORN, 2.9)).runs.query("kind == 'pruned_from_scratch'")
    found = replace(penalised(0.5, TORN), runs=pd.concat([two, more], ignore_index=True))
    assert claims.penalty_gain(found).ours == pytest.approx((0.1 + 0.9) / 2)


def sized(*models: tuple[int, int, int, float]) -> Evidence:
    """Models of sixteen heads of each kind by heads left and BLEU lost; the first has the smallest lambda."""
    rows = [("baseline", "", "", 1.0, TORN, None)]
    rows += [("pruned", "all", f"0.{n}", 0.5, less(TORN, loss), None) for n, (*_, loss) in enumerate(models, start=1)]  # type: ignore[misc]
    found = scored(*rows)
    left = np.array([(16, 16, 16), *(model[:3] for model in models)])
    sizes = dict(zip(("enc_self", "dec_self", "dec_enc"), left.T, strict=True))
    return replace(found, runs=found.runs.assign(**sizes, total=left.sum(1), of=48, of_enc_self=16))


def test_three_quarters_of_the_encoder_and_a_third_of_the_decoder_are_free() -> None:
    name = "three_quarters_of_encoder"
    assert verdict(name, sized((5, 9, 9, 3.0), (4, 10, 10, 0.2), (2, 5, 5, 3.0))) == "yes"
    assert verdict(name, sized((4, 10, 11, 0.1), (4, 10, 10, 0.3), (4, 5, 5, 0.1))) == "no"
    assert claims.most_encoder_heads_free(sized((1, 4, 4, 5.0), (4, 4, 4, 0.5)), 0.25, 0.5).ours == pytest.approx(-0.5)
    assert verdict(name, sized((5, 2, 2, 0.1), (4, 16, 5, 0.1))) == ""


FULL = [[1] * 4] * 3
NONE = [[0] * 4] * 3
HALF = [[1, 1, 0, 0]] * 3
ONE = [[1, 0, 0, 0]] * 3


def test_kinds_of_attention_lose_their_heads_in_an_order() -> None:
    as_paper = swept(lam1={"enc_self": HALF, "dec_self": FULL, "dec_enc": FULL},
                     lam2={"enc_self": NONE, "dec_self": ONE, "dec_enc": FULL},
                     lam3={"enc_self": NONE, "dec_self": NONE, "dec_enc": NONE})  # fmt: skip
    asked = ("encoder_fewest", "source_over_self", "self_over_encoder")
    assert [verdict(name, as_paper) for name in asked] == ["yes"] * 3
    assert (claims.encoder_fewest(as_paper).ours, claims.encoder_fewest(as_paper).of) == (2, 2)
    assert claims.more_left(as_paper, "dec_enc", "dec_self").ours == pytest.approx((0 + 0.75) / 2)
    assert claims.more_left(as_paper, "dec_self", "enc_self").ours == pytest.approx((0.5 + 0.25) / 2)
    turned = swept(lam1={"enc_self": FULL, "dec_self": HALF, "dec_enc": ONE})
    assert [verdict(name, turned) for name in asked] == ["no", "unclear", "no"], "two heads of eight against four"
    equal = swept(lam1={"enc_self": HALF, "dec_self": FULL, "dec_enc": HALF})
    assert claims.encoder_fewest(equal).ours == 0


def test_one_head_more_or_less_is_no_order_of_kinds() -> None:
    few = swept(lam1={"enc_self": [[1, 0], [0, 1]], "dec_self": [[1, 0], [1, 1]], "dec_enc": [[1, 1], [1, 1]]})
    asked = ("encoder_fewest", "source_over_self", "self_over_encoder")
    assert [verdict(name, few) for name in asked] == ["unclear"] * 3


def test_the_encoder_is_not_first_where_another_kind_is_hardly_behind() -> None:
    close = swept(lam1={"enc_self": ONE, "dec_self": [[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]], "dec_enc": FULL})
    found = claims.encoder_fewest(close)
    assert (found.ours, found.of, verdict("encoder_fewest", close)) == (1, 1, "unclear")


def test_p_values_of_kinds_take_all_models_at_once() -> None:
    """The same heads left in each of five models are one observation and not five."""
    kinds = {"enc_self": [[1, 0], [0, 1]], "dec_self": [[1, 0], [1, 1]], "dec_enc": [[1, 1], [1, 1]]}
    one, five = swept(lam1=kinds), swept(**{f"lam{number}": kinds for number in range(1, 6)})
    for name in ("source_over_self", "self_over_encoder", "encoder_fewest"):
        assert claims.PRUNING_CLAIMS[name](one).p_value == claims.PRUNING_CLAIMS[name](five).p_value


def test_shares_of_two_kinds_are_nearly_equal_or_not() -> None:
    same, all_but_one = [[1, 0] * 20] * 3, [[1] * 39 + [0]] * 3
    full, none = [[1] * 40] * 3, [[0] * 40] * 3
    found = swept(lam1={"enc_self": none, "dec_self": full, "dec_enc": full},
                  lam2={"enc_self": all_but_one, "dec_self": full, "dec_enc": all_but_one})  # fmt: skip
    assert claims.nearly_equal(found, "dec_self", "dec_enc").ours == pytest.approx(0.5 / 40)
    assert claims.nearly_equal(found, "dec_self", "enc_self").ours == pytest.approx((1 + 1 / 40) / 2)
    assert [verdict(name, found) for name in ("self_near_source", "self_near_encoder")] == ["yes", "no"]
    swapped = swept(lam1={"enc_self": full, "dec_self": all_but_one, "dec_enc": none})
    assert [verdict(name, swapped) for name in ("self_near_source", "self_near_encoder")] == ["no", "yes"]
    half = swept(lam1={"enc_self": same, "dec_self": same, "dec_enc": same})
    assert [verdict(name, half) for name in ("self_near_source", "self_near_encoder")] == ["unclear"] * 2


def test_either_sign_of_a_distance_counts() -> None:
    crossing = swept(lam1={"enc_self": FULL, "dec_self": FULL, "dec_enc": HALF},
                     lam2={"enc_self": FULL, "dec_self": HALF, "dec_enc": FULL})  # fmt: skip
    assert claims.nearly_equal(crossing, "dec_self", "dec_enc").ours == pytest.approx(0.5)


def layered(first: int, last: int, width: int = 8, layers: int = 6) -> list[list[int]]:
    """Layers with `first` heads left in the lowest two, `last` in the highest two and none in all others."""
    left = [first] * 2 + [0] * (layers - 4) + [last] * 2
    return [[1] * count + [0] * (width - count) for count in left]


def test_the_decoder_keeps_one_kind_below_and_the_other_above() -> None:
    asked = ("self_in_low_layers", "source_in_high_layers")
    low, high = layered(6, 1), layered(1, 6)
    as_paper = swept(lam1={"enc_self": high, "dec_self": low, "dec_enc": high})
    assert [verdict(name, as_paper) for name in asked] == ["yes", "yes"]
    assert [claims.PRUNING_CLAIMS[name](as_paper).ours for name in asked] == pytest.approx([5 / 8, 5 / 8])
    turned = swept(lam1={"enc_self": low, "dec_self": high, "dec_enc": low})
    assert [verdict(name, turned) for name in asked] == ["no", "no"]
    near = swept(lam1={"enc_self": low, "dec_self": layered(3, 2), "dec_enc": layered(2, 3)})
    assert [verdict(name, near) for name in asked] == ["unclear", "unclear"]


def test_layers_that_do_not_divide_by_three_are_the_first_and_the_last() -> None:
    left = swept(lam1={"enc_self": FULL, "dec_self": [[1, 1], [0, 0], [1, 0], [0, 0]], "dec_enc": [[0, 0]] * 4})
    assert claims.low_minus_high(left, "dec_self", sign=1).ours == 1
    assert claims.low_minus_high(left, "dec_enc", sign=-1).ours == 0


def test_models_that_lost_all_heads_or_none_tell_nothing_of_their_order() -> None:
    whole = swept(lam1={"enc_self": FULL, "dec_self": FULL, "dec_enc": FULL},
                  lam2={"enc_self": NONE, "dec_self": NONE, "dec_enc": NONE},
                  lam0={"enc_self": NONE, "dec_self": FULL, "dec_enc": FULL})  # fmt: skip
    asked = ("encoder_fewest", "source_over_self", "self_over_encoder", "self_near_source", "self_in_low_layers")
    assert [verdict(name, whole) for name in asked] == [""] * 5


def gates(between: int, of: int, lam: str = "0.1", kind: str = "gates") -> pd.DataFrame:
    rows = [{**run_of((kind, "all", lam)), "attention": "dec_enc", "layer": 0, "head": head,
             "strictly_between": int(head < between)} for head in range(of)]  # fmt: skip
    return pd.DataFrame(rows)


def test_gates_end_open_or_closed_unless_too_many_lie_between() -> None:
    def found(*parts: pd.DataFrame) -> Evidence:
        return replace(scored(("baseline", "", "", 1.0, [1.0], None)), gates=pd.concat(parts, ignore_index=True))

    control = gates(90, 100, lam="0")
    assert verdict("gates_between", found(gates(1, 100), gates(0, 100, lam="0.2"), control)) == "yes"
    assert claims.gates_between(found(gates(1, 100), gates(2, 100, lam="0.2"), control)).ours == pytest.approx(0.015)
    assert verdict("gates_between", found(gates(30, 100), control)) == "no"
    assert verdict("gates_between", found(gates(4, 100), control)) == "unclear"
    assert verdict("gates_between", found(control)) == ""
    assert verdict("gates_between", found(gates(0, 9, lam=""))) == "", "gates that were driven to a number of heads"


def test_draws_of_gates_are_draws_of_heads() -> None:
    """Ten lambdas of the same heads do not make the share ten times surer."""
    one, ten = gates(50, 100), pd.concat([gates(50, 100, lam=f"0.{number}") for number in range(1, 11)])
    wide, narrow = (replace(scored(("baseline", "", "", 1.0, [1.0], None)), gates=part) for part in (one, ten))
    assert claims.gates_between(wide).low == pytest.approx(claims.gates_between(narrow).low)
    assert claims.gates_between(wide).high - claims.gates_between(wide).low == pytest.approx(4 * 0.05, rel=0.15)


def test_specialised_heads_survive_or_not() -> None:
    roles = [["p", "s", "r", "", "", ""]] * 2
    rising = [[0.9, 0.8, 1.0, 0.1, 0.2, 0.0]] * 2
    for survival, answer in ((rising, "yes"), ([row[::-1] for row in rising], "no")):
        found = with_functions(heads_frame([[0] * 6] * 2, None, survival), {("baseline", "", ""): roles})
        assert verdict("specialised_last", found) == answer
    small = with_functions(heads_frame([[0] * 3], None, [[0.9, 0.1, 0.2]]), {("baseline", "", ""): [["p", "", ""]]})
    assert verdict("specialised_last", small) == "unclear"
