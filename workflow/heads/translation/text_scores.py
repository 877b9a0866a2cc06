"""BLEU and chrF of plain text by sacrebleu, with a tokeniser that fits the script of the references.

sacrebleu's default, 13a, cuts at blanks. In a language without them a sentence is then one token, and even a perfect
translation has no n-gram of four tokens and a BLEU of 0. The references alone decide on the tokeniser, so that all
models that are scored against them are scored alike.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from heads.base.files import UserError
from heads.base.names import AUTO, DEFAULT_TOKENISER
from heads.base.scripts import HAN, HANGUL, KANA, OTHER_UNSPACED, script_of
from heads.translation.bleu import ORDERS, STATISTICS

CHARACTERS = "char"
OF_SCRIPT = {HAN: "zh", KANA: "ja-mecab", HANGUL: "ko-mecab", OTHER_UNSPACED: CHARACTERS}
"""The tokeniser of each script; for all others it is sacrebleu's default."""
OPTIONAL = {"ja-mecab": ("Japanese", "ja"), "ko-mecab": ("Korean", "ko")}
"""Tokenisers that need packages of their own: their language, and sacrebleu's extra with these packages."""


def tokeniser_of(references: Sequence[str], named: str = AUTO) -> str:
    """The name of sacrebleu's tokeniser for a whole text of references: the one `named`, or that of their script.

    Japanese and Korean text is cut into characters if MeCab is not installed, which is said on standard error. Raises
    UserError for a named tokeniser that is unknown or cannot be loaded.
    """
    if named != AUTO:
        _metric(named)
        return named
    name = OF_SCRIPT.get(script_of(references), DEFAULT_TOKENISER)
    try:
        _metric(name)
    except UserError as error:
        print(f"BLEU is counted in characters, because {error}", file=sys.stderr)
        return CHARACTERS
    return name


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = AUTO) -> dict[str, Any]:
    """Corpus BLEU of detokenised text (0 to 100) by sacrebleu, with its signature.

    tokeniser: for part of a text, that of the whole by `tokeniser_of`.
    """
    tokeniser = tokeniser_of(references, tokeniser)
    return bleu_of_counts(bleu_statistics(hypotheses, references, tokeniser), tokeniser)


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = AUTO
) -> list[dict[str, int]]:
    """sacrebleu's counts for each sentence, as rows of `STATISTICS`; their sums give the corpus BLEU. As `bleu`."""
    metric = _metric(tokeniser_of(references, tokeniser))
    scores = [metric.corpus_score([text], [[right]]) for text, right in zip(hypotheses, references, strict=True)]
    counts = [(score.sys_len, score.ref_len, *score.counts, *score.totals) for score in scores]
    return [dict(zip(STATISTICS, row, strict=True)) for row in counts]


def bleu_of_counts(counts: Sequence[Mapping[str, int]], tokeniser: str) -> dict[str, Any]:
    """Corpus BLEU (0 to 100) by sacrebleu of sentences that `bleu_statistics` counted, with its signature."""
    metric = _metric(tokeniser)
    hypothesis, reference, *ngrams = np.sum([[row[name] for name in STATISTICS] for row in counts], 0).tolist()
    correct, total = ngrams[: len(ORDERS)], ngrams[len(ORDERS) :]
    score = metric.compute_bleu(correct, total, hypothesis, reference, metric.smooth_method, metric.smooth_value)
    return {"bleu": float(score.score), "signature": str(metric.get_signature())}


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Corpus chrF of detokenised text (0 to 100) by sacrebleu, with its signature."""
    metric = CHRF()
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return {"chrf": float(score.score), "chrf_signature": str(metric.get_signature())}


@cache
def _metric(tokeniser: str) -> BLEU:
    """BLEU by one of sacrebleu's tokenisers, kept because MeCab's dictionaries are slow to load."""
    if tokeniser not in BLEU.TOKENIZERS:
        raise UserError(f"sacrebleu has no tokeniser {tokeniser}: choose one of {', '.join(BLEU.TOKENIZERS)}.")
    try:
        return BLEU(tokenize=tokeniser)
    # sacrebleu raises bare exceptions, and even exits when a download fails.
    except (Exception, SystemExit) as error:
        if tokeniser in OPTIONAL:
            language, extra = OPTIONAL[tokeniser]
            reason, way_out = f"MeCab for {language} is not installed", f"pip install 'sacrebleu[{extra}]'"
        else:
            reason, way_out = " ".join(str(error).split()) or type(error).__name__, "run it where there is network"
        raise UserError(
            f"sacrebleu's tokeniser {tokeniser} cannot be loaded ({reason}): {way_out}, or choose another one."
        ) from error
