"""Whole corpora in miniature: what is written, what is refused, and that nothing half-written stays."""

from __future__ import annotations

import argparse
import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from checkouts import configuration
from heads.base.files import UserError, read_lines, read_tsv, read_yaml
from heads.base.names import SIDES, SPLITS
from heads.cli import corpus as corpus_command
from heads.cli import trees as trees_command
from heads.config import corpus_parts
from heads.config.corpus_entries import checksums_of, downloads_of, local_files_of, parse_corpus
from heads.config.corpus_parts import download_name
from heads.corpus import build as build_module
from heads.corpus.build import build, build_out_of_domain
from heads.corpus.pairs import open_pairs
from heads.corpus.splits import OUT_OF_DOMAIN_NAMES, OUTPUT_NAMES
from heads.syntax.conllu import place, read_conllu

Entry = dict[str, Any]
CLEANING = {"max_words": 5, "max_length_ratio": 3.0}
SAMPLE = {
    "train.en": ["a b c", "a b c", "", "1 2 3 4 5 6", "one", "dev one", "other", "last \u0007", "x y", "z"],
    "train.de": ["A B C", "A B C", "x", "1 2 3 4", "1 2 3 4", "free", "DEV  eins", "letzte", "X Y", "Z"],
    "dev.en": ["Dev One"],
    "dev.de": ["dev eins"],
    "test.en": ["test", "more"],
    "test.de": ["Test", "mehr"],
}


def write(folder: Path, files: dict[str, list[str]]) -> None:
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def entry(folder: Path, **changes: Any) -> Entry:
    parts = {split: [{"source": f"{split}.en", "target": f"{split}.de"}] for split in ("train", "dev", "test")}
    base = {
        "kind": "files",
        "source": "en",
        "target": "de",
        "folder": str(folder),
        "cleaning": CLEANING,
        **parts,
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path / "data", SAMPLE)
    return tmp_path / "data"


