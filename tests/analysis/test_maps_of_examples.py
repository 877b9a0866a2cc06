"""Attention maps of a classifier: the example as read, the predicted label, and the trees of its sentences."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heads.__main__ import main
from heads.analysis.attention_maps import SIGNS, examples_to_show, framed, unpacked
from heads.analysis.attention_weights import attend_classifying
from heads.base.files import read_json, read_lines, write_lines, write_text
from heads.config.analyses import MapsSettings
from heads.model.encoder import Encoder
from heads.model.folder import model_of, save_folder
from heads.model.shape import ModelShape
from heads.syntax.conllu import place, write_conllu
from heads.syntax.words import Arc, Words
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Tokens, Vocabulary
from tiny_examples import LABELS, write_examples

LIVE = {"enc_self": ((2,), (), (0, 1)), "dec_self": (), "dec_enc": ()}
START, SEPARATOR = SIGNS[BOS], SIGNS[EOS]


def classifier(subwords: int, live: Any = LIVE) -> Encoder:
    torch.manual_seed(8)
    sizes: dict[str, Any] = {"source_subwords": subwords, "target_subwords": 3, "original_heads": 3}
    return model_of(ModelShape(6, 4, 5, 0.2, pre_norm=True, **sizes, live_heads=live, labels=3)).eval()


def sentence(*subwords: int) -> Words:
    """A sentence with a word for every two subwords, each but the first an object of the one before."""
    words = (len(subwords) + 1) // 2
    member = np.array([[float(subword // 2 == word) for subword in range(len(subwords))] for word in range(words)])
    arcs = tuple(Arc(word, word - 1, "obj") for word in range(1, words))
    return Words(0, tuple("abcdefg"[:words]), arcs, np.array(subwords, np.int32), member)


def test_an_example_is_its_sentences_in_their_signs_each_sign_a_word_of_one_subword() -> None:
    found = framed(7, [sentence(5, 6, 7), sentence(8)])
    assert found.number == 7 and found.forms == (START, "a", "b", SEPARATOR, "a", SEPARATOR)
    assert found.subwords.tolist() == [BOS, 5, 6, 7, EOS, 8, EOS]
    assert found.arcs == (Arc(2, 1, "obj"),)
    lies_in = [0, 1, 1, 2, 3, 4, 5]
    assert (found.membership == np.eye(6)[lies_in].T).all()
    two = framed(0, [sentence(5), sentence(6, 7, 8)])
    assert two.arcs == (Arc(4, 3, "obj"),), "arcs of the second sentence begin behind the first and two signs"


def test_an_example_is_as_long_as_its_sentences_together_and_signs_are_no_words() -> None:
    one, two, three = sentence(5), sentence(5, 6, 7), sentence(5, 6, 7, 8, 9)
    given = [[one, one], [two, one], [three, two], [three], [one, two], [two, three]]
    picked = examples_to_show(given, MapsSettings(sentences=3, min_words=3, max_words=4))
    assert [words.number for words in picked] == [1, 3, 4]


@torch.no_grad()
def test_labels_and_attention_are_those_of_each_example_read_alone() -> None:
    model = classifier(12)
    given = [framed(0, [sentence(5, 6, 7), sentence(8)]), framed(1, [sentence(9)]), framed(2, [sentence(4, 8, 11, 5)])]
    found = {member.words.number: member for member in attend_classifying(model, given, 9)}
    assert sorted(found) == [0, 1, 2]
    for words in given:
        source, trace = torch.from_numpy(words.subwords).long()[None], {}  # type: ignore[var-annotated]
        logits = model.projection(model(source, torch.ones_like(source, dtype=torch.bool), trace=trace))
        assert found[words.number].label == int(logits[0, 0].argmax())
        alone = np.concatenate([trace[f"enc_self.{layer}.weights"][0].numpy() for layer in (0, 2)])
        np.testing.assert_allclose(found[words.number].weights, alone, atol=1e-6)


def test_a_model_that_has_lost_all_heads_tells_labels_without_attention() -> None:
    given = [framed(0, [sentence(5, 6, 7)]), framed(1, [sentence(9)])]
    found = list(attend_classifying(classifier(12, {**LIVE, "enc_self": ((), ())}), given, 100))
    assert sorted(member.weights.shape for member in found) == [(0, 3, 3), (0, 5, 5)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Examples, vocabularies and an untrained model, as earlier stages leave them."""
    bpe = write_examples(tmp_path)
    save_folder(classifier(len(Vocabulary(bpe / "source.model"))), tmp_path / "model", {}, {})
    return tmp_path


