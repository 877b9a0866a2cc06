"""ROUGE-L of plain text (Lin 2004) by the package rouge-score, which is loaded when it is first asked for.

The score of a sentence is the F-measure of the longest common subsequence of words, and that of a text their mean.
rouge-score's own words are runs of Latin letters and digits, so that a text in another alphabet has none. Here they
are runs of letters and digits of any alphabet, in small letters, which in English are the same; a text in a script
without blanks is cut by the tokeniser that BLEU has for it. Nothing is stemmed. Two texts without a word, of which the
package says 0, are alike: otherwise a model that writes nothing would differ from itself.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from heads.base.files import UserError
from heads.base.names import DEFAULT_TOKENISER
from heads.translation.text_scores import tokeniser_of

WORD = re.compile(r"[^\W_]+")


class Cut:
    """What rouge-score asks for the words of a text. tokeniser: sacrebleu's name of it; the default stands for WORD."""

    def __init__(self, tokeniser: str) -> None:
        self.cut = None if tokeniser == DEFAULT_TOKENISER else BLEU(tokenize=tokeniser).tokenizer

    def tokenize(self, text: str) -> list[str]:
        """The words of a text, in small letters."""
        return WORD.findall(text.lower()) if self.cut is None else str(self.cut(text.lower())).split()


@cache
def scorer(tokeniser: str) -> Any:
    """rouge-score's scorer. Raises UserError if the package is not installed."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ModuleNotFoundError as error:
        raise UserError(
            f"ROUGE-L needs {error.name}, which is not installed: pip install 'heads[rouge]', or choose --metric chrf."
        ) from error
    return RougeScorer(["rougeL"], tokenizer=Cut(tokeniser))


def rouge_counts(hypotheses: Sequence[str], references: Sequence[str], tokeniser: str) -> NDArray[np.float32]:
    """The F-measure of each sentence, and 1 [S, 2]; their sums give the score of a text. As `scorer`."""
    tokeniser = tokeniser_of(references, tokeniser)
    found, cut = scorer(tokeniser), Cut(tokeniser).tokenize
    rows = []
    for said, right in zip(hypotheses, references, strict=True):
        measure = found.score(right, said)["rougeL"].fmeasure
        rows.append((measure or float(not cut(said) and not cut(right)), 1.0))
    return np.array(rows, np.float32).reshape(len(rows), 2)


def rouge_of(sums: NDArray[np.floating]) -> NDArray[np.float64]:
    """ROUGE-L (0 to 100) from summed counts [..., 2] of sentences; 0 without a sentence."""
    measures, sentences = np.moveaxis(np.asarray(sums, float), -1, 0)
    return np.asarray(100 * np.divide(measures, sentences, out=np.zeros_like(measures), where=sentences > 0))


def rouge_l(hypotheses: Sequence[str], references: Sequence[str], tokeniser: str) -> dict[str, Any]:
    """ROUGE-L of a text (0 to 100), with a signature as BLEU has one. As `scorer`."""
    tokeniser = tokeniser_of(references, tokeniser)
    words = "words" if tokeniser == DEFAULT_TOKENISER else tokeniser
    score = rouge_of(rouge_counts(hypotheses, references, tokeniser).sum(0, dtype=np.float64))
    signature = f"nrefs:1|case:lc|cut:{words}|stem:no|measure:f1|rouge-score:{version('rouge-score')}"
    return {"rouge_l": float(score), "signature": signature}
