"""Claims about the unpruned model's heads, each where it is true, where it is not, and where nobody can tell."""

from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from heads.tables import claims_heads as claims
from heads.tables.evidence import Evidence
from heads.tables.reading import load_reference
from heads.tables.verdicts import TOO_FEW, Finding, holds
from made_evidence import Roles, driven, heads_frame, numbers, with_functions

BASELINE = ("baseline", "", "")
PAPER = load_reference("voita_claims.csv").set_index("id")


def found(identity: str, evidence: Evidence) -> Finding:
    if identity in claims.RELEVANCE_CLAIMS:
        return claims.RELEVANCE_CLAIMS[identity](evidence, "lrp")
    return claims.HEAD_CLAIMS[identity](evidence)


def verdict(identity: str, evidence: Evidence) -> str:
    return holds(found(identity, evidence), PAPER.loc[identity, "condition"], PAPER.loc[identity, "limit"])


def plain(heads: pd.DataFrame) -> Evidence:
    """Heads without any role."""
    layers = heads.groupby("layer").size()
    return with_functions(heads, {BASELINE: [[""] * size for size in layers]})


def agreeing(layers: int, heads: int, *odd: int) -> Evidence:
    """Relevance that equals confidence, except in `odd` layers, whose most relevant head is the least confident."""
    rising = [float(head) for head in range(heads)]
    turned = [float(heads), *rising[1:]]
    return plain(heads_frame([turned if layer in odd else rising for layer in range(layers)], [rising] * layers))


def test_relevance_agrees_but_for_one_head_of_the_first_layer() -> None:
    asked = ("top_heads_differ", "relevance_confidence", "without_exception", "exception_is_first")
    assert [verdict(name, agreeing(6, 8, 0)) for name in asked] == ["yes"] * 4
    assert [verdict(name, agreeing(6, 8, 3)) for name in asked] == ["yes"] * 3 + ["no"]
    assert [verdict(name, agreeing(6, 8, 0, 4)) for name in asked[:1]] == ["no"]
    assert [verdict(name, agreeing(3, 4, 0)) for name in (asked[0], asked[2])] == [TOO_FEW] * 2
    assert verdict("relevance_confidence", agreeing(2, 2)) == "unclear"
    down = heads_frame([[4, 3, 2, 1]] * 4, [[1, 2, 3, 4]] * 4)
    assert [verdict(name, plain(down)) for name in asked] == ["no"] * 4


def test_the_head_that_disturbs_most_is_found_and_left_out() -> None:
    evidence = plain(heads_frame([[1, 2, 3, 4], [9, 1, 2, 3]], [[1, 2, 3, 4], [0, 1, 2, 3]]))
    assert claims.exception(evidence.encoder, "lrp") == (4, pytest.approx(1))
    assert found("top_heads_differ", evidence).ours == 1
    assert claims.exception_is_first(evidence, "lrp").ours == 0


def test_a_first_layer_whose_disturbing_head_is_its_most_confident_one_is_no_exception() -> None:
    """The head is the most relevant too; what disturbs is that nothing else in its layer follows it."""
    heads = heads_frame([[9, 1, 2, 3]] + [[1, 2, 3, 4]] * 5, [[9, 3, 2, 1]] + [[1, 2, 3, 4]] * 5)
    assert found("exception_is_first", plain(heads)).ours == 0


def role_heads(relevance: Sequence[Sequence[float]], confidence: Sequence[Sequence[float]]) -> Evidence:
    """Four layers of four heads, of which the second is positional and the third syntactic."""
    return with_functions(heads_frame(relevance, confidence), {BASELINE: [["", "p", "s", ""]] * 4})


def test_roles_are_set_against_relevance_within_layers_and_against_confidence_over_all() -> None:
    """Layers differ in level so that the order over all heads would say the opposite of the order within layers."""
    within = [[10 * layer + value for value in (1, 9, 0, 2)] for layer in range(4)]
    evidence = role_heads(within, [[0.1, 0.9, 0.2, 0.3]] * 4)
    asked = ("positional_relevant", "syntactic_relevant", "positional_most_confident")
    assert [verdict(name, evidence) for name in asked] == ["yes", "no", "yes"]
    across = [[10 * layer + value for value in (1, 0, 9, 2)] for layer in range(4)]
    swapped = role_heads(across, [[0.9, 0.1, 0.2, 0.3]] * 4)
    assert [verdict(name, swapped) for name in asked] == ["no", "yes", "no"]
    one = with_functions(heads_frame([[0, 9, 1], [30, 20, 40]], [[0.1, 0.2, 0.1], [0.8, 0.7, 0.9]]),
                         {BASELINE: [["", "p", ""], ["", "", ""]]})  # fmt: skip
    assert found("positional_relevant", one).ours > 0 >= found("positional_most_confident", one).ours
    assert [verdict(name, plain(heads_frame([[1, 2, 3]]))) for name in asked] == [""] * 3