def made(folder: Path, *, labels: bool = True, trees: bool = False, most: int = 8) -> int:
    """Exit status of the command, for maps of at most three examples."""
    search = {"beam": 1, "length_penalty": 0.6, "batch_tokens": 100, "sentences": 0}
    settings = {"maps": {"sentences": 3, "min_words": 6, "max_words": most}, "translate": search}
    write_text(folder / "settings.yaml", json.dumps(settings))
    words = ["--model", folder / "model", "--settings", folder / "settings.yaml", "--out", folder / "maps.json"]
    words += [word for side in ("source", "target") for word in (f"--{side}-bpe", folder / f"bpe/{side}.model")]
    words += ["--sentences", folder / "dev.source.txt", "--device", "cpu"]
    words += ["--labels", folder / "dev.target.txt"] if labels else []
    words += ["--trees", folder / "dev.conllu"] if trees else []
    return main(["maps", *map(str, words)])


def test_the_command_shows_examples_with_the_label_that_they_have_and_the_one_that_is_told(folder: Path) -> None:
    assert made(folder) == 0
    lines, wanted = (read_lines(folder / f"dev.{side}.txt") for side in ("source", "target"))
    fitting = [number for number, line in enumerate(lines) if 6 <= len(line.split()) <= 8][:3]
    found, tokens = read_json(folder / "maps.json"), Tokens(folder / "bpe/dev.source.safetensors")
    assert [one["number"] for one in found] == fitting and len(fitting) == 3 and fitting != [0, 1, 2]
    model = classifier(len(Vocabulary(folder / "bpe/source.model")))
    for one in found:
        premise, hypothesis = lines[one["number"]].split("\t")
        assert one["words"] == [START, *premise.split(), SEPARATOR, *hypothesis.split(), SEPARATOR]
        assert [one["subwords"][0], one["subwords"][-1]] == [f"\u2581{START}", f"\u2581{SEPARATOR}"]
        assert one["tree_heads"] == [0] * len(one["words"]) and "translation" not in one
        ids = torch.from_numpy(tokens[one["number"]].astype(np.int64))[None]
        with torch.no_grad():
            told = model.projection(model(ids, torch.ones_like(ids, dtype=torch.bool)))[0, 0].argmax()
        assert (one["wanted"], one["label"]) == (wanted[one["number"]], LABELS[int(told)])
        weights = unpacked(one["weights"]["enc_self"]).reshape(3, ids.shape[1], ids.shape[1])
        assert [*one["weights"]] == ["enc_self"] and len(one["subwords"]) == ids.shape[1]
        assert weights.sum(-1) == pytest.approx(np.ones(weights.shape[:2]), abs=0.05)
    assert len({one["wanted"] for one in found}) > 1


def test_trees_come_sentence_by_sentence_and_those_of_another_text_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [text for line in read_lines(folder / "dev.source.txt") for text in line.split("\t")]
    trees = [
        place([(form, form, "X", number, "next" if number else "root", True) for number, form in enumerate(t.split())])
        for t in texts
    ]
    write_conllu(folder / "dev.conllu", trees)
    assert made(folder, trees=True) == 0
    for one in read_json(folder / "maps.json"):
        second = one["words"].index(SEPARATOR) + 1
        within = [number for number, word in enumerate(one["words"]) if word not in (START, SEPARATOR)]
        expected = [
            number if number in within and number not in (1, second) else 0 for number in range(len(one["words"]))
        ]
        assert one["tree_heads"] == expected, "each word but the first hangs on the one before"
        assert [one["relations"][number] for number in (2, second + 1)] == ["next", "next"]
    write_conllu(folder / "dev.conllu", trees[1:])
    assert made(folder, trees=True) == 1
    assert "has no tree of" in capsys.readouterr().err


def test_what_the_command_lacks_is_said_in_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(folder, labels=False) == 1
    assert "classifies: give the labels of its examples with --labels" in capsys.readouterr().err
    write_lines(folder / "dev.target.txt", read_lines(folder / "dev.target.txt")[1:])
    assert made(folder) == 1
    assert "has 13 examples and" in capsys.readouterr().err
