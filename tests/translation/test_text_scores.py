"""BLEU by the tokeniser for the script of the references, in every place that computes it."""

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sacrebleu.metrics.bleu
import torch
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_none import NoneTokenizer

from heads.__main__ import main
from heads.analysis.metrics import bleu_by
from heads.base.files import UserError, read_json, read_tsv, write_json, write_lines, write_tsv
from heads.base.names import AUTO
from heads.config.trainings import TrainingSettings
from heads.model.folder import load_folder, save_folder
from heads.tables.labels import bleu_name
from heads.text.batches import Pairs
from heads.text.vocabulary import Tokens
from heads.training.evaluation import evaluation
from heads.translation.bleu import bleu_of
from heads.translation.stream import joined
from heads.translation.text_scores import _metric, bleu, bleu_statistics, tokeniser_of
from model_folders import SOURCE, Experiment, greedy, write_experiment

CHINESE = ["一只小狗看见了白色的房子。", "那个老人站在河边。", "我的猫叫得很响。", "谁在读我姐姐的书？"]
OTHERS = ["一只小狗看到了白色的大房子。", "那个老人坐在河的旁边。", "我的猫叫得不响。", "谁在读他姐姐的书？"]
LATIN = ["The dog sees a house.", "He stands near the river."]
IDENTICAL = {
    "zh": (CHINESE, "zh"),
    "zh-Hant": (["我們今天去公園散步。", "天氣很好。"], "zh"),
    "zh, with as many Latin lines": ([*CHINESE[:2], *LATIN], "zh"),
    "zh, with empty lines": (["", *CHINESE, " "], "zh"),
    "th": (["ฉันชอบแมวตัวนี้มาก", "สวัสดีครับ"], "char"),
    "lo": (["ຂ້ອຍມັກແມວໂຕນີ້"], "char"),
    "km": (["ខ្ញុំចូលចិត្តឆ្មានេះ"], "char"),
    "my": (["ကျွန်တော် ဒီကြောင်ကို ကြိုက်တယ်။"], "char"),
    "bo": (["བཀྲ་ཤིས་བདེ་ལེགས།"], "char"),
    "en": ([*LATIN, *LATIN, *LATIN, CHINESE[2]], "13a"),
    "ru": (["Кот спит на старом диване."], "13a"),
    "hi": (["मुझे यह बिल्ली बहुत पसंद है।"], "13a"),
}
JAPANESE, KOREAN = (
    ["東京都は日本の首都です。", "猫が好きです。"],
    ["나는 고양이를 아주 좋아합니다.", "안녕하세요 여러분."],
)


class Pairwise(NoneTokenizer):
    """Stands for MeCab: pairs of letters are words."""

    def signature(self) -> str:
        return "in pairs"

    def __call__(self, line: str) -> str:
        return " ".join(line[place : place + 2] for place in range(0, len(line), 2))


