"""Attention taken from the model, attention maps, and the `maps` command end to end."""

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from heads.__main__ import main
from heads.analysis.attention_maps import Translated, encoder_on_words, maps, packed, sentences_to_show, unpacked
from heads.analysis.attention_weights import attend, attend_translating
from heads.base.files import read_json, write_lines
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.config.trainings import BpeSettings
from heads.model.attention import Trace
from heads.model.folder import save_folder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.syntax.conllu import Sentence, place, write_conllu
from heads.syntax.words import Arc, Words
from heads.text.batches import make_batch
from heads.text.vocabulary import Vocabulary, train_bpe
from heads.translation.beam_search import beam_search

SEARCH = {"beam": 1, "length_penalty": 0.6, "batch_tokens": 100, "sentences": 0}
LIVE = {"enc_self": ((2,), (), (0, 1)), "dec_self": ((), (1,), ()), "dec_enc": ((), (), (2,))}


def pruned(subwords: int, target_subwords: int = 9) -> Transformer:
    torch.manual_seed(8)
    sizes: dict[str, Any] = {"source_subwords": subwords, "target_subwords": target_subwords, "original_heads": 3}
    shape = ModelShape(6, 4, 5, 0.2, pre_norm=True, **sizes, live_heads=LIVE)
    return Transformer(shape).eval()


def sentence(number: int, words: int, subwords: int) -> Words:
    ids = np.random.default_rng(number).integers(4, 12, subwords).astype(np.int32)
    member = np.eye(words)[np.arange(subwords) % words].T
    arcs = tuple(Arc(word, 0, "dep") for word in range(1, words))
    return Words(number, tuple("abcdefg"[:words]), arcs, ids, member)


def tree(*forms: str) -> Sentence:
    """A tree whose first word is the root and all others are its subjects."""
    return place(
        [(form, form, "X", int(word > 0), "nsubj" if word else "root", True) for word, form in enumerate(forms)]
    )


def read_alone(model: Transformer, words: Words) -> NDArray[Any]:
    batch = make_batch([words.subwords], [words.subwords])
    trace: Trace = {}
    model.encode(batch.source, batch.source_mask, trace=trace)
    return np.concatenate([trace[f"enc_self.{layer}.weights"][0, :, :-1, :-1].detach() for layer in (0, 2)])


def test_attention_is_that_of_the_sentence_read_alone_without_the_end_sign() -> None:
    model = pruned(12)
    given = [sentence(number, 2, subwords) for number, subwords in enumerate([4, 2, 9, 5])]
    found = {words.number: weights for words, weights in attend(model, given, 12)}
    assert sorted(found) == [0, 1, 2, 3]
    for words in given:
        assert found[words.number].shape == (3, len(words.subwords), len(words.subwords))
        np.testing.assert_allclose(found[words.number], read_alone(model, words), atol=1e-6)


def test_a_sentence_is_translated_and_all_heads_are_those_of_the_model_that_writes_it() -> None:
    model, search = pruned(12), TranslateSettings(beam=2, length_penalty=0.6, batch_tokens=9)
    given = [sentence(number, 2, subwords) for number, subwords in enumerate([4, 2, 7])]
    found = {member.words.number: member for member in attend_translating(model, given, search)}
    assert sorted(found) == [0, 1, 2]
    for words in given:
        batch = make_batch([words.subwords], [np.array(found[words.number].target, np.int32)])
        (alone,) = beam_search(model, batch.source, batch.source_mask, beam=2, length_penalty=0.6)
        assert found[words.number].target == alone
        trace: Trace = {}
        model(batch.source, batch.source_mask, batch.target_input, trace=trace)
        for kind, layers in LIVE.items():
            own = [trace[f"{kind}.{layer}.weights"][0].detach() for layer, heads in enumerate(layers) if heads]
            np.testing.assert_allclose(found[words.number].weights[kind], np.concatenate(own), atol=1e-6)


def test_a_kind_of_attention_without_heads_has_no_weights() -> None:
    torch.manual_seed(8)
    shape = replace(pruned(12).shape, live_heads={**LIVE, "dec_self": ((), (), ())})
    (found,) = attend_translating(Transformer(shape).eval(), [sentence(0, 2, 4)], TranslateSettings(beam=1))
    assert found.weights["dec_self"].shape == (0, len(found.target) + 1, len(found.target) + 1)


def test_bytes_hold_shares_in_order_to_half_of_a_255th() -> None:
    shares = np.random.default_rng(1).random((2, 3, 5))
    assert np.abs(unpacked(packed(shares)).reshape(2, 3, 5) - shares).max() <= 0.5 / 255 + 1e-9
    assert packed(np.array([[0.0, 1.0], [0.5, 1 / 255]])) == b64encode(bytes([0, 255, 128, 1])).decode()


