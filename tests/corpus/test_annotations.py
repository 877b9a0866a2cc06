"""Gold trees and word alignments of a corpus: the grammar's own, a treebank, an aligner's, and errors."""

import gzip
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from heads.__main__ import main
from heads.base.files import UserError, read_lines, write_lines, write_text
from heads.base.names import SIDES, SPLITS
from heads.corpus.build import build
from heads.corpus.grammar import split_of, stream
from heads.syntax.conllu import Sentence, read_conllu
from heads.syntax.pharaoh import line_of
from tiny_corpora import TREE, Entry, entry, part, write, write_trees

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


def align(given: Entry, folder: Path, split: str = "dev") -> int:
    """Ask for the alignment of a built corpus; return the exit status."""
    write_text(folder / "settings.yaml", yaml.safe_dump(given))
    own = {f"--{side}": f"{split}.{side}.txt" for side in ("source", "target")}
    own |= {f"--{side}-words": f"{split}.{side}.words.txt" for side in ("source", "target")}
    words = [word for flag, name in own.items() for word in (flag, str(folder / "out" / name))]
    links = str(folder / "out" / f"{split}.alignment.txt")
    return main(["alignment", "--settings", str(folder / "settings.yaml"), "--split", split,
                 "--downloads", str(folder), "--links", links, *words])  # fmt: skip


def test_a_corpus_of_the_grammar_has_the_first_pairs_of_each_split_cleaned_in_training_only_with_trees_and_links(
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
        assert align(given, tmp_path, split) == 0
        links, words = (read_lines(tmp_path / f"out/{split}.{name}.txt") for name in ("alignment", "source.words"))
        assert links == [line_of(pair.links) for pair in kept]
        assert words == [" ".join(token.form for token in pair.tree) for pair in kept]
        assert (5 < len(kept) < count) if split == "train" else len(kept) == count
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


WRITTEN = ("dev.alignment.txt", "dev.source.words.txt", "dev.target.words.txt")


def files(folder: Path, alignment: Any, *, lowercase: bool = False) -> Entry:
    """The entry of a corpus in files whose dev set has three pairs, built without its alignment."""
    texts = {"en": ["Don't go!", "I  see it.", "Yes."], "de": ["Geh nicht!", "Ich sehe es.", "Ja."]}
    for side, lines in texts.items():
        write(folder, {f"dev.{side}": lines, f"train.{side}": [f"{line} {n}" for n in range(3) for line in lines]})
    limits = {"max_words": 30, "max_length_ratio": 2.0}
    given = entry(folder, test=part("dev"), cleaning=limits, lowercase=lowercase)
    build(given, folder / "out", folder)
    return {**given, "alignment": alignment}


def test_an_aligners_file_speaks_of_words_between_blanks_of_the_corpus_own_text(tmp_path: Path) -> None:
    write_lines(tmp_path / "links", ["1-0 0-1", "2-2 0-0 1-1", "0-0"])
    assert align(files(tmp_path, {"dev": "links"}), tmp_path) == 0
    found = [read_lines(tmp_path / "out" / name) for name in WRITTEN]
    assert found == [["0-1 1-0", "0-0 1-1 2-2", "0-0"], ["Don't go!", "I see it.", "Yes."],
                     ["Geh nicht!", "Ich sehe es.", "Ja."]]  # fmt: skip


def test_or_of_words_of_the_text_that_it_read_which_is_treated_as_the_corpus_is(tmp_path: Path) -> None:
    write_lines(tmp_path / "links", ["2-0 1-1 3-2", "0-0 1-1  2-2 3-3", "0-0 1-1"])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"Do n't go !\nI see  it .\nYes .\n"))
    write_lines(tmp_path / "cut", ["Geh nicht !", "Ich sehe es .", "Ja ."])
    given = {"dev": {"links": {"path": "links"}, "source": "cut.gz", "target": "cut"}}
    assert align(files(tmp_path, given, lowercase=True), tmp_path) == 0
    found = [read_lines(tmp_path / "out" / name) for name in WRITTEN]
    assert found == [["1-1 2-0 3-2", "0-0 1-1 2-2 3-3", "0-0 1-1"], ["do n't go !", "i see it .", "yes ."],
                     ["geh nicht !", "ich sehe es .", "ja ."]]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"dev": "short"}, "short has 1 lines and "),
        ({"dev": "wild"}, "wild, line 2: '0~0' is not a link"),
        ({"dev": "far"}, "far, line 3: the link 0-3 lies beyond 1 source and 1 target words"),
        ({"dev": {"links": "good", "target": "other"}}, "other, line 2 differs in characters from line 2 of "),
        ({"dev": "missing"}, "missing is not at "),
        ({"test": "good"}, "The en-de corpus has no word alignment of dev: name a file in Pharaoh format under"),
        ({}, "The en-de corpus has no word alignment of dev"),
        ({"train": "good"}, "corpus.alignment"),
        ({"dev": {"source": "good"}}, "lacks the key links: add it."),
        ({"dev": {"link": "good"}}, ".alignment.dev.link is not a setting. Did you mean links?"),
    ],
)
def test_one_that_does_not_fit_gets_one_sentence_and_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: dict[str, Any], sentence: str
) -> None:
    lines = {"short": ["0-0"], "wild": ["0-0", "0~0", ""], "far": ["", "", "0-3"], "good": ["", "0-0", ""]}
    for name, content in {**lines, "other": ["Geh nicht !", "Ich sehe das .", "Ja ."]}.items():
        write_lines(tmp_path / name, content)
    assert align(files(tmp_path, given), tmp_path) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: ") and sentence in said, said
    assert not [name for name in WRITTEN if (tmp_path / "out" / name).exists()]