def with_confidence(confidence: Sequence[Sequence[float]], roles: Sequence[Sequence[str]]) -> Evidence:
    return with_functions(heads_frame(confidence, confidence), {BASELINE: roles})


def test_all_positional_heads_are_confident_or_not() -> None:
    few, roles = [[0.9, 0.1, 0.2, 0.3]] * 4, [["p", "s", "", ""]] * 4
    assert verdict("positional_confident", with_confidence(few, roles)) == "yes"
    expected = Finding(4, 4, low=4, high=4, chance=1 / 1820)
    assert astuple(found("positional_confident", with_confidence(few, roles))) == numbers(expected)
    assert verdict("positional_confident", with_confidence([[0.8, 0.9, 0.9, 0.9], *few[1:]], roles)) == "no"
    assert verdict("positional_confident", with_confidence(few, [["p", "p?", "", ""], *roles[1:]])) == "unclear"
    assert verdict("positional_confident", with_confidence([[0.9] * 4] * 4, roles)) == TOO_FEW
    assert verdict("positional_confident", with_confidence(few, [["s", "r", "", ""]] * 4)) == ""


def test_shares_of_heads_with_a_role_count_both_roles_and_leave_open_what_the_sentences_do() -> None:
    heads = heads_frame([[0] * 8] * 2)
    roles = [["ps", "s", *[""] * 6], ["", "p?", "r", "s", *[""] * 4]]
    evidence = with_functions(heads, {BASELINE: roles})
    assert found("positional_share", evidence) == Finding(1 / 16, low=1 / 16, high=2 / 16)
    assert found("syntactic_share", evidence) == Finding(3 / 16, low=3 / 16, high=3 / 16)
    assert [verdict(name, evidence) for name in ("positional_share", "syntactic_share")] == ["unclear", "yes"]
    swapped = with_functions(heads, {BASELINE: [["p", "p", "s", *[""] * 5], [""] * 8]})
    assert [verdict(name, swapped) for name in ("positional_share", "syntactic_share")] == ["yes", "no"]
    blind = with_functions(heads, {BASELINE: roles}, blind="syntactic")
    assert [verdict(name, blind) for name in ("positional_share", "syntactic_share")] == ["unclear", ""]


def test_a_rare_word_head_counts_for_no_other_role_though_it_may_have_one() -> None:
    evidence = with_functions(heads_frame([[0] * 3]), {BASELINE: [["rp?", "p", ""]]})
    assert found("positional_share", evidence) == Finding(1 / 3, low=1 / 3, high=1 / 3)
    assert evidence.with_role("rare") == ({(0, 0)}, {(0, 0)})


def test_rare_word_heads_are_counted_where_they_are() -> None:
    heads = heads_frame([[5, 1, 2, 0]] * 3)
    first = with_functions(heads, {BASELINE: [["r", "", "", ""], ["p"] * 4, ["r?", "", "", ""]]})
    asked = ("rare_heads", "rare_in_first_layer", "rare_most_relevant")
    assert [verdict(name, first) for name in asked] == ["yes", "unclear", TOO_FEW]
    assert astuple(found("rare_in_first_layer", first)) == numbers(Finding(1, 1, low=0, high=1, chance=4 / 12))
    assert found("rare_most_relevant", first) == Finding(1, 1, chance=0.25)
    last = with_functions(heads, {BASELINE: [["", "r", "", ""], [""] * 4, ["r", "", "", ""]]})
    assert [found(name, last).ours for name in asked] == [2, 1, 0]
    assert [verdict(name, last) for name in asked[1:]] == ["no", "no"]
    none = with_functions(heads, {BASELINE: [["r?", "", "", ""], ["p"] * 4, [""] * 4]})
    assert [verdict(name, none) for name in asked] == ["unclear", "", ""]
    assert verdict("rare_heads", with_functions(heads, {BASELINE: [[""] * 4] * 3})) == "no"
    assert verdict("rare_heads", with_functions(heads, {BASELINE: [[""] * 4] * 3}, blind="rare")) == ""
    only_last = with_functions(heads, {BASELINE: [[""] * 4] * 2 + [["r", "", "", ""]]})
    assert [verdict(name, only_last) for name in asked[1:]] == ["no", ""]


