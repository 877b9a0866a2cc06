"""Examples and labels: start and separator tokens, labels by their place, batches with one answer per example."""

from pathlib import Path

import pytest

from heads.__main__ import main
from heads.base.files import UserError, read_json, read_lines, write_lines
from heads.text.batches import Examples, pairs_of, read_tokens
from heads.text.encoding import encode_file, vocabulary_or_labels
from heads.text.labels import Labels, learn_labels, write_labels
from heads.text.special_ids import BOS, EOS, PAD
from heads.text.vocabulary import Tokens, Vocabulary
from tiny_examples import LABELS, write_examples


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bpe stage of a tiny experiment."""
    return write_examples(tmp_path_factory.mktemp("examples"))


def test_an_example_is_encoded_between_start_and_separators(bpe: Path) -> None:
    vocabulary, tokens = Vocabulary(bpe / "source.model"), Tokens(bpe / "dev.source.safetensors")
    for number, line in enumerate(read_lines(bpe.parent / "dev.source.txt")):
        premise, hypothesis = line.split("\t")
        ids = tokens[number].tolist()
        first = ids.index(EOS)
        assert ids[0] == BOS and ids[-1] == EOS and ids.count(EOS) == 2 and ids.count(BOS) == 1
        assert vocabulary.decode([ids[1:first], ids[first + 1 : -1]]) == [premise, hypothesis]


def test_a_sentence_alone_has_one_separator_and_subwords_of_a_sentence_are_as_they_were(bpe: Path) -> None:
    vocabulary = Vocabulary(bpe / "source.model")
    ids, spans = vocabulary.spans("the old cat")
    assert vocabulary.encode(["the old cat", "the old cat\tthe old cat"]) == [
        [BOS, *ids, EOS],
        [BOS, *ids, EOS, *ids, EOS],
    ]
    assert len(spans) == len(ids)


def test_a_label_is_its_place_among_all_sorted(bpe: Path) -> None:
    assert read_json(bpe / "target.json")["labels"] == list(LABELS)
    tokens = Tokens(bpe / "test.target.safetensors")
    told = [LABELS[tokens[number].item()] for number in range(len(tokens))]
    assert told == read_lines(bpe.parent / "test.target.txt")
    assert isinstance(vocabulary_or_labels(bpe / "target.model"), Labels) and isinstance(
        vocabulary_or_labels(bpe / "source.model"), Vocabulary
    )


def test_a_batch_of_examples_has_one_answer_each_and_adds_no_sign(bpe: Path) -> None:
    examples = pairs_of(*read_tokens(bpe, "dev"), 100, labelled=True)
    assert isinstance(examples, Examples)
    members = examples.index[[3, 0, 7]]
    batch = examples.batch(members)
    assert batch.source.shape[1] == max(len(examples.source[member]) for member in members)
    for row, member in enumerate(members):
        ids = examples.source[member].tolist()
        assert batch.source[row].tolist() == ids + [PAD] * (batch.source.shape[1] - len(ids))
        assert batch.source_mask[row].sum() == len(ids)
        assert batch.target_output[row].tolist() == examples.target[member].tolist()
    assert batch.target_input.tolist() == [[BOS]] * 3 and bool(batch.target_mask.all())
    assert examples.answers(members) == 3


def test_a_label_that_training_does_not_have_is_named(
    bpe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "dev.txt", ["neutral", "unsure"])
    words = ["--text", tmp_path / "dev.txt", "--bpe", bpe / "target.model", "--tokens", tmp_path / "tokens"]
    assert main(["encode", *map(str, words)]) == 1
    said = capsys.readouterr().err
    told = f"error: {tmp_path / 'dev.txt'}, line 2: 'unsure' is not one of the labels, which are"
    assert said.startswith(told) and said.count("\n") == 1
    assert not (tmp_path / "tokens").exists()


def test_labels_are_the_same_in_whatever_case_and_with_whatever_blanks(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.txt", ["neutral", " Not  entailment", "not entailment ", "NEUTRAL", "Straße"])
    learn_labels(tmp_path / "train.txt", tmp_path / "target.model")
    labels = Labels(tmp_path / "target.model")
    assert labels.words == ["NEUTRAL", "Not entailment", "Straße"]
    assert labels.arrays(["Neutral ", "NOT ENTAILMENT", "strasse"])[0].tolist() == [0, 1, 2]
    assert labels.named(["neutral\t", "not entailment"], "x") == ["NEUTRAL", "Not entailment"]
    for workers in (1, 2):
        write_lines(tmp_path / "dev.txt", ["neutral"] * 3 + ["not_entailment"])
        with pytest.raises(UserError, match=r"dev\.txt, line 4: 'not_entailment' is not one of the labels, which"):
            encode_file(tmp_path / "dev.txt", labels, tmp_path / "tokens", workers)


def test_labels_of_an_older_model_that_differ_in_case_alone_stay_two(tmp_path: Path) -> None:
    write_labels(["A", "a"], tmp_path / "target.model")
    labels = Labels(tmp_path / "target.model")
    assert labels.arrays(["a", "A"])[0].tolist() == [1, 0]


def test_one_label_is_nothing_to_tell_apart(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.txt", ["neutral"] * 3)
    with pytest.raises(UserError, match="has fewer than two labels"):
        learn_labels(tmp_path / "train.txt", tmp_path / "target.model")


def test_labels_whose_file_was_changed_are_damaged(bpe: Path, tmp_path: Path) -> None:
    told = (bpe / "target.json").read_text(encoding="utf-8")
    (tmp_path / "target.json").write_text(told.replace("neutral", "natural"), encoding="utf-8")
    with pytest.raises(UserError, match=r"damaged|holds no valid labels"):
        vocabulary_or_labels(tmp_path / "target.model")
