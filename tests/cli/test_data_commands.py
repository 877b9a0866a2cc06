"""`corpus`, `out_of_domain`, `trees`, `fetch`, `parser_model` and `parser` by what they write: where each text comes
from, which setting goes where, and which trees are gold. The parser itself is replaced by a stand-in."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import heads.cli.parser as parser_command
import heads.cli.parser_model as parser_model_command
import heads.syntax.parsing
from heads.__main__ import main
from heads.base.files import read_lines, read_tsv, write_lines, write_text
from heads.config.corpus_parts import download_name
from heads.config.trainings import ParserSettings
from heads.syntax.conllu import Sentence, place, read_conllu, write_conllu
from heads.syntax.parsing import train_models
from known_experiment import command

LINES = {"train": 5, "dev": 2, "test": 3, "far": 4}
SIDES = {"source": "en", "target": "de"}
URL = "https://example.org/texts/far.de"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A corpus in files whose lines say where they come from, with another domain that is partly a download, and two
    treebanks; the filters of train do not cut dev."""
    folder, downloads = tmp_path / "given", tmp_path / "downloads"
    for split, count in LINES.items():
        for side, ending in SIDES.items():
            lines = [f"{split} {side} {number}" for number in range(count)]
            path = folder / f"{split}.{ending}"
            write_lines(downloads / download_name(URL) if path.name == "far.de" else path, lines)
    long = [(line, "w " * 9) for line in ("dev source 2", "dev source 3")]
    for place_of, ending in enumerate(SIDES.values()):
        text = folder / f"train.{ending}"
        write_lines(text, [*read_lines(text), *(pair[place_of] for pair in long)])
    for name, words in (("gold", "Birds sing"), ("learn", "Cats see cats")):
        write_conllu(folder / f"{name}.conllu", [place([(word, word, "X", 0, "root", True) for word in words.split()])])
    parts = {split: [{"source": f"{split}.en", "target": f"{split}.de"}] for split in ("train", "dev", "test")}
    entry = {"kind": "files", "source": "en", "target": "de", "folder": str(folder), **parts,
             "out_of_domain": [{"source": "far.en", "target": {"url": URL}}], "trees": "gold.conllu",
             "parser_trees": "learn.conllu", "cleaning": {"max_words": 5, "max_length_ratio": 4.0}}  # fmt: skip
    write_text(tmp_path / "entry.yaml", yaml.safe_dump(entry))
    return tmp_path


def test_each_text_of_a_corpus_holds_the_lines_of_its_own_split_and_side(given: Path) -> None:
    told = {"settings": given / "entry.yaml", "downloads": given / "downloads", "out_folder": given / "out"}
    for workers in (1, 2):
        command("corpus", **told, threads=workers)
        for split in ("train", "dev", "test"):
            for side in SIDES:
                lines = [f"{split} {side} {number}" for number in range(LINES[split])]
                assert read_lines(given / f"out/{split}.{side}.txt") == lines
    rows = [(row["split"], row["filter"], row["pairs_removed"], row["pairs_left"])
            for row in read_tsv(given / "out/filters.tsv")]  # fmt: skip
    assert ("train", "max_words", "2", "5") in rows
    assert [left for split, _, _, left in rows if split == "dev"] == ["2"]
    assert [left for split, _, _, left in rows if split == "test"] == ["3"]
    command("out_of_domain", **told)
    for side in SIDES:
        assert read_lines(given / f"out/out_of_domain.{side}.txt") == [f"far {side} {number}" for number in range(4)]


@pytest.mark.parametrize(("split", "words"), [("dev", "Birds sing"), ("train", "Cats see cats")])
def test_the_trees_of_dev_are_the_gold_ones_and_those_of_train_the_parsers(given: Path, split: str, words: str) -> None:
    out = given / f"out/{split}.conllu"
    command("trees", settings=given / "entry.yaml", split=split, downloads=given / "downloads", out=out)
    assert [tree.text for tree in read_conllu(out)] == [words]


