"""`heads prune --vocabulary`: the text is answered as before, and what is told of other text is what it lost."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from bert_models import SUBWORDS, save_bert, save_tokeniser
from heads.__main__ import main
from heads.base.files import write_lines
from heads.interop.bundle import saved_bundle
from heads.model.folder import load_folder, load_model
from heads.one_model import smaller_vocabulary
from heads.one_model.answered_text import AnsweredSplits, splits_of
from heads.one_model.request import PruningRequest
from heads.one_model.smaller_vocabulary import cut_words, split_otherwise, with_smaller_vocabulary, write_with_fewer
from heads.one_model.working_folder import WorkingFolder
from heads.text.encoding import vocabulary_of
from heads.text.fewer_subwords import all_subwords
from heads.text.vocabulary import Vocabulary
from heads.translation.distilled import distinct
from many_lines import LINES
from model_folders import greedy
from slow_ones import slow_but
from t5_models import PREFIX, save_t5

pytestmark = pytest.mark.usefixtures("briefly_timed")
EXAMPLES = [
    " ".join(words)
    for words in itertools.product(
        ("the", "a"), ("cat", "dog", "house"), ("saw", "sleep", "unable"), ("the dog .",) * 4
    )
]
EXAMPLES = [f"{line} {number % 5 * 'a '}." for number, line in enumerate(EXAMPLES)]
"""Lines of some of the words that the tiny tokeniser of a BERT knows."""


def pruned(model: Path, *flags: str) -> Path:
    out = model.parent / "small"
    assert main(["prune", str(model), str(model.parent / "text.en"), "--vocabulary", "-o", str(out), *flags]) == 0
    return out


@pytest.mark.parametrize("heads", slow_but([None], [None, 11]))
def test_the_text_is_answered_as_before_and_the_loss_elsewhere_is_told(
    model: Path, heads: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--keep", str(heads), "--minutes", "0") if heads else ()
    small, told = pruned(model, *flags), capsys.readouterr().err
    before, after = (load_folder(folder).shape for folder in (model, small))
    assert after.source_subwords < before.source_subwords and after.target_subwords < before.target_subwords
    assert len(after.heads()) == (heads or 18)
    splits = splits_of(*distinct(LINES))
    if not heads:
        assert greedy(small, splits["train"]) == greedy(model, splits["train"])
        assert "fine-tuning" not in told
    own = sacrebleu.corpus_bleu(greedy(small, splits["test"]), [greedy(model, splits["test"])]).score
    found = re.search(r"it has ([\d.]+), and 100.0 for the whole model", told)
    assert found and float(found[1]) == pytest.approx(own, abs=0.06)
    counts = re.search(r"(\d+) of (\d+) source subwords and (\d+) of (\d+) target subwords are left", told)
    assert counts and [int(one) for one in counts.groups()] == [
        *(after.source_subwords, before.source_subwords, after.target_subwords, before.target_subwords)
    ]
    first = told.index("all heads and units, fewer subwords: ")
    assert not heads or first < told.index("16 heads")
    assert not (model.parent / ".small.unfinished").exists()


def test_a_subword_that_is_written_for_held_out_text_alone_goes(model: Path, tmp_path: Path) -> None:
    target = vocabulary_of(model / "target.model")
    written = dict(zip(LINES, greedy(model, LINES), strict=True))
    longer = [name for name in all_subwords(target) if len(name) == 2 and name.isalpha()]
    of_one = {name: [line for line, text in written.items() if name in text] for name in longer}
    rare, [held_out] = next((name, lines) for name, lines in of_one.items() if len(lines) == 1)
    others = [line for line in written if line != held_out]
    splits = {"train": others, "dev": [held_out], "test": [held_out]}
    texts = AnsweredSplits(saved_bundle(model), splits, tmp_path / "texts", torch.device("cpu"), print)
    request = PruningRequest("all", None, None, 1, "surgeon", vocabulary=True)
    fewer = with_smaller_vocabulary(texts, WorkingFolder(tmp_path / "work", {}), request)
    assert isinstance(fewer.target, Vocabulary)
    kept = all_subwords(fewer.target)
    assert rare not in kept and {*kept} < {*all_subwords(target)}


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_what_was_written_before(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pruned(model)
    whole.rename(model.parent / "whole")

    def stopped(*given: Any) -> None:
        write_with_fewer(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(smaller_vocabulary, "write_with_fewer", stopped)
        text, out = model.parent / "text.en", model.parent / "small"
        assert main(["prune", str(model), str(text), "--vocabulary", "-o", str(out)]) == 130
    assert (model.parent / ".small.unfinished/texts/train.written_ids.jsonl").is_file() and not out.exists()
    again = pruned(model)
    for name in ("model.safetensors", "source.model", "target.model"):
        assert (again / name).read_bytes() == (model.parent / "whole" / name).read_bytes()


def test_a_word_is_split_otherwise_if_a_subword_of_it_is_another(model: Path) -> None:
    vocabulary = vocabulary_of(model / "source.model")
    line = LINES[0]
    words = [*cut_words(vocabulary, line)]
    assert ["".join(line[start:end] for _, start, end in word).strip() for word in words] == line.split()
    assert split_otherwise(vocabulary, vocabulary, LINES) == 0
    other = vocabulary_of(model / "target.model")
    changed = [one != two for text in LINES for one, two in zip(
        cut_words(vocabulary, text), cut_words(other, text), strict=True)]  # fmt: skip
    assert any(changed)
    assert split_otherwise(vocabulary, other, LINES) == pytest.approx(sum(changed) / len(changed))


@pytest.mark.slow
def test_a_classifier_and_a_sentence_encoder_keep_their_answers(tmp_path: Path) -> None:
    for kind in ("BertForSequenceClassification", "BertModel"):
        folder = tmp_path / kind / "model"
        save_tokeniser(folder)
        save_bert(folder, kind)
        write_lines(folder.parent / "text.en", EXAMPLES)
        small = pruned(folder)
        assert load_model(small).shape.source_subwords < len(SUBWORDS)
        assert main(["export", str(small), "--format", "huggingface", "-o", str(tmp_path / kind / "out")]) == 0


def test_a_model_of_bytes_is_refused_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_t5(tmp_path / "model", "ByT5")
    write_lines(tmp_path / "text.en", LINES)
    words = ["prune", str(tmp_path / "model"), str(tmp_path / "text.en"), "--vocabulary", "-o", str(tmp_path / "out")]
    assert main([*words, "--prefix", PREFIX]) != 0
    assert "leave --vocabulary out" in capsys.readouterr().err
    assert not [*tmp_path.glob(".out*")]
