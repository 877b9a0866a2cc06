"""Metrics and significance tests for outputs: BLEU, chrF or ROUGE-L of text, accuracy of labels, cosine of vectors.

This module opens no files. S answers, N systems.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heads.base.bootstrap import ROUNDING, halved_sums, resampled_sums
from heads.base.names import AUTO, CHRF, ROUGE_L
from heads.translation.bleu import STATISTICS, bleu_of
from heads.translation.chrf import chrf_counts, chrf_of
from heads.translation.rouge import rouge_counts, rouge_of
from heads.translation.text_scores import bleu_statistics, tokeniser_of

Found = tuple[float, NDArray[np.float64]]
"""A score, and the score of each draw of sentences."""
Answers = Sequence[Any]
"""Outputs for one text: translations, labels, or vectors [D] of length 1."""
Paired = Callable[[Answers, Sequence[Answers], Answers, int], list[tuple[float, float]]]
"""Score and p-value against a baseline, for the baseline itself and each system; the last argument is the number of
draws."""
Values = Callable[[Answers, Answers], tuple[float, NDArray[np.float64]]]
"""The score of answers against references, and the value [S] of each answer that its t-test is on."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A way to score answers against references, from 0 to 100."""

    name: str
    """Its name in columns of tables."""
    paired: Paired
    drawn: Callable[[Answers, Answers, int], Found]
    """The score of answers and of the given number of draws, which depend only on the number of answers."""
    beside: Mapping[str, Paired] = field(default_factory=dict)
    """Additional scores of the same answers, by name."""
    tokeniser: str = AUTO
    """sacrebleu's tokeniser, for BLEU and ROUGE-L; AUTO: the one for the references that are scored."""

    def named(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Column names with BLEU's name replaced by this metric's."""
        return tuple(column.replace(BLEU.name, self.name) for column in columns)


def counted_bleu(hypotheses: Sequence[str], references: Sequence[str], tokeniser: str) -> NDArray[np.float32]:
    """The BLEU statistics of each sentence [S, C]."""
    rows = [list(row.values()) for row in bleu_statistics(hypotheses, references, tokeniser)]
    return np.array(rows, np.float32).reshape(len(rows), len(STATISTICS))


@dataclass(frozen=True, slots=True)
class Counting:
    """A score of text that follows from sums of counts of its sentences."""

    counted: Callable[[Sequence[str], Sequence[str], str], NDArray[np.float32]]
    """Counts [S, C] of outputs against references, cut by a tokeniser."""
    of: Callable[[NDArray[np.floating]], NDArray[np.float64]] = bleu_of
    """The scores of sums [..., C]."""
    rounding: float = ROUNDING
    """Scores that differ by less count as equal."""


COUNTED_BLEU = Counting(counted_bleu)
COUNTINGS = {
    "bleu": COUNTED_BLEU,
    CHRF: Counting(lambda said, right, _: chrf_counts(said, right), chrf_of),
    ROUGE_L: Counting(rouge_counts, rouge_of, rounding=1e-4),  # sums of shares in single precision are not exact
}
"""By the name of the metric."""


def paired_permutations(
    baseline: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    resamples: int,
    tokeniser: str = AUTO,
    by: Counting = COUNTED_BLEU,
) -> list[tuple[float, float]]:
    """Score and two-sided p-value against `baseline`, for the baseline itself and each system, see `swapped_p`."""
    tokeniser = tokeniser_of(references, tokeniser)
    own = by.counted(baseline, references, tokeniser)
    found = [(float(by.of(own.sum(0))), 1.0)]
    for texts in systems:
        # A masked head leaves most outputs unchanged; these are not counted again.
        changed = [number for number, (text, before) in enumerate(zip(texts, baseline, strict=True)) if text != before]
        counts = own.copy()
        counts[changed] = by.counted([texts[n] for n in changed], [references[n] for n in changed], tokeniser)
        found.append((float(by.of(counts.sum(0))), swapped_p(own, counts, resamples, by)))
    return found


def swapped_p(one: NDArray[np.float32], other: NDArray[np.float32], draws: int, by: Counting = COUNTED_BLEU) -> float:
    """Two-sided p-value of the difference of two systems' scores, from the counts [S, C] of their outputs.

    If the systems were equal, either could have produced each of a sentence's two outputs. In each draw a coin
    decides for each sentence whether the two are swapped; p is the share of draws in which the score differs at least
    as much as without swaps (approximate randomisation, Riezler and Maxwell 2005). The unswapped outputs count as a
    draw, so p is never below 1 / (draws + 1).
    """
    gains = other - one
    swapped = np.concatenate([np.zeros((1, gains.shape[1])), halved_sums(gains[gains.any(1)], draws)])
    differences = np.abs(by.of(other.sum(0) - swapped) - by.of(one.sum(0) + swapped))
    return float(np.mean(differences >= differences[0] - by.rounding))


def drawn_texts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    resamples: int,
    tokeniser: str = AUTO,
    by: Counting = COUNTED_BLEU,
) -> Found:
    """The score of outputs and of draws of them, which depend only on the number of outputs."""
    counts = by.counted(hypotheses, references, tokeniser)
    return float(by.of(counts.sum(0))), by.of(resampled_sums(counts, resamples))


def paired_t_test(values: Values) -> Paired:
    """Scores and their test: Student's t-test of the differences of single answers from the baseline."""

    def paired(
        baseline: Answers, systems: Sequence[Answers], references: Answers, _resamples: int
    ) -> list[tuple[float, float]]:
        """Score and p-value of the baseline, then of each system."""
        whole, own = values(baseline, references)
        others = [values(answers, references) for answers in systems]
        return [(whole, 1.0), *((score, t_test(other - own)) for score, other in others)]

    return paired


def t_test(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of Student's t-test of S differences against zero; 1 if all are zero or S < 2."""
    from scipy.stats import ttest_1samp  # takes a second to import

    if len(differences) < 2 or not differences.any():
        return 1.0
    if np.ptp(differences) == 0:
        return 0.0
    return float(ttest_1samp(differences, 0).pvalue)


def accuracy_values(labels: Answers, references: Answers) -> tuple[float, NDArray[np.float64]]:
    """Accuracy in percent, and 1 for each label that is right or 0 (Michel et al. 2019, Fig. 1b)."""
    right = np.array([label == wanted for label, wanted in zip(labels, references, strict=True)], float)
    return float(100 * right.mean()), right


def drawn_accuracy(labels: Answers, references: Answers, resamples: int) -> Found:
    """Accuracy in percent of all labels and of draws of them."""
    accuracy, right = accuracy_values(labels, references)
    return accuracy, 100 * resampled_sums(right[:, None].astype(np.float32), resamples)[:, 0] / len(right)


def cosine_values(vectors: Answers, references: Answers) -> tuple[float, NDArray[np.float64]]:
    """Mean cosine in percent, and the cosine of each vector with its reference; all vectors have length 1."""
    each: NDArray[np.float64] = 100 * (np.array(vectors, np.float64) * np.array(references, np.float64)).sum(1)
    return float(each.mean()), each


def drawn_cosine(vectors: Answers, references: Answers, resamples: int) -> Found:
    """Mean cosine in percent of all vectors and of draws of them."""
    mean, each = cosine_values(vectors, references)
    return mean, resampled_sums(each[:, None].astype(np.float32), resamples)[:, 0] / len(each)


def matthews_values(labels: Answers, references: Answers) -> tuple[float, NDArray[np.float64]]:
    """Matthews correlation, from -1 to 1, for any number of classes (Gorodkin 2004), and its pseudo-value by answer.

    The correlation is 0 if one side has only one distinct label. A single answer has none, so the t-test is applied to
    the jackknife's pseudo-values (Tukey 1958): S times the correlation of all answers minus S - 1 times that without
    this one. For accuracy they equal the answers themselves.
    """
    table, cells = _confusion(labels, references)
    number, whole, without = len(labels), _correlation(table), np.zeros(table.size)
    for cell in np.unique(cells):
        left = table.copy()
        left.flat[cell] -= 1
        without[cell] = _correlation(left)
    return whole, (number * whole - (number - 1) * without)[cells]


def _confusion(labels: Answers, references: Answers) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Counts [L, L] of each label with each reference, and the flat index [S] of each answer's cell in this table."""
    words = sorted({*labels, *references})
    numbers = {word: number for number, word in enumerate(words)}
    pairs = zip(labels, references, strict=True)
    cells = np.array([numbers[label] * len(words) + numbers[wanted] for label, wanted in pairs], np.int64)
    counts = np.bincount(cells, minlength=len(words) ** 2)
    return counts.reshape(len(words), len(words)).astype(float), cells


def _correlation(table: NDArray[np.float64]) -> float:
    """Matthews correlation of a table of labels and references; 0 if one side has only one distinct label."""
    total, predicted, wanted = table.sum(), table.sum(1), table.sum(0)
    spread = float(np.sqrt((total**2 - predicted @ predicted) * (total**2 - wanted @ wanted)))
    return float(table.trace() * total - predicted @ wanted) / spread if spread else 0.0


def labels_scored(labels: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Accuracy in percent and Matthews correlation; `majority` is the accuracy of the most frequent label alone."""
    most = max(references.count(word) for word in {*references})
    return {
        "examples": len(references),
        "accuracy": accuracy_values(labels, references)[0],
        "matthews": matthews_values(labels, references)[0],
        "majority": 100 * most / len(references),
    }


def text_metric(name: str, tokeniser: str) -> Metric:
    """BLEU, chrF or ROUGE-L of text that is cut by a tokeniser of sacrebleu."""
    by = COUNTINGS[name]
    paired = partial(paired_permutations, tokeniser=tokeniser, by=by)
    return Metric(name, paired, partial(drawn_texts, tokeniser=tokeniser, by=by), tokeniser=tokeniser)


def bleu_by(tokeniser: str) -> Metric:
    """BLEU of text that is cut by a tokeniser of sacrebleu."""
    return text_metric("bleu", tokeniser)


BLEU = bleu_by(AUTO)
ACCURACY = Metric(
    "accuracy", paired_t_test(accuracy_values), drawn_accuracy, {"matthews": paired_t_test(matthews_values)}
)
COSINE = Metric("cosine", paired_t_test(cosine_values), drawn_cosine)
"""Cosine with the vectors of the unpruned model, which are the references."""
