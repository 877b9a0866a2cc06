"""Gold trees of a corpus: those of the grammar beside its text, and a treebank that is unpacked once it reads well."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pytest

from heads.base.files import UserError, read_lines
from heads.base.names import SIDES, SPLITS
from heads.corpus.build import build
from heads.corpus.grammar import split_of, stream
from heads.syntax.conllu import Sentence, read_conllu
from tiny_corpora import TREE, Entry, entry, write_trees

COUNTS = {"train": 60, "dev": 7, "test": 5}


def demo(tmp_path: Path) -> Entry:
    """Build a corpus of the grammar and return its entry."""
    cleaning = {"max_words": 9, "max_length_ratio": 9.0}
    given = {"kind": "grammar", "source": "en", "target": "ru", "seed": 3, "pairs": COUNTS, "cleaning": cleaning}
    build(given, tmp_path / "out", tmp_path)
    return given


def trees_of(given: Entry, tmp_path: Path, split: str) -> list[Sentence]:
    """The trees that the command writes beside the text."""
    return list(read_conllu(write_trees(given, split, tmp_path / f"out/{split}.conllu")))


def test_a_corpus_of_the_grammar_has_the_first_pairs_of_each_split_cleaned_in_training_only_and_their_trees(
    tmp_path: Path,
) -> None:
    given, pairs = demo(tmp_path), list(islice(stream(3), 1000))
    for split, count in COUNTS.items():
        first = islice((pair for pair in pairs if split_of(pair.target) == split), count)
        kept = [
            pair for pair in first if split != "train" or max(len(pair.source.split()), len(pair.target.split())) <= 9
        ]
        texts = [read_lines(tmp_path / f"out/{split}.{side}.txt") for side in SIDES]
        assert texts == [[pair.source for pair in kept], [pair.target for pair in kept]]
        assert [tree.text for tree in trees_of(given, tmp_path, split)] == texts[0]
        assert (len(kept) < count) == (split == "train")
    for side in SIDES:
        found = [line for split in SPLITS for line in set(read_lines(tmp_path / f"out/{split}.{side}.txt"))]
        assert len(found) == len(set(found))


def test_trees_for_a_text_that_is_not_of_the_grammar_are_refused(tmp_path: Path) -> None:
    given = demo(tmp_path)
    with (tmp_path / "out/dev.source.txt").open("a", encoding="utf-8") as stream:
        stream.write("no such sentence\n")
    with pytest.raises(UserError, match=r"dev\.source\.txt, line 8 does not come from this grammar"):
        trees_of(given, tmp_path, "dev")
    assert not (tmp_path / "out/dev.conllu").exists()


def test_the_treebank_of_a_corpus_in_files_is_unpacked_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.conllu.gz").write_bytes(gzip.compress(TREE.encode()))
    out = write_trees(entry(tmp_path, trees="t.conllu.gz"), "dev", tmp_path / "out/dev.conllu")
    assert out.read_text() == TREE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TREE.replace("\t2\t", "\tx\t").encode()), ", line 1"),
        (gzip.compress(TREE.encode() * 99)[:-20], " cannot be read to its end"),
        (b"no gzip", " cannot be read to its end"),
        (gzip.compress(b""), " holds no sentence"),
        (gzip.compress(b"\n\n"), " holds no sentence"),
    ],
    ids=["head", "cut", "no-gzip", "empty", "blank"],
)
def test_a_treebank_that_is_damaged_or_empty_is_refused_and_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.conllu.gz").write_bytes(content)
    with pytest.raises(UserError, match=rf"t\.conllu\.gz{words}"):
        write_trees(entry(tmp_path, trees="t.conllu.gz"), "dev", tmp_path / "out/dev.conllu")
    assert not list(tmp_path.glob("out/*.conllu*"))


@pytest.mark.parametrize(("split", "key"), [("dev", "parser_trees"), ("test", "trees"), ("train", "trees")])
def test_trees_that_a_corpus_does_not_have_are_refused(tmp_path: Path, split: str, key: str) -> None:
    (tmp_path / "t.conllu").write_text(TREE)
    with pytest.raises(UserError, match=f"no trees for {split}"):
        write_trees(entry(tmp_path, **{key: "t.conllu"}), split, tmp_path / "out/a.conllu")
    assert not list(tmp_path.glob("out/*.conllu"))


def test_the_grammar_writes_so_many_distinct_trees_each_with_one_root_the_same_each_time(tmp_path: Path) -> None:
    counts: tuple[int | str, ...] = (40, "40", 15)
    found, again, fewer = (trees_of(entry(tmp_path, trees={"grammar": n}), tmp_path, "dev") for n in counts)
    assert found == again and found[:15] == fewer
    assert len({tree.text for tree in found}) == len(found) == 40
    for tree in found:
        assert [token.head for token in tree].count(0) == 1
        assert [token.relation == "root" for token in tree] == [token.head == 0 for token in tree]


def test_no_sentence_that_heads_are_measured_on_is_trained_on_in_a_corpus_of_the_grammar(tmp_path: Path) -> None:
    """With the same seed, so that one stream gives both: a text may be made from such a corpus."""
    measured = [tree.text for tree in trees_of(entry(tmp_path, trees={"grammar": 25}), tmp_path, "dev")]
    pairs = {"train": 900, "dev": 25, "test": 1}
    given = {"kind": "grammar", "source": "en", "target": "ru", "seed": 1, "pairs": pairs}
    build({**given, "cleaning": {"max_words": 100, "max_length_ratio": 9.0}}, tmp_path / "out", tmp_path)
    assert not {*measured} & {*read_lines(tmp_path / "out/train.source.txt")}
    assert measured == read_lines(tmp_path / "out/dev.source.txt"), "they are the demo's"
