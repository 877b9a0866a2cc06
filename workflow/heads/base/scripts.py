"""The script that a text is written in, and its number of words even where no blanks separate them.

Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan and a few others put no blanks between words; Korean does. Each
letter of such a script is one unit, and so is each run of other letters. A text is in the commonest of these scripts or
in Korean's if a quarter of its units are: Chinese text has English names, and some of its lines may be English.
"""

import re
from collections import Counter
from collections.abc import Iterable

HAN, KANA, OTHER_UNSPACED, HANGUL, OTHER = "han", "kana", "other_unspaced", "hangul", "other"
UNSPACED = (HAN, KANA, OTHER_UNSPACED)
"""The scripts without blanks between words."""
BLOCKS = {
    HAN: r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3100-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\U00020000-\U0003ffff",
    KANA: r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f",
    # Thai to Burmese, Khmer, Tai Le and New Tai Lue, Tai Tham, Balinese, Yi, Javanese, Burmese and Tai Viet
    OTHER_UNSPACED: r"\u0e00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua000-\ua4cf\ua980-\ua9ff"
    r"\uaa60-\uaadf",
    HANGUL: r"\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc",
}
"""Blocks of Unicode, as a part of a regular expression's set of characters."""
LETTER = r"[^\W\d_]"
NOT_SPACED = "".join(BLOCKS[script] for script in UNSPACED)
UNSPACED_LETTER = re.compile(rf"[{NOT_SPACED}](?<={LETTER})")
UNIT = re.compile(
    "|".join(
        [
            *(rf"(?P<{script}>(?={LETTER})[{BLOCKS[script]}])" for script in UNSPACED),
            rf"(?P<{HANGUL}>[{BLOCKS[HANGUL]}]+)",
            rf"(?P<{OTHER}>(?:(?![{NOT_SPACED}{BLOCKS[HANGUL]}]){LETTER})+)",
        ]
    )
)
LEAST_SHARE = 0.25
KANA_SHARE = 0.1
"""Text in Han letters and at least this share of kana is Japanese; Chinese has them in names at most."""
LETTERS_PER_WORD = 2
"""Letters of an unspaced script that stand for a word: in the texts of Django's interface, an English word has 1.3
letters in Chinese, 2.4 in Japanese and Khmer, and 2.8 in Thai (medians)."""


def script_of(lines: Iterable[str]) -> str:
    """The script of a text; HAN is Chinese, and KANA is Japanese, which has Han letters too."""
    return _script(_units(lines))


def is_unspaced(text: str) -> bool:
    """Whether a text is written without blanks between its words."""
    # Every line of a corpus comes by here, and most have no such letter.
    return not text.isascii() and UNSPACED_LETTER.search(text) is not None and script_of([text]) in UNSPACED


def words_in(line: str) -> int:
    """Number of words between blanks, or about as many as another language would have, if the line is unspaced."""
    if not is_unspaced(line):
        return len(line.split())
    units = _units([line])
    letters = sum(units[script] for script in UNSPACED)
    return units.total() - letters + -(-letters // LETTERS_PER_WORD)


def _units(lines: Iterable[str]) -> Counter[str]:
    return Counter(str(unit.lastgroup) for line in lines for unit in UNIT.finditer(line))


def _script(units: Counter[str]) -> str:
    japanese = units[HAN] + units[KANA]
    east_asian = KANA if units[KANA] >= KANA_SHARE * japanese else HAN
    number = {east_asian: japanese, OTHER_UNSPACED: units[OTHER_UNSPACED], HANGUL: units[HANGUL]}
    commonest = max(number, key=lambda script: number[script])
    return commonest if number[commonest] > 0 and number[commonest] >= LEAST_SHARE * units.total() else OTHER