def hits(*rows: tuple[int, str, float]) -> Evidence:
    """Heads by layer, what they point at, and in what share of cases."""
    frame = pd.DataFrame(
        [{"kind": "baseline", "role": "rare", "layer": layer, "head": number, "name": name, "accuracy": share,
          "low": share - 0.05, "high": share + 0.04} for number, (layer, name, share) in enumerate(rows)]
    )  # fmt: skip
    return replace(plain(heads_frame([[1.0]])), roles=frame)


def test_the_best_head_of_the_first_layer_points_at_rare_subwords_so_often() -> None:
    one, two = "rarest", "one of two rarest"
    often = hits((0, one, 0.8), (0, one, 0.2), (0, two, 0.9), (1, one, 0.95))
    assert astuple(found("rarest", often)) == numbers(Finding(0.8, low=0.75, high=0.84))
    assert [verdict(name, often) for name in ("rarest", "two_rarest", "two_rarest_wmt")] == ["yes", "yes", "yes"]
    seldom = hits((0, one, 0.3), (0, two, 0.6), (2, one, 0.9), (2, two, 0.95))
    assert [verdict(name, seldom) for name in ("rarest", "two_rarest", "two_rarest_wmt")] == ["no", "no", "yes"]
    assert verdict("two_rarest_wmt", hits((0, two, 0.52))) == "unclear"
    assert verdict("rarest", hits((1, one, 0.9))) == ""


def relations(*rows: tuple[str, float, float, float, float, int]) -> Evidence:
    """Relations by name, accuracy, its interval, baseline and whether the role is held (0 no, 1 yes, 2 perhaps)."""
    columns = ("name", "accuracy", "low", "high", "baseline", "holds")
    frame = pd.DataFrame(rows, columns=columns)
    excess = np.where(frame["holds"] > 0, 0.1, -0.1)
    facts = {"kind": "baseline", "role": "syntactic", "cases": 9, "excess_high": excess, "holds": frame["holds"] % 2}
    return replace(plain(heads_frame([[1.0]])), roles=frame.assign(**facts))


def test_relations_are_beaten_by_their_best_heads() -> None:
    two = relations(("obj", 0.2, 0.1, 0.3, 0.5, 0), ("obj", 0.7, 0.6, 0.8, 0.5, 1), ("amod", 0.6, 0.55, 0.7, 0.4, 1))
    assert found("relations_beaten", two) == Finding(2, 2, low=2, high=2)
    assert verdict("relations_beaten", two) == "yes"
    near = relations(("obj", 0.6, 0.4, 0.8, 0.5, 0), ("amod", 0.6, 0.55, 0.7, 0.4, 1))
    assert found("relations_beaten", near) == Finding(2, 2, low=1, high=2)
    assert verdict("relations_beaten", near) == "unclear"
    lost = relations(("obj", 0.3, 0.2, 0.4, 0.5, 0), ("amod", 0.6, 0.55, 0.7, 0.4, 1))
    assert (found("relations_beaten", lost), verdict("relations_beaten", lost)) == (Finding(1, 2, low=1, high=1), "no")
    assert verdict("relations_beaten", relations(("obj", np.nan, np.nan, np.nan, np.nan, 0))) == ""


def test_a_relation_may_have_several_heads() -> None:
    row = (0.7, 0.6, 0.8, 0.5)
    several = relations(("obj", *row, 1), ("obj", *row, 1), ("amod", *row, 1), ("amod", *row, 0))
    assert (found("several_heads", several), verdict("several_heads", several)) == (Finding(1, 2, low=1, high=1), "yes")
    perhaps = relations(("obj", *row, 1), ("obj", *row, 2), ("amod", *row, 0))
    assert verdict("several_heads", perhaps) == "unclear"
    assert verdict("several_heads", relations(("obj", *row, 1), ("amod", *row, 1))) == "no"
    assert verdict("several_heads", relations(("obj", *row, 0), ("amod", *row, 0))) == "no"


