"""Accuracy with Student's t-test and its resampling, and Matthews' correlation, against their definitions."""

import math

import numpy as np
import pytest

from heads.analysis.metrics import ACCURACY, BLEU, labels_scored, matthews_values, t_test
from heads.base.bootstrap import resampled_sums

WANTED = ["yes", "no", "no", "maybe", "yes", "no", "yes", "maybe", "no", "no", "yes"]


def answers(wrong: set[int]) -> list[str]:
    """The correct labels except at the given positions."""
    return ["never" if number in wrong else label for number, label in enumerate(WANTED)]


@pytest.mark.parametrize(("t", "freedom", "p_value"), [(2.262157, 9, 0.05), (3.249836, 9, 0.01), (12.706205, 1, 0.05)])
def test_p_values_are_those_of_printed_tables_of_the_t_distribution(t: float, freedom: int, p_value: float) -> None:
    number = freedom + 1
    spread = np.array([1.0, -1.0] * (number // 2))
    standard_error = spread.std(ddof=1) / math.sqrt(number)
    assert t_test(spread + t * standard_error) == pytest.approx(p_value, rel=1e-5)
    assert t_test(-spread - t * standard_error) == pytest.approx(p_value, rel=1e-5)


def test_accuracy_is_tested_on_the_differences_of_single_answers() -> None:
    baseline, better, other = answers({0, 1, 2}), answers({0, 1}), answers({3, 4, 5})
    (own, of_own), (first, p_first), (second, p_second) = ACCURACY.paired(baseline, [better, other], WANTED, 0)
    assert (own, first, second) == pytest.approx((800 / 11, 900 / 11, 800 / 11)) and of_own == 1.0
    # One difference of 11 is 1: its mean equals its own standard error.
    density = np.linspace(-1.0, 1.0, 200_001)
    inside = np.trapezoid((1 + density**2 / 10) ** -5.5, density)
    whole = math.sqrt(10 * math.pi) * math.gamma(5) / math.gamma(5.5)
    assert p_first == pytest.approx(1 - inside / whole, rel=1e-6)
    assert p_second == 1.0


def test_the_same_answers_never_differ() -> None:
    assert ACCURACY.paired(answers({1}), [answers({1})], WANTED, 0)[1][1] == 1.0


def test_a_difference_in_every_answer_has_no_chance() -> None:
    assert t_test(np.full(9, 1.0)) == 0.0
    assert t_test(np.array([1.0])) == 1.0, "one answer tells nothing"


def test_draws_of_accuracy_are_means_of_drawn_answers() -> None:
    score, drawn = ACCURACY.drawn(answers({2, 5}), WANTED, 50)
    right = np.array([number not in (2, 5) for number in range(11)], np.float32)
    both = resampled_sums(np.stack([right, np.ones(11, np.float32)], 1), 50)
    assert score == pytest.approx(900 / 11)
    np.testing.assert_allclose(drawn, 100 * both[:, 0] / both[:, 1])


def matthews(labels: list[str], references: list[str]) -> float:
    return matthews_values(labels, references)[0]


def test_matthews_of_two_classes_is_the_correlation_of_the_confusion_matrix() -> None:
    told = ["a", "a", "b", "b", "b", "a", "b"]
    wanted = ["a", "b", "b", "b", "a", "a", "b"]
    tp, tn, fp, fn = 2, 3, 1, 1
    expected = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews(told, wanted) == pytest.approx(expected)


def test_matthews_of_three_classes_is_gorodkins_covariance() -> None:
    told = ["a", "b", "c", "c", "a", "b", "c", "a"]
    wanted = ["a", "b", "b", "c", "a", "a", "c", "c"]
    words = ["a", "b", "c"]
    table = np.array([[sum(pair == (x, y) for pair in zip(told, wanted, strict=True)) for y in words] for x in words])
    total, right = table.sum(), table.trace()
    rows, columns = table.sum(1), table.sum(0)
    expected = (right * total - rows @ columns) / math.sqrt((total**2 - rows @ rows) * (total**2 - columns @ columns))
    assert matthews(told, wanted) == pytest.approx(expected)
    assert matthews(["a"] * 8, wanted) == 0.0 and matthews(wanted, wanted) == pytest.approx(1.0)


def phi(labels: list[str], wanted: list[str]) -> float:
    """Pearson's correlation of two labels as zeros and ones, which equals Matthews'."""
    one, other = ([float(label == "a") for label in side] for side in (labels, wanted))
    return float(np.corrcoef(one, other)[0, 1])


def test_correlation_is_tested_on_what_it_would_be_without_each_answer() -> None:
    wanted = [*"aabbbabbabba"]
    baseline, system = [*"aabbbabbabab"], [*"abbbaabbaaab"]
    (own, of_own), (other, p_value), same = ACCURACY.beside["matthews"](baseline, [system, baseline], wanted, 0)
    assert (own, other) == pytest.approx((phi(baseline, wanted), phi(system, wanted))) and of_own == 1.0
    differences = []
    for number in range(12):
        kept = [place for place in range(12) if place != number]
        change = [12 * phi(labels, wanted) for labels in (baseline, system)]
        for side, labels in enumerate((baseline, system)):
            change[side] -= 11 * phi([labels[place] for place in kept], [wanted[place] for place in kept])
        differences.append(change[1] - change[0])
    assert p_value == pytest.approx(t_test(np.array(differences))) and 0.01 < p_value < 0.9
    assert same == (own, 1.0)


def test_of_three_labels_each_answer_is_left_out_once() -> None:
    told, other = ["a", "b", "c", "c", "a", "b", "c", "a", "never"], [*"abbcacccb"]
    wanted = [*"abbcaacca"]
    values = []
    for labels in (told, other):
        without = [matthews(labels[:n] + labels[n + 1 :], wanted[:n] + wanted[n + 1 :]) for n in range(9)]
        values.append(9 * matthews(labels, wanted) - 8 * np.array(without))
    assert ACCURACY.beside["matthews"](told, [other], wanted, 0)[1][1] == pytest.approx(t_test(values[1] - values[0]))


def test_a_score_tells_what_the_likeliest_label_alone_would_have() -> None:
    score = labels_scored(answers({0}), WANTED)
    assert (score["examples"], score["majority"]) == (11, pytest.approx(500 / 11))
    assert score["accuracy"] == pytest.approx(1000 / 11)


def test_columns_are_named_after_the_metric() -> None:
    columns = ("layer", "bleu", "bleu_change_oracle")
    assert ACCURACY.named(columns) == ("layer", "accuracy", "accuracy_change_oracle")
    assert BLEU.named(columns) == columns
