"""The word alignment of a split: the grammar's own, an aligner's for files, and errors for a faulty one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from heads.__main__ import main
from heads.base.files import read_lines, write_lines, write_text
from heads.corpus.build import build
from heads.corpus.grammar import stream
from heads.syntax.pharaoh import line_of

GRAMMAR = {"kind": "grammar", "source": "en", "target": "ru", "seed": 5,
           "pairs": {"train": 40, "dev": 9, "test": 7},
           "cleaning": {"max_words": 30, "max_length_ratio": 2.0}}  # fmt: skip
WRITTEN = ("dev.alignment.txt", "dev.source.words.txt", "dev.target.words.txt")


def files(folder: Path, **changes: Any) -> dict[str, Any]:
    """A corpus in files whose dev set has three pairs."""
    texts = {"source": ["Don't go!", "I  see it.", "Yes."], "target": ["Geh nicht!", "Ich sehe es.", "Ja."]}
    for side, lines in texts.items():
        write_lines(folder / f"dev.{side}", lines)
        write_lines(folder / f"train.{side}", [f"{line} {n}" for n in range(3) for line in lines])
    part = [{"source": "dev.source", "target": "dev.target"}]
    train = [{"source": "train.source", "target": "train.target"}]
    entry = {"kind": "files", "source": "en", "target": "de", "folder": str(folder), "train": train, "dev": part}
    return {**entry, "test": part, "cleaning": GRAMMAR["cleaning"], **changes}


def run(entry: dict[str, Any], folder: Path, split: str = "dev") -> int:
    """Build the corpus and ask for its alignment; return the exit status."""
    entry_without = {key: value for key, value in entry.items() if key != "alignment"}
    build(entry_without, folder / "built", folder)
    write_text(folder / "settings.yaml", yaml.safe_dump(entry))
    own = {f"--{side}": f"{split}.{side}.txt" for side in ("source", "target")}
    own |= {f"--{side}-words": f"{split}.{side}.words.txt" for side in ("source", "target")}
    words = [word for flag, name in own.items() for word in (flag, str(folder / "built" / name))]
    links = str(folder / "built" / f"{split}.alignment.txt")
    return main(["alignment", "--settings", str(folder / "settings.yaml"), "--split", split,
                 "--downloads", str(folder), "--links", links, *words])  # fmt: skip


STRICT = {"max_words": 7, "max_length_ratio": 1.2}


@pytest.mark.parametrize(("split", "cleaning"), [("dev", {}), ("test", {}), ("train", {}), ("train", STRICT)])
def test_the_grammar_writes_the_links_of_each_line_of_its_text_even_where_cleaning_left_lines_out(
    tmp_path: Path, split: str, cleaning: dict[str, float]
) -> None:
    assert run({**GRAMMAR, **({"cleaning": cleaning} if cleaning else {})}, tmp_path, split) == 0
    built = tmp_path / "built"
    texts = read_lines(built / f"{split}.source.txt")
    known = {}
    for pair in stream(5):
        known[pair.source] = (line_of(pair.links), " ".join(token.form for token in pair.tree))
        if set(texts) <= set(known):
            break
    assert read_lines(built / f"{split}.alignment.txt") == [known[text][0] for text in texts]
    assert read_lines(built / f"{split}.source.words.txt") == [known[text][1] for text in texts]
    assert len(texts) > 5 and (not cleaning or len(texts) < 30)


def test_an_aligners_file_speaks_of_words_between_blanks_of_the_corpus_own_text(tmp_path: Path) -> None:
    write_lines(tmp_path / "links", ["1-0 0-1", "2-2 0-0 1-1", "0-0"])
    assert run(files(tmp_path, alignment={"dev": "links"}), tmp_path) == 0
    found = [read_lines(tmp_path / "built" / name) for name in WRITTEN]
    assert found == [["0-1 1-0", "0-0 1-1 2-2", "0-0"], ["Don't go!", "I see it.", "Yes."],
                     ["Geh nicht!", "Ich sehe es.", "Ja."]]  # fmt: skip


def test_or_of_words_of_the_text_that_it_read_which_is_treated_as_the_corpus_is(tmp_path: Path) -> None:
    write_lines(tmp_path / "links", ["2-0 1-1 3-2", "0-0 1-1  2-2 3-3", "0-0 1-1"])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"Do n't go !\nI see  it .\nYes .\n"))
    write_lines(tmp_path / "cut", ["Geh nicht !", "Ich sehe es .", "Ja ."])
    given = {"dev": {"links": {"path": "links"}, "source": "cut.gz", "target": "cut"}}
    assert run(files(tmp_path, alignment=given, lowercase=True), tmp_path) == 0
    found = [read_lines(tmp_path / "built" / name) for name in WRITTEN]
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
    assert run(files(tmp_path, alignment=given), tmp_path) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: ") and sentence in said, said
    assert not [name for name in WRITTEN if (tmp_path / "built" / name).exists()]
