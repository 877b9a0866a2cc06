"""`heads inspect` and `heads prune` of text without blanks between words: its sentences, heads, maps and BLEU."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from explored_page import data_of
from heads.__main__ import main
from heads.analysis.ablation import gates_without
from heads.base.files import UserError, write_lines
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.model.folder import load_folder
from heads.one_model.answered_text import splits_of
from heads.one_model.inspecting import inspect
from heads.text.batches import pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import beam_search
from heads.translation.distilled import distinct
from model_folders import Experiment, greedy, write_experiment

LINES = [
    "".join([*words, "。"])
    for words in product(
        ("一只小", "那个老", "白色的"), ("狗", "猫", "房子"), ("看见", "站在", "叫着"), ("这里", "河边")
    )
]
"""54 sentences of 6 to 9 characters."""
LONG = LINES[0][:-1] * 30


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """A model from Chinese to Chinese."""
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny", source=LINES, target=LINES)


@pytest.mark.slow
def test_heads_are_measured_and_shown_and_what_they_cost_is_by_the_tokeniser_for_chinese(
    experiment: Experiment,
) -> None:
    text = LINES[::6]
    found = inspect(experiment.baseline, text, masked=len(text), device="cpu")
    (shown,) = data_of(found.html)
    assert shown["score"] == 100 and "|tok:zh|" in shown["signature"]
    assert shown["metric"]["name"] == "BLEU (fidelity, zh)"
    assert [one["words"] for one in shown["sentences"]] == [list(line) for line in text]
    assert found.heads.query("attention == 'enc_self'")["positional_accuracy"].notna().all()
    model, whole = load_folder(experiment.baseline), greedy(experiment.baseline, text)
    ids, mask = pad([np.append(ids, EOS) for ids in Vocabulary(experiment.bpe / "source.model").encode(text)])
    changes = set()
    for number in (0, 4, 13):
        gates = gates_without(model, [model.shape.heads()[number]])
        translated = beam_search(model, ids, mask, beam=1, length_penalty=0.0, gates=gates)
        without = Vocabulary(experiment.bpe / "target.model").decode(translated)
        change = BLEU(tokenize="zh").corpus_score(without, [whole]).score - 100
        row = found.heads.iloc[number]
        assert row["score_change"] == pytest.approx(change, abs=0.01)
        assert row["score_change_low"] - 0.01 <= change <= row["score_change_high"] + 0.01
        changes.add(round(change))
    assert len(changes) > 1


@pytest.mark.slow
def test_a_model_is_pruned_on_chinese_text_and_told_by_which_bleu(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(saved_bundle(experiment.baseline), tmp_path / "model")
    write_lines(tmp_path / "text.zh", LINES)
    words = ["prune", *map(str, (tmp_path / "model", tmp_path / "text.zh", "-o", tmp_path / "small"))]
    assert main([*words, "--keep", "12", "--by", "gates", "--updates", "4", "--device", "cpu"]) == 0
    held_out = splits_of(*distinct(LINES, experiment.vocabularies()[0]))["test"]
    wanted = greedy(tmp_path / "model", held_out)
    score = BLEU(tokenize="zh").corpus_score(greedy(tmp_path / "small", held_out), [wanted]).score
    told = re.search(r"by BLEU \(zh\) against the original model's outputs, it has ([\d.]+)", capsys.readouterr().err)
    assert told and float(told[1]) == pytest.approx(score, abs=0.06)
    (shown,) = data_of(tmp_path / "small.html")
    assert "|tok:zh|" in shown["signature"] and shown["sentences"]
    assert next(one["score"] for one in shown["points"] if one["series"] == "pruned") == pytest.approx(score, abs=0.01)


def test_sentences_have_at_least_three_letters_and_at_most_60_subwords_of_the_model(experiment: Experiment) -> None:
    source = experiment.vocabularies()[0]
    lines = {line: len(source.encode([line])[0]) for line in (LINES[0] * times for times in range(1, 31))}
    left = {line for line, subwords in lines.items() if subwords <= 60}
    assert 10 < len(left) < 30 < max(map(len, left)), "more than 60 letters may be at most 60 subwords"
    given = [*LINES, *lines, "猫狗。", "这里", "猫狗猫。"]
    parts = splits_of(*distinct(given, source))
    assert {line for part in parts.values() for line in part} == {*LINES, *left, "猫狗猫。"}
    with pytest.raises(UserError, match=r"has 40 distinct sentences of 3 letters to 60 subwords: give at least 50"):
        splits_of(*distinct([*LINES[:40], *({*lines} - left)], source))


def test_text_with_blanks_is_split_as_by_its_words_alone(experiment: Experiment) -> None:
    lines = [*(f"the number {one} is even" for one in range(60)), LINES[0], "two words", "word " * 61]
    assert distinct(lines, experiment.vocabularies()[0]) == distinct(lines)
    assert len(distinct(lines)[0]) == 60


def test_stanza_is_not_given_text_whose_words_are_not_known(experiment: Experiment) -> None:
    with pytest.raises(UserError, match=r"has no blanks between words.*: give trees") as caught:
        inspect(experiment.baseline, LINES[:5], stanza="zh", masked=1, device="cpu")
    assert "\n" not in str(caught.value)