Installed = Callable[[type[NoneTokenizer] | None], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Set what sacrebleu finds as MeCab, if anything."""
    others = sacrebleu.metrics.bleu._get_tokenizer

    def missing() -> None:
        raise RuntimeError("\n\nJapanese tokenization requires extra dependencies.\n")

    def choose(tokeniser: type[NoneTokenizer] | None) -> None:
        _metric.cache_clear()
        chosen: dict[str, Any] = dict.fromkeys(("ja-mecab", "ko-mecab"), tokeniser or missing)
        monkeypatch.setattr(
            sacrebleu.metrics.bleu, "_get_tokenizer", lambda name: chosen[name] if name in chosen else others(name)
        )

    yield choose
    _metric.cache_clear()


@pytest.mark.parametrize("which", IDENTICAL)
def test_identical_text_has_100_by_the_tokeniser_of_its_script(which: str) -> None:
    lines, tokeniser = IDENTICAL[which]
    found = bleu(lines, lines)
    assert found["bleu"] == pytest.approx(100)
    assert f"|tok:{tokeniser}|" in found["signature"]
    assert tokeniser_of(lines) == tokeniser


@pytest.mark.parametrize(("lines", "name", "extra"), [(JAPANESE, "ja-mecab", "ja"), (KOREAN, "ko-mecab", "ko")])
def test_japanese_and_korean_are_cut_by_mecab_or_where_it_is_missing_into_characters_which_is_said(
    lines: list[str], name: str, extra: str, installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(Pairwise)
    assert tokeniser_of(lines) == name and "|tok:in pairs|" in bleu(lines, lines)["signature"]
    assert not capsys.readouterr().err
    installed(None)
    assert tokeniser_of(lines) == "char"
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "in characters" in said and f"'sacrebleu[{extra}]'" in said
    assert bleu(lines, lines)["bleu"] == pytest.approx(100) and "|tok:char|" in bleu(lines, lines)["signature"]


def test_a_tokeniser_that_is_named_is_used_or_refused_in_one_sentence(installed: Installed) -> None:
    assert "|tok:char|" in bleu(CHINESE, CHINESE, "char")["signature"]
    assert "|tok:13a|" in bleu(CHINESE, CHINESE, "13a")["signature"]
    assert bleu(CHINESE, CHINESE, "13a")["bleu"] == 0
    installed(None)
    for name, reason in (("ja-mecab", r"sacrebleu\[ja\]"), ("zho", "no tokeniser zho: choose one of .*13a")):
        with pytest.raises(UserError, match=reason) as caught:
            tokeniser_of(CHINESE, name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lines", [[""], ["", " "], ["1 + 2 ."]])
def test_references_without_letters_are_scored_as_sacrebleu_does_by_default(lines: list[str]) -> None:
    default = BLEU()
    assert bleu(["a b"] * len(lines), lines) == {
        "bleu": default.corpus_score(["a b"] * len(lines), [lines]).score, "signature": str(default.get_signature())
    }  # fmt: skip


def spaced(lines: list[str]) -> list[str]:
    """The same with a blank around each character, so that sacrebleu's default finds the tokens of Chinese."""
    return [" ".join(line) for line in lines]


def test_scores_intervals_and_p_values_are_those_of_text_with_blanks_between_characters() -> None:
    worse = [OTHERS[0], CHINESE[1], OTHERS[2], OTHERS[3]]
    rows = [[*row.values()] for row in bleu_statistics(OTHERS, CHINESE)]
    assert rows == [[*row.values()] for row in bleu_statistics(spaced(OTHERS), spaced(CHINESE), "13a")]
    chinese, english = bleu_by(AUTO), bleu_by("13a")
    one, other = chinese.drawn(OTHERS, CHINESE, 50), english.drawn(spaced(OTHERS), spaced(CHINESE), 50)
    assert 20 < one[0] < 90
    assert one[0] == other[0] and np.array_equal(one[1], other[1]) and one[1].std() > 1
    given = OTHERS, [worse, CHINESE], CHINESE, 199
    as_english = spaced(OTHERS), [spaced(worse), spaced(CHINESE)], spaced(CHINESE), 199
    assert chinese.paired(*given) == english.paired(*as_english)
    assert 0.01 < chinese.paired(*given)[2][1] < 0.9


def test_a_part_of_a_text_is_cut_as_the_whole() -> None:
    """Whose first lines are Latin; only these differ between the two systems."""
    references = [*LATIN, *CHINESE]
    other = ["The dog sees 一只小 house.", LATIN[1], *CHINESE]
    (_, _), (score, _) = bleu_by(AUTO).paired(references, [other], references, 9)
    assert score == pytest.approx(BLEU(tokenize="zh").corpus_score(other, [references]).score)
    assert score != pytest.approx(BLEU(tokenize="13a").corpus_score(other, [references]).score)


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """A model from English to Chinese."""
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny", target=CHINESE)


SEARCH = {"beam": 1, "length_penalty": 0.0, "batch_tokens": 40}
LONG = "The dog sees a white house near the old river and the tall tree on the hill"
SETTINGS = {
    "translate": {**SEARCH, "sentences": 3},
    "selection": {"at_least": {}, "resamples": 100},
    "ablation": {**SEARCH, "sentences": 3, "dev_sentences": 1, "resamples": 100},
}


def references_for(right: list[str]) -> list[str]:
    """Nine references, Chinese as a whole, of which the first three are nearly all Latin."""
    return [" ".join([LONG] * 5), LONG, right[2][:30], *(line * 9 for line in [*CHINESE, *OTHERS[:2]])]


def scores_of(experiment: Experiment, out: Path, references: list[str], named: str) -> dict[str, dict[str, str]]:
    """The row or score that each command writes, by its name; all score the same three translations."""
    told = SETTINGS | ({"tokenize": named} if named else {})
    write_json(out / "settings.yaml", told)
    write_lines(out / "references.txt", references)
    shape = load_folder(experiment.baseline).shape
    choice = [("lrp", "18", *head, 1) for head in shape.heads()]
    columns = ("method", "budget", "attention", "layer", "head", "open")
    write_tsv(out / "selection.tsv", [dict(zip(columns, row, strict=True)) for row in choice], columns)
    text = {
        "settings": out / "settings.yaml", "model": experiment.baseline, "device": "cpu",
        "source": experiment.bpe / "test.source.safetensors", "references": out / "references.txt",
        "target-bpe": experiment.bpe / "target.model",
    }  # fmt: skip
    run("score", **text, translations=out / "translations.txt", bleu=out / "bleu.json", statistics=out / "counts.tsv")
    run("masked", **text, selection=out / "selection.tsv", out=out / "chosen.tsv")
    run("ablation_out_of_domain", **text, masked=out / "alone.tsv")
    scored = out / "results/tiny/baseline/seed-1"
    save_folder(load_folder(experiment.baseline), scored, {"updates": 5, "total_updates": 5}, {})
    shutil.copyfile(out / "translations.txt", scored / "translations.txt")
    told_runs = {"settings": out / "settings.yaml", "baseline": scored, "references": out / "references.txt"}
    run("compared", **told_runs, runs=scored, out=out / "compared.tsv")
    (row,), (other,) = read_tsv(out / "chosen.tsv"), read_tsv(out / "compared.tsv")
    head = read_tsv(out / "alone.tsv")[0]
    whole = {"bleu": float(head["bleu"]) - float(head["bleu_change"])}
    return {"score": read_json(out / "bleu.json"), "masked": row, "compared": other, "ablation": whole}


def run(command: str, **flags: object) -> None:
    """Run a command that must succeed."""
    words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    assert main([command, *words]) == 0


@pytest.mark.parametrize(("named", "tokeniser"), [("", "zh"), ("char", "char")])
def test_every_stage_scores_by_the_tokeniser_of_all_references_or_the_one_that_settings_name(
    chinese: Experiment, tmp_path: Path, named: str, tokeniser: str
) -> None:
    right = greedy(chinese.baseline, [*SOURCE])
    references = references_for(right)
    assert (tokeniser_of(references[:3]), tokeniser_of(references)) == ("13a", "zh")
    found = scores_of(chinese, tmp_path, references, named)
    expected = BLEU(tokenize=tokeniser).corpus_score(right, [references[:3]]).score
    assert f"|tok:{tokeniser}|" in found["score"]["signature"]
    assert {name: float(one["bleu"]) for name, one in found.items()} == pytest.approx(
        dict.fromkeys(found, expected), abs=1e-3
    )
    others = {BLEU(tokenize=other).corpus_score(right, [references[:3]]).score for other in ("zh", "char", "13a")}
    assert len({round(score, 2) for score in others}) == 3
    counts = [[int(cell) for cell in row.values()] for row in read_tsv(tmp_path / "counts.tsv")]
    assert bleu_of(np.sum(counts, 0)) == pytest.approx(expected)


@pytest.mark.parametrize(("flags", "tokeniser"), [([], "zh"), (["--tokenize", "char"], "char")])
def test_a_person_is_told_bleu_by_the_tokeniser_of_the_references_or_the_one_that_is_named(
    chinese: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    flags: list[str],
    tokeniser: str,
) -> None:
    right = greedy(chinese.baseline, [*SOURCE])
    references = [f"{right[0]}。", *right[1:]]
    write_lines(tmp_path / "references.zh", references)
    given = "".join(f"{line}\n" for line in SOURCE).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
    words = ["translate", str(chinese.baseline), "--references", str(tmp_path / "references.zh")]
    assert main([*words, "--beam", "1", "--length-penalty", "0", "--device", "cpu", *flags]) == 0
    said = capfdbinary.readouterr().err.decode()
    expected = BLEU(tokenize=tokeniser).corpus_score(right, [references]).score
    assert said.startswith(f"BLEU {expected:.2f} nrefs:1|") and f"|tok:{tokeniser}|" in said


def test_a_tokeniser_that_cannot_be_loaded_is_refused_before_anything_is_translated(
    chinese: Experiment, tmp_path: Path, installed: Installed, capfd: pytest.CaptureFixture[str]
) -> None:
    installed(None)
    write_lines(tmp_path / "text.en", [*SOURCE] * 20)
    for command in ("inspect", "prune"):
        out = tmp_path / ("small" if command == "prune" else "heads.html")
        words = [command, str(chinese.baseline), str(tmp_path / "text.en"), "-o", str(out), "--tokenize", "ja-mecab"]
        assert main([*words, *(["--keep", "12"] if command == "prune" else [])]) == 1
        said = capfd.readouterr().err
        assert said.count("\n") == 1 and "'sacrebleu[ja]'" in said
    assert {path.name for path in tmp_path.iterdir()} == {"text.en"}


def test_dev_bleu_of_a_training_is_by_the_tokeniser_of_all_dev_references(chinese: Experiment) -> None:
    right = greedy(chinese.baseline, [*SOURCE])
    references = references_for(right)
    tokens, model = chinese.tokens(), load_folder(chinese.baseline)
    training = TrainingSettings(micro_batch_tokens=40, dev_bleu_sentences=3)
    target = Tokens.of(*chinese.vocabularies()[1].arrays(references))
    pairs = Pairs(tokens, target, 10000)
    told = evaluation(pairs, references, chinese.vocabularies()[1], training, torch.device("cpu"), model, None)
    expected = BLEU(tokenize="zh").corpus_score(right, [references[:3]]).score
    assert told["dev_bleu"] == pytest.approx(expected, abs=0.006)


def test_parts_of_a_long_sentence_are_joined_by_blanks_only_in_a_script_that_has_them() -> None:
    assert joined(["我们喜欢猫，", "他们也喜欢。"]) == "我们喜欢猫，他们也喜欢。"
    assert joined(["we like cats,", "so do they."]) == "we like cats, so do they."
    assert joined(["나는 고양이를", "좋아한다."]) == "나는 고양이를 좋아한다."
    assert joined([]) == ""


@pytest.mark.parametrize(
    ("against", "tokenisers", "name"),
    [("references", ["13a"], "BLEU"), ("references", ["zh", "13a", "zh"], "BLEU (zh)"),
     ("unpruned model", ["13a"], "BLEU (fidelity)"), ("unpruned model", ["zh"], "BLEU (fidelity, zh)"),
     ("references", ["ja-mecab-0.996-IPA"], "BLEU (ja-mecab-0.996-IPA)")],
)  # fmt: skip
def test_pictures_name_the_tokeniser_of_bleu_unless_it_is_the_default(
    against: str, tokenisers: list[str], name: str
) -> None:
    signatures = [f"nrefs:1|case:mixed|eff:no|tok:{tokeniser}|smooth:exp" for tokeniser in tokenisers]
    assert bleu_name(pd.DataFrame({"signature": signatures, "against": against})) == name