def test_a_download_must_have_the_checksum_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that already exists is only checked."""
    out, right = tmp_path / "file", hashlib.sha256(b"what came").hexdigest()
    out.write_bytes(b"what came")
    command("fetch", url=URL, out=out, sha256=right)
    assert main(["fetch", "--url", URL, "--out", str(out), "--sha256", "0" * 64]) == 1
    assert right in capsys.readouterr().err


SETTINGS = ParserSettings(
    model="", train_sentences=50, tagger_steps=31, tagger_batch_sentences=32, parser_steps=533, parser_batch_words=34,
    width=36, embedding=37, dropout=0.38, word_dropout=0.39, seed=40,
)  # fmt: skip


def trees(count: int) -> list[Sentence]:
    return [place([(f"w{number}", "lemma", "X", 0, "root", True)]) for number in range(count)]


def told_by(words: Sequence[str]) -> dict[str, str]:
    """Flags and the words that follow them."""
    return {flag: value for flag, value in pairwise([*words, "--"]) if flag.startswith("--")}


def test_every_setting_of_the_parser_is_told_to_the_trainer_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tagger is trained and tags both parts of the treebank; the parser is trained on those tags."""
    asked: list[tuple[str, dict[str, str]]] = []
    parts: dict[str, list[str]] = {}

    def stand_in(name: str, words: Sequence[str]) -> None:
        told = told_by(words)
        asked.append((name, told))
        for flag in ("--train_file", "--eval_file"):
            if name == "tagger" and told.get(flag, "").endswith(".gold"):
                parts[Path(told[flag]).name] = [tree.text for tree in read_conllu(Path(told[flag]))]
        place_of = Path(told["--save_dir"]) / told["--save_name"]
        place_of.parent.mkdir(parents=True, exist_ok=True)
        place_of.write_text(name)

    for name in ("tagger", "parser"):
        trainer = getattr(heads.syntax.parsing, f"{name}_trainer")
        monkeypatch.setattr(trainer, "main", lambda words, n=name: stand_in(n, words))
    train_models(tmp_path / "model", "xx", trees(60), SETTINGS, torch.device("cpu"))
    drawn = [f"w{number * 60 // 50}" for number in range(50)]
    assert parts == {"check.gold": drawn[::20], "train.gold": [w for i, w in enumerate(drawn) if i % 20]}
    assert [name for name, _ in asked] == ["tagger", "tagger", "tagger", "parser"]
    for name, told in asked:
        assert told["--lang"] == "xx" and told["--shorthand"].startswith("xx_")
        assert (told["--seed"], told["--device"], told["--save_name"]) == ("40", "cpu", "trained.pt")
        assert Path(told["--save_dir"]).name == {"tagger": "pos", "parser": "depparse"}[name]
    both = {"--hidden_dim": "36", "--deep_biaff_hidden_dim": "36", "--char_hidden_dim": "18", "--word_emb_dim": "37",
            "--char_emb_dim": "37", "--tag_emb_dim": "37", "--transformed_dim": "37", "--dropout": "0.38",
            "--word_dropout": "0.39", "--optim": "adam", "--lr": "0.003", "--beta2": "0.95"}  # fmt: skip
    own = {"tagger": {"--max_steps": "31", "--eval_interval": "31", "--batch_size": "32"},
           "parser": {"--max_steps": "533", "--eval_interval": "100", "--batch_size": "34"}}  # fmt: skip
    files = {"tagger": "gold", "parser": "tagged"}
    for name, told in (asked[0], asked[-1]):
        assert {flag: told[flag] for flag in (*both, *own[name])} == {**both, **own[name]}
        assert [Path(told[f"--{part}_file"]).name for part in ("train", "eval")] == [
            f"train.{files[name]}", f"check.{files[name]}"]  # fmt: skip
    assert {(Path(told["--eval_file"]).name, Path(told["--output_file"]).name) for _, told in asked[1:3]} == {
        ("check.gold", "check.tagged"), ("train.gold", "train.tagged")}  # fmt: skip
    assert all(told["--mode"] == "predict" and "--no_gold_labels" in told for _, told in asked[1:3])
    assert (tmp_path / "model/xx/pos/trained.pt").read_text() == "tagger"
    assert (tmp_path / "model/xx/depparse/trained.pt").read_text() == "parser"