def test_maps_come_in_the_order_of_the_file_with_tree_subwords_and_translation(folder: Path) -> None:
    vocabulary = Vocabulary(folder / "bpe")
    (cat,) = vocabulary.encode(["the cat"])
    halves = np.array([[1, 1, 0.25, 0], [0, 0, 0.75, 1]])
    words = Words(6, ("x", "y"), (Arc(0, 1, "nsubj"),), np.arange(4, 8, dtype=np.int32), halves)
    weights = np.random.default_rng(1).dirichlet([1.0] * 5, size=(3, 5)).astype(np.float32)
    late = Translated(words, cat, {"enc_self": weights})
    early = Translated(sentence(2, 3, 3), cat, {"enc_self": weights[:, :4, :4]})
    first, second = maps([late, early], vocabulary, vocabulary)
    assert (first["number"], first["tree_heads"]) == (2, [0, 1, 1])
    assert (second["words"], second["relations"], second["tree_heads"]) == (["x", "y"], ["nsubj", "root"], [2, 0])
    assert (
        second["translation"] == "the cat" and "".join(second["target_subwords"]).replace("\u2581", " ") == " the cat"
    )
    assert second["membership"] == [[[0, 1.0]], [[0, 1.0]], [[0, 0.25], [1, 0.75]], [[1, 1.0]]]
    assert len(second["subwords"]) == 4
    # From a word: the weighted mean over its subwords; to a word: the sum. EOS is left out.
    expected = halves / halves.sum(1, keepdims=True) @ weights[:, :4, :4] @ halves.T
    assert encoder_on_words(second) == pytest.approx(expected, abs=0.01)


def test_only_sentences_of_fitting_length_are_shown() -> None:
    given = [sentence(number, words, words) for number, words in enumerate([2, 5, 3, 7, 4, 3])]
    picked = sentences_to_show(given, MapsSettings(sentences=3, min_words=3, max_words=5))
    assert [words.number for words in picked] == [1, 2, 4]


def test_sentences_without_blanks_are_long_enough_by_letters_and_short_enough_by_subwords() -> None:
    sizes = [(4, 2), (6, 3), (7, 5), (7, 6), (3, 3)]
    given = [replace(sentence(n, *size), forms=tuple("我们都喜欢猫咪"[: size[0]])) for n, size in enumerate(sizes)]
    picked = sentences_to_show(given, MapsSettings(sentences=9, min_words=4, max_words=5))
    assert [words.number for words in picked] == [0, 1, 2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, a vocabulary, trees and a token file, as earlier stages leave them."""
    text = "the cat sees\nкошка видит её\ndogs see the cat\n" * 9
    (tmp_path / "text").write_text(text, encoding="utf-8")
    train_bpe(tmp_path / "text", tmp_path / "bpe", BpeSettings(source_subwords=40, target_subwords=40), 40)
    save_folder(pruned(40, 40), tmp_path / "model", {}, {})
    trees = [tree("the", "cat", "sees"), tree("кошка", "видит", "её"), tree("see"), tree(*["cat"] * 201)]
    write_conllu(tmp_path / "trees", trees)
    ids = np.concatenate([np.array(ids, np.int32) for ids in Vocabulary(tmp_path / "bpe").encode(text.split("\n"))])
    save_file({"ids": ids, "offsets": np.array([0, len(ids)], np.int64)}, tmp_path / "train-source")
    return tmp_path


def shown(folder: Path, least: int, most: int, sentences: str = "trees") -> Any:
    """What the command writes of sentences of this file with so many words."""
    settings = {"maps": {"sentences": 5, "min_words": least, "max_words": most}, "translate": SEARCH}
    names = {"model": "model", "source-bpe": "bpe", "target-bpe": "bpe", "sentences": sentences, "out": "out"}
    flags = [f"--{flag}={folder / name}" for flag, name in names.items()]
    assert main(["maps", *flags, "--settings", json.dumps(settings), "--device", "cpu"]) == 0
    return read_json(folder / "out")


def test_the_maps_command_writes_words_as_they_stand_in_the_text(folder: Path) -> None:
    first, second = shown(folder, 2, 5)
    assert first["words"] == ["the", "cat", "sees"]
    assert second["words"] == ["кошка", "видит", "её"]
    assert second["relations"] == ["root", "nsubj", "nsubj"]
    sums = encoder_on_words(second)[1:].sum(-1)
    assert ((sums > 0) & (sums < 1)).all()


def test_plain_lines_are_shown_without_trees(folder: Path) -> None:
    write_lines(folder / "dev.txt", ["see", "dogs see the cat"])
    (found,) = shown(folder, 2, 5, "dev.txt")
    assert found["words"] == ["dogs", "see", "the", "cat"] and found["tree_heads"] == [0, 0, 0, 0]


def test_no_fitting_sentence_is_said_and_not_passed_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(folder, 7, 9) == []
    assert "no sentence has 7 to 9 words" in capsys.readouterr().err
