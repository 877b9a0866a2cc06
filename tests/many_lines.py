"""Lines in many scripts, real and made up, the same at every call: what tokenisers are compared on."""

import unicodedata
from functools import cache
from itertools import islice

import numpy as np

from heads.corpus.grammar import stream

SCRIPTS = {
    "Chinese and Japanese": [
        *"的一是不了人我在有他这中大来上国日本語をたしのにはがでもてカタナビルー東京。，、！？「」"
    ],
    "Arabic": [*"ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأإة", "\u0651", "\u064e", "\u064f", "لا", "،", "؟", "٣"],
    "Hindi": [*"अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", *"\u093e\u093f\u0940\u094d\u0902।", "क्ष"],
    "German in parts": [*"abcdefghijklmnoprstuvwz", "a\u0308", "o\u0308", "u\u0308", "ß", "ẞ", "é", "e\u0301"],
}
ODD = (
    *(" ", "  ", "\t", "\u00a0", "\u3000", "\u2009", "\u200b", "\u200d", "\ufeff", "\u2581", "\u00ad"),
    *("☃", "😀", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "ﬁ", "Ａ", "ｶﾞ", "½", "№", "㍿", "①", "™", "…", "ſ", "İ", "\u0301"),
    *("en_XX", "__de__", "deu_Latn", "</s>", "<mask>", "<unk>", ">>de<<", "<0x41>", "<pad>", "<s>"),
    *("cat", "Haus", ".", "!", "'s", "123"),
)
"""Blanks, signs and names that tokenisers treat in ways of their own."""


@cache
def lines() -> tuple[str, ...]:
    """1,000 lines: 250 each of English and Russian by the grammar, 75 in each of four scripts, and 200 odd ones."""
    draw = np.random.default_rng(7)
    pairs = [*islice(stream(3, with_trees=False), 250)]
    made = [line for pair in pairs for line in (pair.source, pair.target)]
    for signs in SCRIPTS.values():
        for _ in range(75):
            words = ["".join(draw.choice(signs, draw.integers(1, 9))) for _ in range(draw.integers(1, 8))]
            made.append(" ".join(words))
    words = [*ODD, *made[0].split(), *made[1].split(), *made[600].split()]
    made += ["".join(draw.choice(words, draw.integers(1, 12))) for _ in range(200)]
    assert len(made) == 1000
    return tuple(made)


def composed() -> tuple[str, ...]:
    """Those of the lines that no normaliser changes."""
    return tuple(line for line in lines()[:800] if unicodedata.normalize("NFKC", line) == line)


LINES = [
    f"{what} {animal} {does} {where} ."
    for what in ("a small", "the old", "a white")
    for animal in ("dog", "cat", "house")
    for does in ("sees", "stands", "barks")
    for where in ("here", "near the river")
]
"""54 sentences of the words that tiny models know."""
