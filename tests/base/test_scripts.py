"""Scripts of texts: which letters of Unicode belong to one without blanks, and how many words such a text has."""

import re
import sys
import unicodedata

import pytest

from heads.base.scripts import HAN, HANGUL, KANA, OTHER, OTHER_UNSPACED, UNSPACED, is_unspaced, script_of, words_in

NAMES = {
    HAN: r"CJK|IDEOGRAPHIC|VERTICAL IDEOGRAPHIC|BOPOMOFO",
    KANA: r"HIRAGANA|KATAKANA|KATAKANA-HIRAGANA|HENTAIGANA|HALFWIDTH KATAKANA|HALFWIDTH KATAKANA-HIRAGANA",
    HANGUL: r"HANGUL|HALFWIDTH HANGUL",
    OTHER_UNSPACED: r"THAI|LAO|KHMER|MYANMAR|TIBETAN|TAI|NEW TAI|YI|JAVANESE|BALINESE",
}
TEXTS = {
    "zh-Hans": ("今天的天气很好，我们去公园散步吧。", HAN),
    "zh-Hant, with English names": ("我們在 GitHub Actions 上部署 Kubernetes。", HAN),
    "zh, segmented": ("今天 的 天气 很 好 。", HAN),
    "yue": ("佢哋今日唔喺屋企。", HAN),
    "zh, with a Japanese letter": ("鲜の每日是一家饮料公司，在很多城市都有它的商店。", HAN),
    "ja": ("東京都は日本の首都です。", KANA),
    "ja, in katakana": ("コーヒーとケーキ", KANA),
    "ja, half as wide": ("ｶﾀｶﾅ", KANA),
    "ko": ("나는 고양이를 아주 좋아합니다.", HANGUL),
    "ko, with English names": ("나는 Samsung 냉장고를 GitHub에서 좋아합니다", HANGUL),
    "th": ("ฉันชอบแมวตัวนี้มาก", OTHER_UNSPACED),
    "lo": ("ຂ້ອຍມັກແມວໂຕນີ້", OTHER_UNSPACED),
    "km": ("ខ្ញុំចូលចិត្តឆ្មានេះ", OTHER_UNSPACED),
    "my": ("ကျွန်တော် ဒီကြောင်ကို ကြိုက်တယ်။", OTHER_UNSPACED),
    "bo": ("བཀྲ་ཤིས་བདེ་ལེགས།", OTHER_UNSPACED),
    "en": ("The old cat sleeps.", OTHER),
    "en, with a Chinese name": ("The word 猫咪 means a small cat in Chinese.", OTHER),
    "ru": ("Кот спит.", OTHER),
    "hi": ("मुझे यह बिल्ली पसंद है।", OTHER),
    "ar": ("أنا أحب هذه القطة.", OTHER),
    "vi": ("Tôi thích con mèo này.", OTHER),
    "no letters": ("12 + 3 = 15 。", OTHER),
    "empty": ("", OTHER),
}  # fmt: skip


@pytest.mark.parametrize("which", TEXTS)
def test_a_text_is_of_the_script_that_it_is_written_in(which: str) -> None:
    text, script = TEXTS[which]
    assert script_of([text]) == script
    assert script_of(["", *text.split(), "!"]) == script
    assert is_unspaced(text) == (script in UNSPACED)


def test_every_letter_of_unicode_is_in_the_script_that_its_name_says() -> None:
    letters = [letter for letter in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(letter).startswith("L")]
    assert len(letters) > 100_000
    for letter in letters:
        name = unicodedata.name(letter, "")
        expected = next((script for script, names in NAMES.items() if re.match(rf"({names})\b", name)), OTHER)
        assert script_of([letter]) == expected, name


def test_lines_in_another_script_do_not_change_the_script_of_a_text() -> None:
    chinese = ["今天的天气很好。", "我们去公园散步吧。", "他们喜欢猫。"]
    english = ["The weather is fine today, so all of us go for a walk in the park."] * 2
    assert script_of([*chinese, *english]) == HAN
    assert script_of(["나는 고양이를 아주 좋아합니다."] * 3 + english[:1]) == HANGUL
    assert script_of([chinese[2], *english]) == OTHER


@pytest.mark.parametrize(
    ("line", "words"),
    [("The old cat sleeps.", 4), ("a  b", 2), ("나는 고양이를 좋아합니다", 3), ("", 0), ("12 - 3", 3), ("猫", 1),
     ("我们喜欢猫。", 3), ("我们喜欢 GitHub 的猫咪。", 4 + 1), ("The word 猫咪 means cat.", 5), ("ฉันชอบแมว", 4)],
)  # fmt: skip
def test_words_are_what_blanks_separate_and_two_letters_each_where_there_are_none(line: str, words: int) -> None:
    assert words_in(line) == words