def built(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def refused(given: Entry, out: Path, words: str) -> None:
    with pytest.raises(UserError, match=words):
        build(given, out, out / "downloads")
    assert built(out) == set()


def test_a_small_corpus_is_cleaned_as_counted_by_hand(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(entry(data), out, tmp_path)
    assert built(out) == set(OUTPUT_NAMES)
    assert read_lines(out / "train.source.txt") == ["a b c", "x y", "z"]
    assert read_lines(out / "train.target.txt") == ["A B C", "X Y", "Z"]
    assert read_lines(out / "test.source.txt") == ["test", "more"]
    removed = {
        row["filter"]: int(row["pairs_removed"]) for row in read_tsv(out / "filters.tsv") if row["split"] == "train"
    }
    assert removed == {
        "empty": 1,
        "control": 1,
        "max_words": 1,
        "length_ratio": 1,
        "min_overlap": 0,
        "duplicate": 1,
        "leakage": 2,
        "limit": 0,
    }
    assert [row["pairs_left"] for row in read_tsv(out / "filters.tsv")][-3:] == ["3", "1", "2"]


def test_parts_are_joined_and_the_limit_takes_from_each(data: Path, tmp_path: Path) -> None:
    write(data, {"more.en.gz": [f"s {n}" for n in range(6)], "more.de": [f"t {n}" for n in range(6)]})
    parts = [{"source": "train.en", "target": "train.de"}, {"source": "more.en.gz", "target": "more.de"}]
    build(entry(data, train=parts, limit=3), tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/train.source.txt") == ["z", "s 2", "s 5"]


def test_two_builds_are_alike_byte_for_byte_and_replace_what_was_there(data: Path, tmp_path: Path) -> None:
    for name in ("one", "two", "one"):
        build(entry(data), tmp_path / name, tmp_path)
    for name in OUTPUT_NAMES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_sides_of_different_length_are_refused_with_both_lengths(data: Path, tmp_path: Path) -> None:
    write(data, {"train.de": SAMPLE["train.de"][:-3]})
    refused(entry(data), tmp_path / "out", "train.en has 10 lines and .*train.de 7, so line 8 has no partner")


def test_broken_utf8_is_refused_with_its_line(data: Path, tmp_path: Path) -> None:
    (data / "train.en").write_bytes(b"fine\nalso\xc2\xa0fine\nbro\xffken\n")
    refused(entry(data), tmp_path / "out", r"train\.en, line 3 is not UTF-8")


def test_a_truncated_gzip_is_refused_and_named(data: Path, tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"line {n}\n" for n in range(5000)).encode())
    (data / "cut.en.gz").write_bytes(whole[: len(whole) // 2])
    parts = [{"source": "cut.en.gz", "target": "cut.en.gz"}]
    refused(entry(data, train=parts), tmp_path / "out", "cut.en.gz cannot be read beyond line")


def test_a_missing_file_and_a_missing_download_are_named(data: Path, tmp_path: Path) -> None:
    refused(entry(data, dev=[{"source": "no.en", "target": "dev.de"}]), tmp_path / "out", "no.en is not at")
    url = {"url": "https://example.org/a.tgz", "member": "a.en"}
    refused(entry(data, dev=[{"source": url, "target": "dev.de"}]), tmp_path / "out", "run the fetch command")


def test_an_empty_line_in_a_test_set_is_an_error_with_its_line(data: Path, tmp_path: Path) -> None:
    write(data, {"test.de": ["Test", " "]})
    refused(entry(data), tmp_path / "out", "test pair at line 2 of .*test.en has an empty target")


def test_a_split_that_cleaning_empties_is_an_error_that_names_the_filter(data: Path, tmp_path: Path) -> None:
    write(data, {side: ["two words"] * 10 for side in ("train.en", "train.de")})
    strict = {"max_words": 1, "max_length_ratio": 3.0}
    refused(
        entry(data, cleaning=strict),
        tmp_path / "out",
        "train split .* 10 pairs were read .* by the filter max_words",
    )
    write(data, {"dev.en": [], "dev.de": []})
    refused(entry(data), tmp_path / "out", "dev split of the en-de corpus is empty")


def test_a_failed_build_leaves_the_former_one_untouched(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(entry(data), out, tmp_path)
    before = {name: (out / name).read_bytes() for name in OUTPUT_NAMES}
    (data / "train.de").write_bytes(b"\xff\n")
    with pytest.raises(UserError):
        build(entry(data), out, tmp_path)
    assert {name: (out / name).read_bytes() for name in built(out)} == before


def test_members_columns_and_downloads_are_read_like_plain_files(data: Path, tmp_path: Path) -> None:
    url = "https://example.org/wiki.zip"
    with zipfile.ZipFile(tmp_path / download_name(url), "w") as archive:
        archive.writestr("wiki.de-en", "Hund ||| dog\nKatze ||| cat\n")
    columns = {
        "columns": {"url": url, "member": "wiki.de-en"},
        "separator": " ||| ",
        "source_column": 1,
        "target_column": 0,
    }
    given = entry(data, train=[columns])
    build(given, tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/train.source.txt") == ["dog", "cat"]
    assert read_lines(tmp_path / "out/train.target.txt") == ["Hund", "Katze"]
    assert downloads_of(given) == [url] and local_files_of(given)[0] == data / "dev.en"
    columns["source_column"] = 2
    with pytest.raises(UserError, match=r"wiki\.de-en, line 1 has 2 columns, not 3"):
        build(given, tmp_path / "refused", tmp_path)


HEADER = ["<url>http://x</url>", "<keywords>talks, {0}</keywords>", "<talkid>1</talkid>", "<title>Titel</title>"]
TAGGED = {
    # Also: surrounding white space, a `<` that starts no tag, an entity outside XML, a segment that contains a tag.
    "train.tags.de-en.{}": [*HEADER, " Eins {0} ", "<3 & {0}", "<description>TED {0}</description>", "Drei &amp; {0}"],
    "IWSLT14.TED.tst2010.de-en.{}.xml": [
        '<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", '<srcset setid="x" srclang="{0}">', *HEADER,
        '<seg id="1"> Frag &amp; &lt;Antwort&gt; {0} </seg>', '  <seg id="2"><i>Zwei</i> {0}</seg>', "</srcset>",
    ],
}  # fmt: skip


def tagged_archive(path: Path, names: dict[str, list[str]], languages: Sequence[str] = ("de", "en")) -> None:
    """Write an archive laid out like IWSLT14: each file in both languages, with the language in its text."""
    with tarfile.open(path, "w:gz") as archive:
        for name, lines in names.items():
            for language in languages:
                content = "".join(f"{line.replace('{0}', language)}\n" for line in lines).encode()
                info = tarfile.TarInfo(f"de-en/{name.format(language)}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def tagged_part(name: str, url: str) -> Entry:
    files = {side: {"url": url, "member": f"de-en/{name.format(side)}"} for side in ("de", "en")}
    return {"source": files["de"], "target": files["en"], "tagged": True}


def test_of_tagged_talks_the_segments_count_or_else_the_lines_without_a_tag(data: Path, tmp_path: Path) -> None:
    url = "https://example.org/de-en.tgz"
    train, test = TAGGED
    tagged_archive(tmp_path / download_name(url), TAGGED)
    given = entry(data, train=[tagged_part(train, url)], test=[tagged_part(test, url)])
    build(given, tmp_path / "out", tmp_path)
    sides = {side: {split: read_lines(tmp_path / f"out/{split}.{side}.txt") for split in ("train", "test")}
             for side in SIDES}  # fmt: skip
    for side, language in zip(SIDES, ("de", "en"), strict=True):
        assert sides[side] == {
            "train": [f"Eins {language}", f"<3 & {language}", f"Drei &amp; {language}"],
            "test": [f"Frag & <Antwort> {language}", f"<i>Zwei</i> {language}"],
        }


def test_a_fault_in_tagged_talks_is_told_with_the_line_of_the_file(data: Path, tmp_path: Path) -> None:
    url = "https://example.org/de-en.tgz"
    train, test = TAGGED
    faulty = {**TAGGED, test: [*TAGGED[test][:8], '<seg id="2"> </seg>']}
    tagged_archive(tmp_path / download_name(url), faulty)
    given = entry(data, train=[tagged_part(train, url)], test=[tagged_part(test, url)])
    refused(given, tmp_path / "out", "is not at")
    (tmp_path / "out/downloads").mkdir(parents=True)
    tagged_archive(tmp_path / "out/downloads" / download_name(url), faulty)
    with pytest.raises(UserError, match=r"test pair at line 9 of .*tst2010.de-en.de.xml has an empty source"):
        build(given, tmp_path / "out", tmp_path / "out/downloads")


def test_text_is_made_lower_case_in_every_split_where_a_corpus_asks_for_it(data: Path, tmp_path: Path) -> None:
    write(data, {"out.en": ["Other DOMAIN"], "out.de": ["Andere DOMÄNE"]})
    other = [{"source": "out.en", "target": "out.de"}]
    given = entry(data, out_of_domain=other, lowercase=True)
    build(given, tmp_path / "out", tmp_path)
    build_out_of_domain(given, tmp_path / "out", tmp_path)
    texts = {name: read_lines(tmp_path / f"out/{name}.txt") for name in (
        "train.target", "dev.source", "test.target", "out_of_domain.source", "out_of_domain.target")}  # fmt: skip
    assert texts == {
        "train.target": ["a b c", "x y", "z"],
        "dev.source": ["dev one"],
        "test.target": ["test", "mehr"],
        "out_of_domain.source": ["other domain"],
        "out_of_domain.target": ["andere domäne"],
    }


def test_the_entry_of_iwslt14_reads_an_archive_of_that_shape(tmp_path: Path) -> None:
    config = configuration()
    given = {**config["corpora"]["iwslt14-de-en"], "hold_out": {"dev": 2}}
    (url,) = downloads_of(given)
    sets = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    talks = {"train.tags.de-en.{}": [*HEADER, *(f"Satz {number} {{0}}" for number in range(9))]}
    talks |= {f"IWSLT14.{name}.de-en.{{}}.xml": ["<mteval>", f"<seg id='1'>{name} {{0}}</seg>"] for name in sets}
    tagged_archive(tmp_path / download_name(url), talks)
    build(given, tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/test.source.txt") == [f"{name.lower()} de" for name in sets]
    assert read_lines(tmp_path / "out/test.target.txt") == [f"{name.lower()} en" for name in sets]
    dev, train = (read_lines(tmp_path / f"out/{split}.target.txt") for split in ("dev", "train"))
    assert sorted(dev + train) == [f"satz {number} en" for number in range(9)] and len(dev) == 2


def test_held_out_sentences_leave_training_with_all_their_translations(data: Path, tmp_path: Path) -> None:
    write(data, {"train.en": [f"s {n % 30}" for n in range(90)], "train.de": [f"t {n}" for n in range(90)]})
    given = entry(data, dev=None, test=None, hold_out={"dev": 4, "test": 5})
    build(given, tmp_path / "out", tmp_path)
    sources = {split: read_lines(tmp_path / f"out/{split}.source.txt") for split in ("train", "dev", "test")}
    assert [len(sources[split]) for split in ("train", "dev", "test")] == [63, 4, 5]
    assert len(set(sources["dev"]) | set(sources["test"])) == 9
    assert set().union(*sources.values()) == {f"s {n}" for n in range(30)}
    assert not set(sources["train"]) & (set(sources["dev"]) | set(sources["test"]))
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
    held = read[7]["roles.source.txt"].lower().splitlines()
    train = read[7]["train.source.txt"].lower().splitlines()
    apart = [
        set(held),
        set(train),
        *({*read[7][f"{split}.source.txt"].lower().splitlines()} for split in ("dev", "test")),
    ]
    assert len(held) == len(set(held)) == 7
    assert sum(map(len, apart)) == len(set().union(*apart)) == 30
    assert len(train) == 3 * (30 - 4 - 5 - 7)


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


LINKS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">
<cesAlign version="1.0">
<linkGrp targType="s" fromDoc="en/1.xml.gz" toDoc="de/7.xml.gz">
<link id="SL0" xtargets=";1" />
<link id="SL1" xtargets="1 2;2" overlap="0.95" />
<link id="SL2" xtargets="3;3" overlap="0.40" />
</linkGrp>
<linkGrp targType="s" fromDoc="en/2.xml.gz" toDoc="de/8.xml.gz">
<link id="SL0" xtargets="1;1" overlap="0.91" />
<link id="SL1" xtargets="2;2" />
</linkGrp>
</cesAlign>
"""
IDS = [("1", "7", "1 2", "2"), ("1", "7", "3", "3"), ("2", "8", "1", "1"), ("2", "8", "2", "2")]


def subtitles(data: Path, ids: Sequence[tuple[str, ...]]) -> Entry:
    lines = [f"en/{a}.xml.gz\tde/{b}.xml.gz\t{c}\t{d}" for a, b, c, d in ids]
    write(data, {"s.en": list("pqrs"), "s.de": list("PQRS"), "s.ids": lines, "s.xml.gz": LINKS.splitlines()})
    part = {"source": "s.en", "target": "s.de", "overlap": {"links": "s.xml.gz", "ids": "s.ids"}}
    return entry(data, train=[part], cleaning={**CLEANING, "min_overlap": 0.9, "leakage": "source"})


def test_overlaps_of_opus_are_found_for_each_line_past_links_without_text(data: Path, tmp_path: Path) -> None:
    build(subtitles(data, IDS), tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/train.source.txt") == ["p", "r"]


def test_an_alignment_that_does_not_fit_the_text_is_refused_with_its_line(data: Path, tmp_path: Path) -> None:
    refused(
        subtitles(data, [*IDS[:2], ("2", "9", "1", "1"), IDS[3]]),
        tmp_path / "out",
        "s.ids, line 3 names a link",
    )
    refused(subtitles(data, IDS[:3]), tmp_path / "out", "s.en end before its line 4")
    refused(subtitles(data, IDS[::-1]), tmp_path / "out", "s.ids, line 2 names a link")


def test_overlaps_one_a_line_must_be_numbers_and_as_many_as_the_lines(data: Path, tmp_path: Path) -> None:
    part = {"source": "dev.en", "target": "dev.de", "overlap": "o.txt"}
    given = entry(data, train=[part], dev=[{"source": "test.en", "target": "test.de"}])
    given["cleaning"] = {**CLEANING, "min_overlap": 0.5}
    write(data, {"o.txt": ["0.5"]})
    build(given, tmp_path / "good", tmp_path)
    write(data, {"o.txt": ["0.5", "0.7"]})
    refused(given, tmp_path / "out", "has 1 lines, but more overlaps")
    write(data, {"o.txt": ["much"]})
    refused(given, tmp_path / "out", "o.txt, line 1 is not a number")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": []}, r"corpus\.train is empty: name at least one"),
        ({"train": None}, "corpus lacks the key train: add it"),
        ({"hold_out": {"dve": 1}}, r"corpus\.hold_out\.dve is not a setting.*dev\?"),
        (
            {"pairs": {"train": 9, "dev": 1, "test": 1}},
            r"corpus\.pairs is not a setting of this kind of corpus: take it out",
        ),
        ({"dev": None}, "has no dev parts"),
        ({"hold_out": {"dev": 1, "test": 1}}, "has both hold_out and dev"),
        ({"dev": None, "hold_out": {"test": 1}}, "has no dev parts: name some, or give hold_out: {dev: N}"),
        ({"test": None, "hold_out": {"roles": 1}}, "has no test parts"),
        ({"cleaning": {**CLEANING, "min_overlap": 0.9}}, "not every train part has an overlap"),
        ({"trees": {"url": "ftp://example.org/x"}}, "does not begin with http"),
        ({"trees": {"url": "https://x", "path": "y"}}, "one of the keys path and url"),
        ({"trees": {"path": "y", "sha256": "abc"}}, "is not 64 lowercase hexadecimal digits"),
        ({"trees": {"grammar": 0}}, r"corpus\.trees\.grammar: 0 is less than the minimum of 1"),
        ({"trees": {"grammar": 9, "url": "https://x"}}, r"^corpus\.trees\.url does not go with grammar: keep one"),
        (
            {"trees": {"grammar": 9}, "source": "pt"},
            r"^The pt-de corpus has trees\.grammar, but the grammar writes trees for en only: name a treebank",
        ),
        ({"parser_trees": {"grammar": 9}}, r"corpus\.parser_trees\.grammar is not a setting"),
    ],
)
def test_keys_that_contradict_each_other_are_named(data: Path, changes: Entry, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_corpus(entry(data, **changes))


def test_two_checksums_for_one_url_are_refused(data: Path) -> None:
    one, two = ({"url": "https://example.org/a", "sha256": digit * 64} for digit in "ab")
    assert checksums_of(entry(data, trees=one)) == {"https://example.org/a": "a" * 64}
    with pytest.raises(UserError, match="two different sha256"):
        parse_corpus(entry(data, trees=one, dev=[{"source": two, "target": "dev.de"}]))


def test_a_local_file_with_another_checksum_is_refused(data: Path, tmp_path: Path) -> None:
    part = {"source": {"path": "train.en", "sha256": "0" * 64}, "target": "train.de"}
    refused(entry(data, train=[part]), tmp_path / "out", "train.en does not have the sha256 000")


FAR = {"out_of_domain": [{"source": "far.en", "target": "far.de"}]}


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
    assert downloads_of(far) == [url] and local_files_of(far)[-1] == data / "far.en"


@pytest.mark.parametrize(
    ("source", "change", "words"),
    [
        (b"a\nb\n", FAR, "2 lines and .*far.de 1, so line 2"),
        (b"\xff\n", FAR, "far.en, line 1 is not UTF-8"),
        (b" \n", FAR, "out_of_domain pair at line 1 of .*far.en has an empty source"),
        (b"", FAR, "files under out_of_domain of the en-de corpus hold no pair"),
        (b"a\n", {"out_of_domain": [{"source": "near.en", "target": "far.de"}]}, "near.en is not at"),
        (b"a\n", {}, "has no test set of another domain"),
    ],
)
def test_a_faulty_test_set_of_another_domain_is_named_and_leaves_nothing(
    data: Path, tmp_path: Path, source: bytes, change: Entry, words: str
) -> None:
    (data / "far.en").write_bytes(source)
    (data / "far.de").write_bytes(b"A\n" if source else b"")
    with pytest.raises(UserError, match=words):
        build_out_of_domain(entry(data, **change), tmp_path / "out", tmp_path)
    assert built(tmp_path / "out") == set()


def test_a_test_set_of_sacrebleu_gives_its_source_and_first_reference(
    monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path
) -> None:
    from sacrebleu.dataset import DATASETS

    monkeypatch.setattr(DATASETS["wmt14"], "get_source_file", lambda pair: str(data / "test.en"))
    monkeypatch.setattr(DATASETS["wmt14"], "get_reference_files", lambda pair: [str(data / "test.de"), "second"])
    build(entry(data, test=[{"sacrebleu": "wmt14"}]), tmp_path / "out", tmp_path)
    assert read_lines(tmp_path / "out/test.source.txt") == SAMPLE["test.en"]
    assert read_lines(tmp_path / "out/test.target.txt") == SAMPLE["test.de"]


def test_a_test_set_that_sacrebleu_cannot_download_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from sacrebleu.dataset import DATASETS

    def leave(langpair: str) -> str:
        raise SystemExit(1)

    monkeypatch.setattr(DATASETS["wmt13"], "get_source_file", leave)
    for name, languages, words in (
        ("wmt13", ("en", "ru"), "could not give its test set wmt13 for en-ru .SystemExit"),
        ("wmt13", ("en", "fi"), "has no en-fi, only"),
        ("wmt1", ("en", "ru"), "does not know the test set wmt1"),
    ):
        with pytest.raises(UserError, match=words):
            next(open_pairs(corpus_parts.TestSet(sacrebleu=name), tmp_path, languages))


COUNTS = {"train": 60, "dev": 7, "test": 5}


def numbers(seed: int, *, with_trees: bool = False) -> Iterator[SimpleNamespace]:
    """A stand-in for the grammar: sentences "word N", every fifth too long for the cleaning of `demo`."""
    for number in range(seed, 10**6):
        words = ["word", str(number)] + ["again"] * (5 if number % 5 == 0 else 0)
        tree = place((word, word, "X", 0 if index == 0 else 1, "dep", True) for index, word in enumerate(words))
        yield SimpleNamespace(source=" ".join(words), target=f"{number} s l o", tree=tree if with_trees else None)


def only(split: str) -> Iterator[SimpleNamespace]:
    return (pair for pair in numbers(3) if by_number(pair.source) == split)


def by_number(sentence: str) -> str:
    return {0: "dev", 1: "test"}.get(next(int(word) for word in sentence.split() if word.isdigit()) % 7, "train")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "grammar", SimpleNamespace(stream=numbers, split_of=by_number))


def demo(tmp_path: Path, max_words: int = 6) -> Path:
    settings = tmp_path / "demo.yaml"
    content = {"kind": "grammar", "source": "en", "target": "ru", "seed": 3, "pairs": COUNTS}
    cleaning = {"max_words": max_words, "max_length_ratio": 9.0}
    settings.write_text(yaml.safe_dump({**content, "cleaning": cleaning}))
    out = tmp_path / "out"
    corpus_command.run(argparse.Namespace(settings=read_yaml(settings), downloads=tmp_path, out_folder=out, threads=1))
    return settings


def demo_trees(tmp_path: Path, settings: Path, split: str) -> Path:
    out = tmp_path / f"out/{split}.conllu"
    trees_command.run(argparse.Namespace(settings=read_yaml(settings), split=split, downloads=tmp_path, out=out))
    return out


def test_a_generated_corpus_takes_the_first_pairs_of_each_split_and_cleans_training_only(
    tmp_path: Path, stand_in: None
) -> None:
    demo(tmp_path)
    expected = {split: [pair.source for pair in islice(only(split), count)] for split, count in COUNTS.items()}
    assert read_lines(tmp_path / "out/dev.source.txt") == expected["dev"]
    assert read_lines(tmp_path / "out/test.source.txt") == expected["test"]
    short = [line for line in expected["train"] if "again" not in line]
    assert read_lines(tmp_path / "out/train.source.txt") == short and len(short) < 60


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_generated_trees_stand_beside_the_text_even_where_cleaning_left_lines_out(
    tmp_path: Path, stand_in: None, split: str
) -> None:
    out = demo_trees(tmp_path, demo(tmp_path), split)
    assert [tree.text for tree in read_conllu(out)] == read_lines(tmp_path / f"out/{split}.source.txt")


def test_trees_for_a_text_that_is_not_of_the_grammar_are_refused(tmp_path: Path, stand_in: None) -> None:
    settings = demo(tmp_path)
    with (tmp_path / "out/dev.source.txt").open("a", encoding="utf-8") as stream:
        stream.write("no such sentence\n")
    with pytest.raises(UserError, match=r"dev\.source\.txt, line 8 does not come from this grammar"):
        demo_trees(tmp_path, settings, "dev")
    assert not (tmp_path / "out/dev.conllu").exists()


def test_the_embedded_grammar_goes_through_the_same_door(tmp_path: Path) -> None:
    settings = demo(tmp_path, max_words=100)
    for split, count in COUNTS.items():
        lines = read_lines(tmp_path / f"out/{split}.source.txt")
        assert len(lines) == len(set(lines))
        assert len(lines) == count or split == "train"
        trees = demo_trees(tmp_path, settings, split)
        assert [tree.text for tree in read_conllu(trees)] == lines


def test_no_sentence_of_the_embedded_grammar_stands_in_two_splits_on_either_side(tmp_path: Path) -> None:
    demo(tmp_path, max_words=100)
    for side in SIDES:
        found = [line for split in SPLITS for line in set(read_lines(tmp_path / f"out/{split}.{side}.txt"))]
        assert len(found) == len(set(found))


TREE = "1\tBirds\tbird\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsing\tsing\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def ask_for_trees(data: Path, tmp_path: Path, given: Entry, split: str) -> Path:
    settings, out = tmp_path / "entry.yaml", tmp_path / f"{split}.conllu"
    settings.write_text(yaml.safe_dump(given))
    trees_command.run(argparse.Namespace(settings=read_yaml(settings), split=split, downloads=tmp_path, out=out))
    return out


def test_the_treebank_of_a_corpus_in_files_is_unpacked_once_it_reads_well(data: Path, tmp_path: Path) -> None:
    (data / "t.conllu.gz").write_bytes(gzip.compress(TREE.encode()))
    out = ask_for_trees(data, tmp_path, entry(data, trees="t.conllu.gz"), "dev")
    assert out.read_text() == TREE
    out.unlink()
    (data / "t.conllu.gz").write_bytes(gzip.compress(TREE.replace("\t2\t", "\tx\t").encode()))
    with pytest.raises(UserError, match=r"t\.conllu\.gz, line 1"):
        ask_for_trees(data, tmp_path, entry(data, trees="t.conllu.gz"), "dev")
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TREE.encode() * 99, mtime=0)[:-20], r"t\.conllu\.gz cannot be read to its end"),
        (b"no gzip", r"t\.conllu\.gz cannot be read to its end"),
        (gzip.compress(b"", mtime=0), r"t\.conllu\.gz holds no sentence"),
        (gzip.compress(b"\n\n", mtime=0), r"t\.conllu\.gz holds no sentence"),
    ],
    ids=["cut", "no-gzip", "empty", "blank"],
)
def test_a_treebank_that_is_damaged_or_empty_is_refused_and_named(
    data: Path, tmp_path: Path, content: bytes, words: str
) -> None:
    (data / "t.conllu.gz").write_bytes(content)
    with pytest.raises(UserError, match=words):
        ask_for_trees(data, tmp_path, entry(data, trees="t.conllu.gz"), "dev")
    assert not list(tmp_path.glob("*.conllu*"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_trees_that_a_corpus_does_not_have_are_refused(data: Path, tmp_path: Path, split: str) -> None:
    (data / "t.conllu").write_text(TREE)
    with pytest.raises(UserError, match=f"no trees for {split}"):
        ask_for_trees(data, tmp_path, entry(data, trees=None if split == "dev" else "t.conllu"), split)
    assert not list(tmp_path.glob("*.conllu"))


def tree_lines(data: Path, tmp_path: Path, count: int | str) -> list[list[list[str]]]:
    """The columns of each word of each sentence, as the command writes them for `trees: {grammar: count}`."""
    written = ask_for_trees(data, tmp_path, entry(data, trees={"grammar": count}), "dev").read_text(encoding="utf-8")
    words = [[line.split("\t") for line in one.split("\n") if line[:1].isdigit()] for one in written.split("\n\n")]
    return [sentence for sentence in words if sentence]


def test_the_grammar_writes_so_many_distinct_trees_each_with_one_root_the_same_each_time(
    data: Path, tmp_path: Path
) -> None:
    found = tree_lines(data, tmp_path, 40)
    assert found == tree_lines(data, tmp_path, "40")
    assert found[:15] == tree_lines(data, tmp_path, 15)
    assert len({tuple(word[1] for word in sentence) for sentence in found}) == len(found) == 40
    for sentence in found:
        heads = {word[0]: word[6] for word in sentence}
        assert [word[7] == "root" for word in sentence] == [head == "0" for head in heads.values()]
        assert [*heads.values()].count("0") == 1
        for word in heads:
            path = [word]
            while path[-1] != "0":
                path.append(heads[path[-1]])
                assert len(path) <= len(sentence) + 1, "a word hangs on itself"


def test_no_sentence_that_heads_are_measured_on_is_trained_on_in_a_corpus_of_the_grammar(
    data: Path, tmp_path: Path
) -> None:
    """With the same seed, so that one stream gives both: a text may be made from such a corpus."""
    out = ask_for_trees(data, tmp_path, entry(data, trees={"grammar": 25}), "dev")
    measured = [tree.text for tree in read_conllu(out)]
    pairs = {"train": 900, "dev": 25, "test": 1}
    grammar = {"kind": "grammar", "source": "en", "target": "ru", "seed": 1, "pairs": pairs}
    build({**grammar, "cleaning": {"max_words": 100, "max_length_ratio": 9.0}}, tmp_path / "out", tmp_path)
    assert not {*measured} & {*read_lines(tmp_path / "out/train.source.txt")}
    assert measured == read_lines(tmp_path / "out/dev.source.txt"), "they are the demo's"