def test_a_parser_learns_from_the_treebank_and_by_the_settings_that_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(parser_model_command, "train_models", lambda *given: found.extend(given))
    write_conllu(tmp_path / "learn", trees(3))
    write_text(tmp_path / "s.yaml", yaml.safe_dump({"parser": SETTINGS.model_dump()}))
    command("parser_model", settings=tmp_path / "s.yaml", trees=tmp_path / "learn", language="xx",
            model=tmp_path / "model", device="cpu")  # fmt: skip
    assert [*found[:2], [tree.text for tree in found[2]], *found[3:]] == [
        tmp_path / "model", "xx", ["w0", "w1", "w2"], SETTINGS, torch.device("cpu")]  # fmt: skip


GOLD = [("She", 2, "nsubj"), ("saw", 0, "root"), ("dogs", 2, "obj"), ("here", 2, "advmod"), ("now", 2, "advmod")]
PARSED = [(2, "nsubj"), (0, "root"), (2, "nsubj"), (2, "nsubj"), (3, "advmod")]
"""Two relations and one head are wrong."""


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Replace Stanza: parsing gives PARSED, and the arguments it was opened with are recorded."""
    opened: list[tuple[Any, ...]] = []

    def parse(_: Any, sentences: Sequence[Sentence]) -> Iterator[Sentence]:
        for sentence in sentences:
            answers = PARSED[: len(sentence.tokens)]
            tokens = [replace(token, upos="Y", head=head, relation=relation)
                      for token, (head, relation) in zip(sentence, answers, strict=True)]  # fmt: skip
            yield replace(sentence, tokens=tuple(tokens))

    monkeypatch.setattr(parser_command, "open_models", lambda *given: opened.append(given))
    monkeypatch.setattr(parser_command, "parse", parse)
    return opened


def test_the_words_of_trees_are_parsed_and_the_parse_is_scored_against_them_and_not_the_other_way_round(
    tmp_path: Path, stood_in: list[tuple[Any, ...]]
) -> None:
    gold, parse = tmp_path / "corpus/dev.conllu", tmp_path / "x/parser/stanza.conllu"
    write_conllu(gold, [place([(form, form, "X", head, name, True) for form, head, name in GOLD])])
    command("parser", model=tmp_path / "m", language="xx", trees=gold, parsed=parse, device="cpu")
    words = ["--experiments", tmp_path / "x", "--corpora", tmp_path / "corpus", "--out", tmp_path / "table.tsv"]
    assert main(["table", "--name", "parser", *map(str, words)]) == 0
    assert stood_in == [(tmp_path / "m", "xx", torch.device("cpu"))]
    [parsed] = read_conllu(parse)
    assert [(token.form, token.head, token.relation) for token in parsed] == [
        (form, *answer) for (form, _, _), answer in zip(GOLD, PARSED, strict=True)
    ]
    rows = {row["relation"] or row["measure"]: row for row in read_tsv(tmp_path / "table.tsv")}
    counts = {name: tuple(int(row[column]) for column in ("gold", "parsed", "correct")) for name, row in rows.items()}
    assert counts == {"UPOS": (5, 5, 0), "UAS": (5, 5, 4), "LAS": (5, 5, 2), "advmod": (2, 1, 0), "nsubj": (1, 3, 1),
                      "obj": (1, 0, 0), "root": (1, 1, 1)}  # fmt: skip
    shares = [float(rows["nsubj"][f"{column}_percent"]) for column in ("precision", "recall", "f1")]
    assert shares == pytest.approx([100 / 3, 100, 50], abs=0.05)
    assert rows["obj"]["precision_percent"] == "" and rows["obj"]["recall_percent"] == "0.0"
    assert {row["experiment"] for row in rows.values()} == {"x"}


def test_plain_text_is_parsed_line_by_line_and_a_line_without_words_is_named(
    tmp_path: Path, stood_in: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"model": tmp_path / "m", "language": "xx", "text": tmp_path / "text", "parsed": tmp_path / "parsed",
            "device": "cpu"}  # fmt: skip
    write_lines(tmp_path / "text", ["She saw", "dogs here now"])
    command("parser", **told)
    assert [tree.text for tree in read_conllu(tmp_path / "parsed")] == ["She saw", "dogs here now"]
    assert len(stood_in) == 1
    write_lines(tmp_path / "text", ["She saw", " ", ""])
    assert main(["parser", *(word for flag, value in told.items() for word in (f"--{flag}", str(value)))]) == 1
    assert "text, line 2 has no words" in capsys.readouterr().err
