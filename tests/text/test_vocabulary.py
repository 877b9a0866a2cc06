"""Subwords cover exactly the text that went in, and damaged or impossible files raise errors of one sentence."""

import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from heads.base.files import UserError, write_lines
from heads.config.trainings import BpeSettings
from heads.text.encoding import encode_file
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.stored import write_model
from heads.text.vocabulary import Tokens, Vocabulary, train_bpe, word_counts

TEXT = """the cat sees a small dog .
кот видит маленькую собаку .
a white house stands here , near the old river !
белый дом стоит тут , у старой реки !
dogs bark “ loudly ” — don't they ?
"""
SETTINGS = BpeSettings(source_subwords=90, target_subwords=80, character_coverage=1.0, train_sentences=1000, seed=3)


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("bpe")
    (folder / "text.txt").write_text(TEXT * 20, encoding="utf-8")
    train_bpe(folder / "text.txt", folder / "text.model", SETTINGS, 90)
    return Vocabulary(folder / "text.model")


def test_special_subwords_have_the_ids_that_the_model_expects(vocabulary: Vocabulary) -> None:
    assert len(vocabulary) == 90
    assert [vocabulary.subword(index) for index in (PAD, BOS, EOS, UNK)] == ["<pad>", "<s>", "</s>", "<unk>"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("ab дом.\u00a0\u2581\t ", max_size=30)
)
def test_the_subwords_of_any_text_cover_each_of_its_characters_once_and_in_order(
    vocabulary: Vocabulary, text: str
) -> None:
    ids, spans = vocabulary.spans(text)
    assert [ids] == vocabulary.encode([text])
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    if text:
        assert (spans[0][0], spans[-1][1]) == (0, len(text))
    for index, (start, end) in zip(ids, spans, strict=True):
        assert index not in (PAD, BOS, EOS)
        covered = text[start:end].replace(" ", "\u2581")
        assert index == UNK or vocabulary.subword(index).removeprefix("\u2581") == covered.removeprefix("\u2581")


WORDS = sorted(set(TEXT.split()))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(words=st.lists(st.sampled_from(WORDS) | st.text(sorted(set(TEXT) - set(" \n")), min_size=1, max_size=6)))
def test_text_of_known_characters_comes_back_as_it_was(vocabulary: Vocabulary, words: list[str]) -> None:
    text = " ".join(words)
    assert vocabulary.decode(vocabulary.encode([text])) == [text]


def test_padding_start_and_end_vanish_when_decoding(vocabulary: Vocabulary) -> None:
    (ids,) = vocabulary.encode(["the cat"])
    assert vocabulary.decode([[BOS, *ids, EOS, PAD, PAD], ids]) == ["the cat", "the cat"]


def test_written_marks_of_special_subwords_in_a_text_are_plain_text(vocabulary: Vocabulary) -> None:
    for mark in ("<s>", "</s>", "<pad>"):
        (ids,) = vocabulary.encode([f"the {mark} cat"])
        assert not {PAD, BOS, EOS} & set(ids)


def test_the_number_of_subwords_is_read_from_older_files_that_call_them_pieces(
    vocabulary: Vocabulary, tmp_path: Path
) -> None:
    for name in ("pieces", "subwords"):
        write_model(tmp_path / "some.model", vocabulary.path.read_bytes(), {name: 61})
        assert len(Vocabulary(tmp_path / "some.model")) == 61


def test_the_same_text_and_seed_give_the_same_vocabulary(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 20, encoding="utf-8")
    train_bpe(tmp_path / "text.txt", tmp_path / "again.model", SETTINGS, 90)
    again = Vocabulary(tmp_path / "again.model")
    for ending in (".model", ".json"):
        assert (tmp_path / f"again{ending}").read_bytes() == vocabulary.path.with_suffix(ending).read_bytes()
    assert [again.subword(i) for i in range(90)] == [vocabulary.subword(i) for i in range(90)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "again.model", "text.txt"]


