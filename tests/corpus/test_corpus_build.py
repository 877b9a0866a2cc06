"""Whole corpora in miniature: what is written, what is refused, and that nothing half-written stays."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from heads.base.files import UserError, read_lines, read_tsv
from heads.config.corpus_entries import checksums_of, downloads_of, local_files_of, parse_corpus
from heads.corpus.build import build, build_out_of_domain
from heads.corpus.splits import OUT_OF_DOMAIN_NAMES, OUTPUT_NAMES
from tiny_corpora import CLEANING, SAMPLE, Entry, built, entry, part, refused, write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data", SAMPLE)


def test_a_small_corpus_is_cleaned_as_counted_by_hand(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(entry(data), out, tmp_path)
    assert built(out) == set(OUTPUT_NAMES)
    assert read_lines(out / "train.source.txt") == ["a b c", "x y", "z"]
    assert read_lines(out / "train.target.txt") == ["A B C", "X Y", "Z"]
    assert read_lines(out / "test.source.txt") == ["test", "more"]
    rows = read_tsv(out / "filters.tsv")
    assert {row["filter"]: int(row["pairs_removed"]) for row in rows if row["split"] == "train"} == {
        "empty": 1, "control": 1, "max_words": 1, "length_ratio": 1, "min_overlap": 0, "duplicate": 1, "leakage": 2,
        "limit": 0}  # fmt: skip
    assert [row["pairs_left"] for row in rows][-3:] == ["3", "1", "2"]


def test_parts_are_joined_and_the_limit_takes_from_each(data: Path, tmp_path: Path) -> None:
    write(data, {"more.en.gz": [f"s {n}" for n in range(6)], "more.de": [f"t {n}" for n in range(6)]})
    parts = [*part("train"), {"source": "more.en.gz", "target": "more.de"}]
    build(entry(data, train=parts, limit=3), tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/train.source.txt") == ["z", "s 2", "s 5"]


def test_two_builds_are_alike_byte_for_byte_and_replace_what_was_there(data: Path, tmp_path: Path) -> None:
    for name in ("one", "two", "one"):
        build(entry(data), tmp_path / name, tmp_path)
    for name in OUTPUT_NAMES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


CUT = gzip.compress("".join(f"line {n}\n" for n in range(5000)).encode())[:9000]
TWO_WORDS = dict.fromkeys(("train.en", "train.de"), ["two words"] * 10)
WRONG = {"path": "train.en", "sha256": "0" * 64}
AT_URL = {"url": "https://example.org/a.tgz", "member": "a.en"}


@pytest.mark.parametrize(
    ("files", "changes", "words"),
    [
        ({"train.de": SAMPLE["train.de"][:-3]}, {}, "train.en has 10 lines and .*train.de 7, so line 8 has no"),
        ({"train.en": b"fine\nalso\xc2\xa0fine\nbro\xffken\n"}, {}, r"train\.en, line 3 is not UTF-8"),
        ({"cut.gz": CUT}, {"train": [{"source": "cut.gz", "target": "cut.gz"}]}, "cut.gz cannot be read beyond line"),
        ({}, {"dev": part("no")}, "no.en is not at"),
        ({}, {"dev": [{"source": AT_URL, "target": "dev.de"}]}, "run the fetch command"),
        ({"test.de": ["Test", " "]}, {}, "test pair at line 2 of .*test.en has an empty target"),
        (TWO_WORDS, {"cleaning": {**CLEANING, "max_words": 1}}, "train split .* 10 pairs were .* filter max_words"),
        ({"dev.en": [], "dev.de": []}, {}, "dev split of the en-de corpus is empty"),
        ({}, {"train": [{"source": WRONG, "target": "train.de"}]}, "train.en does not have the sha256 000"),
    ],
)
def test_what_is_wrong_with_a_corpus_is_told_with_file_and_line(
    data: Path, tmp_path: Path, files: Mapping[str, Sequence[str] | bytes], changes: Entry, words: str
) -> None:
    write(data, files)
    refused(entry(data, **changes), tmp_path / "out", words)


def test_a_failed_build_leaves_the_former_one_untouched(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(entry(data), out, tmp_path)
    before = {name: (out / name).read_bytes() for name in OUTPUT_NAMES}
    write(data, {"train.de": b"\xff\n"})
    with pytest.raises(UserError):
        build(entry(data), out, tmp_path)
    assert {name: (out / name).read_bytes() for name in built(out)} == before


def test_text_is_made_lower_case_in_every_split_where_a_corpus_asks_for_it(data: Path, tmp_path: Path) -> None:
    write(data, {"far.en": ["Other DOMAIN"], "far.de": ["Andere DOMÄNE"]})
    given, out = entry(data, **FAR, lowercase=True), tmp_path / "out"
    build(given, out, tmp_path)
    build_out_of_domain(given, out, tmp_path)
    assert read_lines(out / "train.target.txt") == ["a b c", "x y", "z"]
    assert read_lines(out / "dev.source.txt") == ["dev one"]
    assert read_lines(out / "test.target.txt") == ["test", "mehr"]
    assert [read_lines(out / name) for name in OUT_OF_DOMAIN_NAMES] == [["other domain"], ["andere domäne"]]


def test_held_out_sentences_leave_training_with_all_their_translations(data: Path, tmp_path: Path) -> None:
    write(data, {"train.en": [f"s {n % 30}" for n in range(90)], "train.de": [f"t {n}" for n in range(90)]})
    given = entry(data, dev=None, test=None, hold_out={"dev": 4, "test": 5})
    build(given, tmp_path / "out", tmp_path)
    train, dev, test = (read_lines(tmp_path / f"out/{split}.source.txt") for split in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (63, 4, 5)
    assert len({*dev, *test}) == 9 and not {*train} & {*dev, *test}
    assert {*train, *dev, *test} == {f"s {n}" for n in range(30)}
    refused({**given, "hold_out": {"dev": 4, "test": 27}}, tmp_path / "refused", "hold out 27 for test")


def test_lines_held_out_for_roles_stand_in_no_training_pair_and_change_neither_dev_nor_test(
    data: Path, tmp_path: Path
) -> None:
    """Each source occurs three times, once in capitals, each time with a different translation."""
    lines = [f"{'sSs'[n // 30]} {n % 30}" for n in range(90)]
    write(data, {"train.en": lines, "train.de": [f"t {n}" for n in range(90)]})
    read = {}
    for roles in (0, 7):
        hold_out = {"dev": 4, "test": 5, **({"roles": roles} if roles else {})}
        build(entry(data, dev=None, test=None, hold_out=hold_out), tmp_path / f"{roles}", tmp_path)
        read[roles] = {name: (tmp_path / f"{roles}/{name}").read_text() for name in OUTPUT_NAMES}
    assert read[0]["roles.source.txt"] == ""
    same = [name for name in OUTPUT_NAMES if name.startswith(("dev.", "test."))]
    assert [read[0][name] for name in same] == [read[7][name] for name in same]
    sources = {name: read[7][f"{name}.source.txt"].lower().splitlines() for name in ("roles", "train", "dev", "test")}
    apart = [{*found} for found in sources.values()]
    assert len(sources["roles"]) == len(apart[0]) == 7
    assert sum(map(len, apart)) == len(set().union(*apart)) == 30
    assert len(sources["train"]) == 3 * (30 - 4 - 5 - 7)


def test_lines_are_held_out_for_roles_beside_named_dev_and_test_sets_and_their_targets_may_stay(
    data: Path, tmp_path: Path
) -> None:
    write(data, {"train.en": [f"s {n}" for n in range(20)], "train.de": ["yes"] * 20})
    given = entry(data, hold_out={"roles": 6})
    build(given, tmp_path / "out", tmp_path)
    held, train = (read_lines(tmp_path / f"out/{name}.source.txt") for name in ("roles", "train"))
    assert read_lines(tmp_path / "out/dev.source.txt") == ["Dev One"]
    assert (len(held), sorted(held + train)) == (6, sorted(f"s {n}" for n in range(20)))
    assert read_lines(tmp_path / "out/train.target.txt") == ["yes"] * 14
    assert held != [f"s {n}" for n in range(6)]
    refused({**given, "hold_out": {"roles": 21}}, tmp_path / "refused", "hold out 21 for roles")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": []}, r"corpus\.train is empty: name at least one"),
        ({"train": None}, "corpus lacks the key train: add it"),
        ({"hold_out": {"dve": 1}}, r"corpus\.hold_out\.dve is not a setting.*dev\?"),
        ({"pairs": {"train": 9}}, r"corpus\.pairs is not a setting of this kind of corpus: take it out"),
        ({"dev": None}, "has no dev parts"),
        ({"hold_out": {"dev": 1, "test": 1}}, "has both hold_out and dev"),
        ({"dev": None, "hold_out": {"test": 1}}, "has no dev parts: name some, or give hold_out: {dev: N}"),
        ({"test": None, "hold_out": {"roles": 1}}, "has no test parts"),
        ({"cleaning": {**CLEANING, "min_overlap": 0.9}}, "not every train part has an overlap"),
        ({"trees": {"url": "ftp://example.org/x"}}, "does not begin with http"),
        ({"trees": {"url": "https://x", "path": "y"}}, "one of the keys path and url"),
        ({"trees": {"path": "y", "sha256": "abc"}}, "is not 64 lowercase hexadecimal digits"),
        ({"trees": {"grammar": 0}}, r"corpus\.trees\.grammar is 0, but should be greater than or equal to 1"),
        ({"trees": {"grammar": 9, "url": "https://x"}}, r"^corpus\.trees\.url does not go with grammar: keep one"),
        (
            {"trees": {"grammar": 9}, "source": "pt"},
            r"^The pt-de corpus has trees\.grammar, but .* for en only",
        ),
        ({"parser_trees": {"grammar": 9}}, r"corpus\.parser_trees\.grammar is not a setting"),
    ],
)
def test_keys_that_contradict_each_other_are_named(changes: Entry, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_corpus(entry(Path("data"), **changes))


def test_two_checksums_for_one_url_are_refused(data: Path) -> None:
    one, two = ({"url": "https://example.org/a", "sha256": digit * 64} for digit in "ab")
    assert checksums_of(parse_corpus(entry(data, trees=one))) == {"https://example.org/a": "a" * 64}
    with pytest.raises(UserError, match="two different sha256"):
        parse_corpus(entry(data, trees=one, dev=[{"source": two, "target": "dev.de"}]))


FAR = {"out_of_domain": part("far")}


def test_the_test_set_of_another_domain_is_written_beside_the_corpus_whatever_stands_in_training(
    data: Path, tmp_path: Path
) -> None:
    write(data, {"far.en": ["x  y", "last \u0007"], "far.de": ["X Y", "z"]})
    out, url = tmp_path / "out", "https://example.org/far.de"
    build(entry(data), out, tmp_path)
    build_out_of_domain(entry(data, **FAR), out, tmp_path)
    assert built(out) == {*OUTPUT_NAMES, *OUT_OF_DOMAIN_NAMES}
    assert [read_lines(out / name) for name in OUT_OF_DOMAIN_NAMES] == [["x y", "last \u0007"], ["X Y", "z"]]
    far = entry(data, out_of_domain=[{"source": "far.en", "target": {"url": url}}])
    read = parse_corpus(far)
    assert downloads_of(read) == [url] and local_files_of(read)[-1] == data / "far.en"


@pytest.mark.parametrize(
    ("source", "change", "words"),
    [
        (b" \n", FAR, "out_of_domain pair at line 1 of .*far.en has an empty source"),
        (b"", FAR, "files under out_of_domain of the en-de corpus hold no pair"),
        (b"a\n", {"out_of_domain": part("near")}, "near.en is not at"),
        (b"a\n", {}, "has no test set of another domain"),
    ],
)
def test_a_faulty_test_set_of_another_domain_is_named_and_leaves_nothing(
    data: Path, tmp_path: Path, source: bytes, change: Entry, words: str
) -> None:
    write(data, {"far.en": source, "far.de": b"A\n" if source else b""})
    with pytest.raises(UserError, match=words):
        build_out_of_domain(entry(data, **change), tmp_path / "out", tmp_path)
    assert built(tmp_path / "out") == set()
