"""Labelled examples in tables: what is written, what is left out and counted, and what is refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from checkouts import configuration
from heads.base.files import UserError, read_lines, read_tsv
from heads.config.corpora import ExamplesCorpus
from heads.config.corpus_entries import downloads_of, parse_corpus
from heads.corpus.annotations import alignment_of, write_treebank
from heads.corpus.build import build, build_out_of_domain
from heads.corpus.splits import OUT_OF_DOMAIN_NAMES, OUTPUT_NAMES
from tiny_corpora import TREE, Entry, built, refused, write

HEADER = "id\tverdict\tfirst\tsecond\tnote"
TRAIN = [
    HEADER,
    "1\tE\tA dog  runs .\tAn animal runs .\tx",
    "2\tN\tA dog runs .\tIt is late .\tx",
    "3\tC\tA cat sleeps .\tNo cat sleeps .\tx",
]
DEV = [HEADER, "4\tC\tOne bird sings .\tNo bird sings .\t", "5\t-\tWho ?\tWhat ?\t"]
TEST = [HEADER, "6\tE\tTwo men talk .\tMen talk .\t", "7\tN\tTwo men talk .\tIt rains .\t", "8\t-\t\t\t"]


def entry(folder: Path, **changes: Any) -> Entry:
    base = {
        "kind": "pairs_of_sentences",
        "source": "en",
        "folder": str(folder),
        "columns": {"premise": "first", "hypothesis": "second", "label": "verdict"},
        "labels": {"E": "entailed", "N": "neutral", "C": "contradicted"},
        "unlabelled": ["-"],
        "cleaning": {"max_words": 6},
        **{split: [{"table": f"{split}.tsv"}] for split in ("train", "dev", "test")},
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data", {"train.tsv": TRAIN, "dev.tsv": DEV, "test.tsv": TEST})


def examples(given: Entry, out: Path, split: str) -> list[tuple[str, str]]:
    build(given, out, out.parent)
    texts = (read_lines(out / f"{split}.{side}.txt") for side in ("source", "target"))
    return list(zip(*texts, strict=True))


def removed(out: Path, split: str) -> dict[str, int]:
    return {row["filter"]: int(row["pairs_removed"]) for row in read_tsv(out / "filters.tsv") if row["split"] == split}


def test_a_line_has_premise_tab_hypothesis_and_the_label_that_the_settings_give_its_word(
    data: Path, tmp_path: Path
) -> None:
    assert examples(entry(data), tmp_path / "out", "train") == [
        ("A dog runs .\tAn animal runs .", "entailed"),
        ("A dog runs .\tIt is late .", "neutral"),
        ("A cat sleeps .\tNo cat sleeps .", "contradicted"),
    ]
    assert built(tmp_path / "out") == {*OUTPUT_NAMES}
    assert read_lines(tmp_path / "out/roles.source.txt") == []


def test_examples_without_a_label_are_left_out_of_every_split_and_counted(data: Path, tmp_path: Path) -> None:
    write(data, {"train.tsv": [*TRAIN, "9\t-\tx\t\tempty, but of no account"]})
    out = tmp_path / "out"
    assert len(examples(entry(data), out, "train")) == 3
    assert read_lines(out / "dev.source.txt") == ["One bird sings .\tNo bird sings ."]
    assert read_lines(out / "test.target.txt") == ["entailed", "neutral"]
    assert [removed(out, split)["unlabelled"] for split in ("train", "dev", "test")] == [1, 1, 1]
    rows = [row for row in read_tsv(out / "filters.tsv") if row["split"] != "train"]
    assert [(row["filter"], row["pairs_in"], row["pairs_left"]) for row in rows] == [
        ("unlabelled", "2", "1"),
        ("unlabelled", "3", "2"),
    ]


def test_a_label_in_a_table_may_have_other_capitals(data: Path, tmp_path: Path) -> None:
    told = {"labels": {"e": "entailed", "n": "neutral", "c": "contradicted"}}
    found = [label for _, label in examples(entry(data, **told), tmp_path / "out", "train")]
    assert found == ["entailed", "neutral", "contradicted"]


def test_a_quotation_mark_is_a_character_like_any_other(data: Path, tmp_path: Path) -> None:
    write(data, {"train.tsv": [*TRAIN, '9\tN\t"He left\tHe said "no\tx', "10\tE\tHe went\tHe left\tx"]})
    assert examples(entry(data), tmp_path / "out", "train")[3:] == [
        ('"He left\tHe said "no', "neutral"),
        ("He went\tHe left", "entailed"),
    ]


def test_one_sentence_alone_stands_in_a_table_without_names_whose_first_line_is_an_example(
    data: Path, tmp_path: Path
) -> None:
    for split, word in (("train", "good"), ("dev", "fine"), ("test", "fair")):
        write(data, {f"{split}.tsv": [f"x\t0\t*\t{word} book the", f"x\t1\t\tthe {word} book"]})
    cola = {"columns": {"premise": 3, "label": 1}, "labels": {0: "unacceptable", 1: "acceptable"}, "unlabelled": None}
    out = tmp_path / "out"
    assert examples(entry(data, **cola), out, "train") == [
        ("good book the", "unacceptable"),
        ("the good book", "acceptable"),
    ]
    assert read_lines(out / "dev.source.txt") == ["fine book the", "the fine book"]


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_no_text(data: Path, tmp_path: Path) -> None:
    plain = examples(entry(data), tmp_path / "plain", "train")
    # The label comes last, where a line ending would stick to it.
    swapped = [line.split("\t") for line in TRAIN]
    write(data, {"train.tsv": ("\ufeff" + "".join(f"{c[2]}\t{c[3]}\t{c[1]}\r\n" for c in swapped)).encode()})
    assert examples(entry(data), tmp_path / "out", "train") == plain


def test_lines_of_one_table_are_told_apart_by_a_word_in_a_column(data: Path, tmp_path: Path) -> None:
    write(data, {"all.tsv": [HEADER, *(line[:-1] + "T" for line in TRAIN[1:]), *(f"{line}D" for line in DEV[1:])]})
    both: Entry = {
        split: [{"table": "all.tsv", "only": {"note": word}}] for split, word in (("train", "T"), ("dev", "D"))
    }
    out = tmp_path / "out"
    assert len(examples(entry(data, **both), out, "train")) == 3
    assert read_lines(out / "dev.target.txt") == ["contradicted"]
    both["dev"][0]["only"]["verdict"] = "C"  # as one line of train has too
    assert len(examples(entry(data, **both), out, "dev")) == 1


def test_lines_may_end_early_where_a_table_is_said_to_be_ragged_and_no_column_that_is_read_is_missing(
    data: Path, tmp_path: Path
) -> None:
    write(data, {"train.tsv": [*TRAIN, "9\tE\ta b\tb c"]})
    refused(entry(data), tmp_path / "out", r"train\.tsv, line 5 has 4 columns, but its first line has 5: fix it\.$")
    ragged = entry(data, train=[{"table": "train.tsv", "ragged": True}])
    assert examples(ragged, tmp_path / "out", "train")[3] == ("a b\tb c", "entailed")
    write(data, {"train.tsv": [*TRAIN, "9\tE\ta b"]})
    refused(ragged, tmp_path / "other", r"train\.tsv, line 5 has 3 columns")
    write(data, {"train.tsv": [*TRAIN, "9\tE\ta b\tb c\tx\ty"]})
    refused(ragged, tmp_path / "other", r"train\.tsv, line 5 has 6 columns")


def test_each_filter_takes_its_examples_and_is_counted(data: Path, tmp_path: Path) -> None:
    more = [
        "9\tN\tbell \a rings\tit rings\t",
        "10\tN\tone two three four five six\tone\t",
        "11\tN\tone\tone two three four five six seven\t",
        "12\tE\tA dog runs .\tAn  animal runs .\t",
        "13\tC\tA dog runs .\tAn animal runs .\t",
        "14\tC\tONE bird sings .\tno bird sings .\t",
        "15\tN\tMen talk .\tTwo men talk .\t",
        "16\tC\tTwo men talk .\tNobody talks .\t",
    ]
    write(data, {"train.tsv": [*TRAIN, *more]})
    out = tmp_path / "out"
    assert examples(entry(data), out, "train")[3:] == [
        ("one two three four five six\tone", "neutral"),
        ("A dog runs .\tAn animal runs .", "contradicted"),
        ("Two men talk .\tNobody talks .", "contradicted"),
    ]
    taken = {"unlabelled": 0, "control": 1, "max_words": 1, "duplicate": 1, "leakage": 2, "limit": 0}
    assert removed(out, "train") == taken


def test_held_out_examples_are_distinct_stand_in_no_other_split_and_leave_the_rest(data: Path, tmp_path: Path) -> None:
    lines = [f"{n}\t{'ENC'[n % 3]}\tword {n // 2}\tother {n % 2}\t" for n in range(40)]
    write(data, {"train.tsv": [HEADER, *lines]})
    given, out = entry(data, dev=None, test=None, hold_out={"dev": 7, "test": 5}), tmp_path / "out"
    build(given, out, tmp_path)
    texts = {split: read_lines(out / f"{split}.source.txt") for split in ("train", "dev", "test")}
    assert [len(texts[split]) for split in ("train", "dev", "test")] == [28, 7, 5]
    assert len({text for split in texts.values() for text in split}) == 40
    write(data, {"train.tsv": [HEADER, *lines[:11]]})
    refused(given, tmp_path / "few", "too few distinct sources to hold out 5 for test")


def test_a_limit_takes_evenly_from_all_tables(data: Path, tmp_path: Path) -> None:
    for name, letter in (("one", "a"), ("two", "b")):
        write(data, {f"{name}.tsv": [HEADER, *(f"{n}\t{'ENC'[n % 3]}\t{letter} {n}\tx\t" for n in range(20))]})
    given = entry(data, train=[{"table": "one.tsv"}, {"table": "two.tsv"}], limit=10)
    kept = [text[0] for text, _ in examples(given, tmp_path / "out", "train")]
    assert Counter(kept) == {"a": 5, "b": 5} and removed(tmp_path / "out", "train")["limit"] == 30


@pytest.mark.parametrize(
    ("lines", "changes", "words"),
    [
        (["9\tX\ta\tb\t"], {}, r"train\.tsv, line 5 has the label 'X', which labels does not list: add it there"),
        (["9\t\ta\tb\t"], {}, r"train\.tsv, line 5 has the label ''"),
        (["9\tE\t \tb\t"], {}, r"train\.tsv, line 5 has an empty premise: fill it in or take the line out\.$"),
        (["9\tE\ta\t\t"], {}, r"train\.tsv, line 5 has an empty hypothesis"),
        (["9\tE\ta b\t"], {}, r"train\.tsv, line 5 has 4 columns, but its first line has 5"),
        ([], {"columns": {"premise": "frist", "label": "verdict"}}, r"no column 'frist' .* Did you mean first\?"),
        ([], {"columns": {"premise": 2, "label": 5}}, r"dev\.tsv has 5 columns, so no column 5 counted from 0"),
        ([], {"labels": ["E", "N", "C", "M"]}, r"no training example with the label 'M': take it out of labels"),
        ([], {"train": [{"table": "none.tsv"}]}, r"none\.tsv: put it there or correct its name"),
        ([], {"train": [{"table": {"url": "https://x/y.tsv"}}]}, r"https://x/y\.tsv is not at .*: run the fetch"),
        ([], {"cleaning": {"max_words": 1}}, r"train split .* 3 pairs were read .* 3 of them by the filter max_words"),
        ([], {"dev": [{"table": "empty.tsv"}]}, r"empty\.tsv is empty: give a table with one example per line"),
        ([], {"dev": [{"table": "bare.tsv"}]}, r"dev split of the en corpus is empty"),
        ([], {"dev": [{"table": "twice.tsv"}]}, r"twice\.tsv has several columns 'first'"),
        ([], {"dev": [{"table": "latin.tsv"}]}, r"latin\.tsv, line 2 is not UTF-8"),
    ],
)
def test_a_fault_in_a_table_is_told_in_one_sentence_and_leaves_nothing_behind(
    data: Path, tmp_path: Path, lines: list[str], changes: Entry, words: str
) -> None:
    write(data, {"train.tsv": [*TRAIN, *lines]})
    write(data, {"empty.tsv": [], "bare.tsv": [HEADER], "twice.tsv": [HEADER.replace("note", "first")]})
    write(data, {"latin.tsv": f"{HEADER}\n1\tE\tcaf\u00e9\tx\t\n".encode("latin-1")})
    refused(entry(data, **changes), tmp_path / "out", words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": {"premise": "first", "label": 1}}, "names some columns and numbers others"),
        ({"columns": {"premise": 2, "label": 1}, "dev": [{"table": "x", "only": {"a": "b"}}]}, "names some columns"),
        ({"columns": {"premise": -1, "label": 1}}, r"columns\.premise: -1 is not a column's name in the first line"),
        ({"columns": {"label": 1}}, r"corpus\.columns lacks the key premise: add it"),
        ({"labels": ["E"]}, r"corpus\.labels must be two labels or more"),
        ({"labels": {"E": "same", "N": "same"}}, r"corpus\.labels must be two labels or more"),
        ({"labels": {"E": "in two words", "N": "same"}}, r"corpus\.labels\.E: 'in two words' is not a name"),
        ({"unlabelled": ["E"]}, "has 'E' in labels and unlabelled: keep one of the two"),
        ({"dev": None}, r"has no dev parts: name some, or give hold_out: {dev: N}"),
        ({"hold_out": {"dev": 3}}, "has both hold_out and dev"),
        ({"hold_out": {"roles": 3}}, r"hold_out\.roles is not a setting"),
        ({"target": "de"}, r"corpus\.target is not a setting of this kind of corpus"),
        ({"train": [{"tabel": "x"}]}, r"train\.0\.tabel is not a setting.*table\?"),
        ({"cleaning": {"max_words": 5, "leakage": "either"}}, r"cleaning\.leakage is not a setting"),
    ],
)
def test_settings_of_examples_that_contradict_each_other_are_refused(changes: Entry, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_corpus(entry(Path("data"), **changes))


def test_another_domain_is_written_as_test_is_and_only_where_there_is_one(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(data, {"far.tsv": [HEADER, "1\tN\tfar  off\tnear\t", "2\t-\tno\tlabel\t"]})
    build_out_of_domain(entry(data, out_of_domain=[{"table": "far.tsv"}]), out, tmp_path)
    assert built(out) == {*OUT_OF_DOMAIN_NAMES}
    assert read_lines(out / "out_of_domain.source.txt") == ["far off\tnear"]
    assert read_lines(out / "out_of_domain.target.txt") == ["neutral"]
    with pytest.raises(UserError, match="The en corpus has no test set of another domain"):
        build_out_of_domain(entry(data), out, tmp_path)
    write(data, {"far.tsv": [HEADER]})
    with pytest.raises(UserError, match="files under out_of_domain of the en corpus hold no pair"):
        build_out_of_domain(entry(data, out_of_domain=[{"table": "far.tsv"}]), out, tmp_path)


def test_every_corpus_of_examples_in_config_yaml_can_be_read_and_says_where_it_comes_from() -> None:
    corpora = configuration()["corpora"]
    parsed = {name: parse_corpus(entry) for name, entry in corpora.items()}
    found = {name: {*one.labels.values()} for name, one in parsed.items() if isinstance(one, ExamplesCorpus)}
    inference = {"entailment", "neutral", "contradiction"}
    assert found == {
        "mnli": inference,
        "sst-2": {"negative", "positive"},
        "cola": {"unacceptable", "acceptable"},
        "mrpc": {"different", "same"},
        "snli": inference,
        "sick": inference,
        "grammar-sick": inference,
    }
    assert all(downloads_of(parsed[name]) for name in found)


def test_examples_have_no_words_to_align(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has labels in place of translations"):
        alignment_of(parse_corpus(entry(data)), "dev", [data / "dev.tsv", data / "dev.tsv"], tmp_path)


NAMED_ALIKE: Entry = {"E": "entailment", "N": "neutral", "C": "contradiction"}
UNDECIDED: Entry = {**NAMED_ALIKE, "N": "undecided"}


def test_parts_of_the_grammar_are_the_first_pairs_of_its_own_corpus(data: Path, tmp_path: Path) -> None:
    own = {"kind": "grammar_pairs", "source": "en", "seed": 1, "pairs": {"train": 27, "dev": 9, "test": 18}}
    parts = {
        "train": [{"table": "train.tsv"}, {"grammar": 18}],
        "dev": [{"grammar": 9}],
        "out_of_domain": [{"grammar": "18"}],
        "cleaning": {"max_words": 60},
    }
    given = entry(data, labels=NAMED_ALIKE, **parts)
    written = {split: examples(own, tmp_path / "own", split) for split in ("train", "dev", "test")}
    found = examples(given, tmp_path / "out", "train")
    assert [label for _, label in found[:3]] == ["entailment", "neutral", "contradiction"]
    assert found[3:] == written["train"][:18]
    assert examples(given, tmp_path / "out", "dev") == written["dev"]
    build_out_of_domain(given, tmp_path / "out", tmp_path)
    texts = (read_lines(tmp_path / "out" / name) for name in OUT_OF_DOMAIN_NAMES)
    assert list(zip(*texts, strict=True)) == written["test"]


@pytest.mark.parametrize(
    "changes",
    [
        {"train": [{"grammar": 9}]},
        {"train": [{"grammar": 9}], "labels": UNDECIDED},
        {"train": [{"grammar": 9}], "labels": NAMED_ALIKE, "columns": {"premise": "first", "label": "verdict"}},
    ],
)
def test_pairs_of_the_grammar_are_refused_where_labels_or_columns_are_others(
    data: Path, tmp_path: Path, changes: Entry
) -> None:
    words = "cannot have pairs of the grammar under train: they have two sentences and the labels entailment, contrad"
    refused(entry(data, **changes), tmp_path / "out", words)


def test_a_corpus_of_examples_may_bring_trees(data: Path, tmp_path: Path) -> None:
    (data / "trees.conllu").write_text(TREE, encoding="utf-8")
    given = parse_corpus(entry(data, trees="trees.conllu"))
    assert isinstance(given, ExamplesCorpus)
    write_treebank(given, "dev", tmp_path, tmp_path / "dev.conllu")
    assert (tmp_path / "dev.conllu").read_text(encoding="utf-8") == TREE
    with pytest.raises(UserError, match="The en corpus has no trees for train"):
        write_treebank(given, "train", tmp_path, tmp_path / "train.conllu")
    with pytest.raises(UserError, match=r"The de corpus has trees\.grammar, but the grammar writes trees for en only"):
        parse_corpus(entry(data, source="de", trees={"grammar": 3}))
