"""chrF and ROUGE-L of texts with their draws and p-values, against sacrebleu, slow definitions and all permutations."""

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from heads.analysis.metrics import text_metric
from heads.base.files import UserError
from heads.base.names import AUTO
from heads.translation.chrf import chrf_counts, chrf_of
from heads.translation.rouge import rouge_l, scorer
from heads.translation.scoring import metric_named

REFERENCES = ["the cat sat on the mat", "a dog sees 2 birds", "she sleeps", "no one was at home that day", "it rains",
              "we go home", "the old man reads a book", "birds sing in the morning"]  # fmt: skip
ONE = ["the cat sat on a mat", "a dog sees birds", "she sleeps", "no one is home", "rain", "we go", "the man reads",
       "the birds sing"]  # fmt: skip
OTHER = ["a cat on mat", "a dog sees 2 birds", "sleeps she", "no one at home that day", "it rains", "home we go",
         "the old book reads a man", "morning"]  # fmt: skip
ODD = [
    ("", "a b"),
    ("a b", ""),
    ("", ""),
    ("x", "y"),
    ("Äpfel und ß", "Äpfel, ß"),
    ("кот", "кот спит"),
    ("ab", "abcdefg"),
]


def slow_rouge(said: str, right: str) -> float:
    """The F-measure of the longest of all common subsequences, tried one by one."""
    ours, theirs = said.lower().split(), right.lower().split()
    best = 0
    for kept in product((False, True), repeat=len(ours)):
        some = [word for word, stays in zip(ours, kept, strict=True) if stays]
        left = iter(theirs)
        if all(word in left for word in some):
            best = max(best, len(some))
    return 2 * best / (len(ours) + len(theirs))


def of_rouge(texts: list[str], references: list[str]) -> float:
    """ROUGE-L by its definition."""
    return 100 * float(np.mean([slow_rouge(*pair) for pair in zip(texts, references, strict=True)]))


def of_chrf(texts: list[str], references: list[str]) -> float:
    """chrF by sacrebleu."""
    return float(CHRF().corpus_score(texts, [references]).score)


SCORES: dict[str, Callable[[list[str], list[str]], float]] = {"rouge_l": of_rouge, "chrf": of_chrf}


def test_chrf_of_summed_counts_is_sacrebleus_of_the_texts_however_odd() -> None:
    for pairs in (ODD, list(zip(ONE, REFERENCES, strict=True)), *([pair] for pair in ODD)):
        said, right = (list(texts) for texts in zip(*pairs, strict=True))
        assert float(chrf_of(chrf_counts(said, right).sum(0))) == pytest.approx(of_chrf(said, right), abs=1e-6), pairs


def test_rouge_l_is_that_of_the_longest_common_subsequence_and_in_english_that_of_the_package() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    found = rouge_l(OTHER, REFERENCES, AUTO)
    assert found["rouge_l"] == pytest.approx(of_rouge(OTHER, REFERENCES), abs=1e-4)
    assert "cut:words" in found["signature"] and "rouge-score:" in found["signature"]
    odd = ["It's 3.5 %, isn't it?", "THE cat; the dog -- and I"]
    theirs = [RougeScorer(["rougeL"]).score(one, two)["rougeL"].fmeasure for one, two in (odd, odd[::-1])]
    assert rouge_l(odd[::-1], odd, AUTO)["rouge_l"] == pytest.approx(100 * np.mean(theirs), abs=1e-4)


def test_words_of_other_alphabets_count_and_text_without_blanks_is_cut_as_for_bleu() -> None:
    assert rouge_l(["кот спит дома"], ["Кот спит"], AUTO)["rouge_l"] == pytest.approx(80)
    assert rouge_l(["Müller fährt"], ["Müller kommt"], AUTO)["rouge_l"] == pytest.approx(50)
    chinese = rouge_l(["我喜欢猫"], ["我喜欢狗"], AUTO)
    assert chinese["rouge_l"] == pytest.approx(75) and "cut:zh" in chinese["signature"]
    assert rouge_l(["a b"], ["a c"], "char")["rouge_l"] == pytest.approx(50)
    assert rouge_l(["", ".", "!"], ["a b", "!", "a"], AUTO)["rouge_l"] == pytest.approx(100 / 3)


@pytest.mark.parametrize("name", [*SCORES])
def test_p_values_are_those_of_all_ways_to_swap_lines(name: str) -> None:
    score = SCORES[name]

    def difference(swaps: tuple[bool, ...]) -> float:
        rows = [(b, a) if swap else (a, b) for a, b, swap in zip(ONE, OTHER, swaps, strict=True)]
        one, other = ([*text] for text in zip(*rows, strict=True))
        return abs(score(other, REFERENCES) - score(one, REFERENCES))

    observed, *others = [difference(swaps) for swaps in product((False, True), repeat=len(ONE))]
    exact = float(np.mean([1, *(value > observed - 1e-4 for value in others)]))
    assert 0.05 < exact < 0.95
    (own, alone), (found, p_value) = text_metric(name, AUTO).paired(ONE, [OTHER], REFERENCES, 20000)
    assert [own, found] == pytest.approx([score(text, REFERENCES) for text in (ONE, OTHER)], abs=1e-3) and alone == 1
    assert p_value == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 20000) ** 0.5)


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer.cache_clear()
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    assert [metric_named(name) for name in ("bleu", "chrf")] == ["bleu", "chrf"]
    with pytest.raises(UserError, match=r"^ROUGE-L needs .*: pip install 'heads\[rouge\]', or choose --metric chrf\.$"):
        metric_named("rouge-l")
    with pytest.raises(UserError, match="no metric rouge: choose one of bleu, chrf, rouge-l"):
        metric_named("rouge")


@pytest.mark.parametrize("name", [*SCORES])
def test_draws_are_of_sentences_the_same_for_every_system(name: str) -> None:
    metric = text_metric(name, AUTO)
    whole, draws = metric.drawn(ONE, REFERENCES, 2000)
    assert whole == pytest.approx(SCORES[name](ONE, REFERENCES), abs=1e-3) and len(draws) == 2000
    assert metric.drawn(REFERENCES, REFERENCES, 9)[1] == pytest.approx(np.full(9, 100))
    halves = [right if number % 2 else "zzz" for number, right in enumerate(REFERENCES)]
    _, other = metric.drawn(halves, REFERENCES, 2000)
    assert np.corrcoef(draws, other)[0, 1] > -0.9 and np.std(other) > np.std(draws) > 0
    if name == "rouge_l":
        # Half of eight sentences are right: the share of right ones drawn is binomial.
        assert np.std(other) == pytest.approx(100 * (0.25 / 8) ** 0.5, rel=0.05)
        assert {round(float(value) * 8 / 100, 3) for value in other} <= set(range(9))