def test_counted_words_give_the_subwords_that_the_text_itself_gives(tmp_path: Path) -> None:
    lines = [" ".join(TEXT.split()[i % 31 :: 1 + i % 5]) for i in range(300)]
    write_lines(tmp_path / "text.txt", lines)
    train_bpe(tmp_path / "text.txt", tmp_path / "ours.model", SETTINGS, 110)
    SentencePieceTrainer.train(
        input=str(tmp_path / "text.txt"),
        model_prefix=str(tmp_path / "theirs"),
        vocab_size=110,
        model_type="bpe",
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    theirs = SentencePieceProcessor(model_file=str(tmp_path / "theirs.model"))
    assert SentencePieceProcessor(model_file=str(tmp_path / "ours.model")).get_piece_size() == 110
    ours = Vocabulary(tmp_path / "ours.model")
    assert [ours.subword(i) for i in range(110)] == [theirs.id_to_piece(i) for i in range(110)]


def test_words_of_a_longer_text_are_counted_in_exactly_so_many_lines_all_with_the_same_chance(tmp_path: Path) -> None:
    write_lines(tmp_path / "text", [f"w{i} x" for i in range(10)])
    drawn: Counter[str] = Counter()
    for seed in range(400):
        counts = word_counts(tmp_path / "text", 3, seed)
        assert counts["x"] == 3 and counts.total() == 6
        drawn.update(counts)
    assert counts == word_counts(tmp_path / "text", 3, 399)
    # 400 draws of 3 in 10 lines: 120 each with a standard deviation of 9.2.
    assert all(85 < drawn[f"w{i}"] < 155 for i in range(10))


LINES = ["the cat", "", "кот видит", "  ", "a white house", "", "старой реки"]


@pytest.mark.parametrize(("lines", "workers"), [(LINES, 1), (LINES, 2), ([], 1)])
def test_a_token_file_is_what_safetensors_and_we_read_for_any_number_of_workers(
    vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], workers: int
) -> None:
    monkeypatch.setattr("heads.text.vocabulary.BATCH_LINES", 3)
    write_lines(tmp_path / "text", lines)
    with pytest.raises(UserError, match="tokens is damaged or missing"):
        Tokens(tmp_path / "tokens")
    encode_file(tmp_path / "text", vocabulary, tmp_path / "tokens", workers)
    content = load_file(tmp_path / "tokens")
    encoded = vocabulary.encode(lines)
    assert content["ids"].tolist() == [index for ids in encoded for index in ids]
    assert content["offsets"].tolist() == [sum(map(len, encoded[:n])) for n in range(len(lines) + 1)]
    tokens = Tokens(tmp_path / "tokens")
    assert [tokens[i].tolist() for i in range(len(tokens))] == encoded
    assert tokens.lengths.tolist() == [len(ids) for ids in encoded]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "tokens"]


def test_opening_a_token_file_copies_no_token(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the cat sees a small dog .\n" * 30_000, encoding="utf-8")
    encode_file(tmp_path / "text", vocabulary, tmp_path / "tokens")
    tracemalloc.start()
    tokens = Tokens(tmp_path / "tokens")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not tokens.ids.flags.owndata and not tokens[17].flags.owndata
    assert peak < 1_000_000 < tokens.ids.nbytes, "lengths and offsets of 30000 sentences take 0.6 MB"


def test_writing_a_token_file_takes_no_more_memory_for_a_longer_text(
    vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heads.text.vocabulary.BATCH_LINES", 100)
    peaks = []
    for lines in (1_000, 30_000):
        (tmp_path / "text").write_text("the cat sees a small dog .\n" * lines, encoding="utf-8")
        tracemalloc.start()
        encode_file(tmp_path / "text", vocabulary, tmp_path / "tokens")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000 < Tokens(tmp_path / "tokens").ids.nbytes


@pytest.mark.parametrize(("subwords", "text"), [(5000, TEXT), (9, TEXT), (90, "")])
def test_an_impossible_vocabulary_names_the_text_and_leaves_nothing_behind(
    tmp_path: Path, subwords: int, text: str
) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"text\.txt .*config\.yaml"):
        train_bpe(tmp_path / "text.txt", tmp_path / "text.model", SETTINGS, subwords)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