LARGE, SMALL, OTHER = (("pruned", "enc_self", lam) for lam in ("0.1", "0.2", "0.4"))
GONE: list[str | None] = [None] * 4


def test_functions_that_the_unpruned_model_has_are_looked_for_in_the_model_nearest_to_the_share() -> None:
    heads = heads_frame([[0] * 4] * 3)
    own: Roles = [["p", "p", "s", ""], [""] * 4, [""] * 4]
    small: Roles = [["p", None, "s", None], GONE, ["", "", None, None]]
    models: dict[tuple[str, ...], Roles] = {BASELINE: own, LARGE: own, SMALL: small}
    models[OTHER] = [["p", None, None, None], GONE, GONE]
    kept = with_functions(heads, models)
    assert astuple(found("functions_at_17_of_48", driven(kept))) == numbers(found("functions_at_17_of_48", kept))
    # Of two groups, two heads and one, in four of twelve: by inclusion and exclusion over what is missed.
    chance = 1 - (210 + 330 - 126) / 495
    assert astuple(found("functions_at_17_of_48", kept)) == numbers(Finding(2, 2, low=2, high=2, chance=chance))
    assert verdict("functions_at_17_of_48", kept) == TOO_FEW
    lost = with_functions(heads, {**models, SMALL: [["p", None, "", None], GONE, ["", "", None, None]]})
    assert verdict("functions_at_17_of_48", lost) == verdict("functions_at_17_of_48", driven(lost)) == "no"
    perhaps = with_functions(heads, {**models, SMALL: [["p", None, "s?", None], GONE, ["", "", None, None]]})
    assert (found("functions_at_17_of_48", perhaps).ours, verdict("functions_at_17_of_48", perhaps)) == (1, "unclear")
    none = with_functions(heads, {**models, BASELINE: [[""] * 4] * 3})
    assert verdict("functions_at_17_of_48", none) == ""


def test_functions_are_kept_against_the_odds_where_many_had_to_stay() -> None:
    """Four functions' worth of single heads in eight of forty-eight: chance is below a twentieth."""
    heads = heads_frame([[0] * 8] * 6)
    own = [["r", "p", "s", *[""] * 5], *[[""] * 8] * 5]
    left = [["r", "p", "s", *[None] * 5], *[["", *[None] * 7]] * 5]
    assert verdict("functions_at_17_of_48", with_functions(heads, {BASELINE: own, SMALL: left})) == "yes"


def test_functions_drift_onto_positional_heads_of_small_encoder_only_models() -> None:
    heads = heads_frame([[0] * 4] * 3)
    own: Roles = [["p", "p", "s", ""], ["s", "", "", ""], ["", "", "", ""]]
    alone: Roles = [["p", None, None, None], GONE, GONE]
    both: Roles = [["ps", "p", None, None], GONE, GONE]
    grown = with_functions(heads, {BASELINE: own, LARGE: own, SMALL: both, OTHER: alone})
    assert found("functions_drift", grown) == Finding(1 / 3, low=1 / 3, high=1 / 3)
    assert verdict("functions_drift", grown) == "yes"
    large = with_functions(heads, {BASELINE: own, LARGE: [*both[:1], *own[1:]], SMALL: alone})
    assert verdict("functions_drift", large) == "no"
    perhaps = with_functions(heads, {BASELINE: own, SMALL: [["ps?", "p", None, None], GONE, GONE]})
    assert found("functions_drift", perhaps) == Finding(0, low=0, high=0.5)
    assert verdict("functions_drift", perhaps) == "unclear"
    had = with_functions(heads, {BASELINE: [["ps", "p", "", ""], *own[1:]], SMALL: both})
    assert (found("functions_drift", had).ours, verdict("functions_drift", had)) == (0, "no")
    had_perhaps = with_functions(heads, {BASELINE: [["ps?", "ps?", "", ""], *own[1:]], SMALL: both})
    assert verdict("functions_drift", had_perhaps) == "unclear"
    nowhere = with_functions(heads, {BASELINE: own, SMALL: [[None, None, "s", None], GONE, GONE]})
    assert verdict("functions_drift", nowhere) == ""
    assert verdict("functions_drift", with_functions(heads, {BASELINE: own, SMALL: both}, blind="syntactic")) == ""
