"""Parts of corpora in all their forms: columns, tagged talks, subtitles with overlaps, test sets of sacrebleu."""

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from checkouts import configuration
from heads.base.files import UserError, read_lines
from heads.base.names import SIDES
from heads.config import corpus_parts
from heads.config.corpus_entries import downloads_of, local_files_of, parse_corpus
from heads.config.corpus_parts import download_name
from heads.corpus.build import build
from heads.corpus.pairs import open_pairs
from tiny_corpora import CLEANING, SAMPLE, Entry, entry, part, refused, write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data", SAMPLE)


def texts(given: Entry, tmp_path: Path, split: str) -> list[list[str]]:
    """Both sides of a split as built."""
    build(given, tmp_path / "out", tmp_path)
    return [read_lines(tmp_path / f"out/{split}.{side}.txt") for side in SIDES]


def test_members_columns_and_downloads_are_read_like_plain_files(data: Path, tmp_path: Path) -> None:
    url = "https://example.org/wiki.zip"
    with zipfile.ZipFile(tmp_path / download_name(url), "w") as archive:
        archive.writestr("wiki.de-en", "Hund ||| dog\nKatze ||| cat\n")
    columns = {"columns": {"url": url, "member": "wiki.de-en"}, "separator": " ||| ", "target_column": 0}
    given = entry(data, train=[{**columns, "source_column": 1}])
    assert texts(given, tmp_path, "train") == [["dog", "cat"], ["Hund", "Katze"]]
    read = parse_corpus(given)
    assert downloads_of(read) == [url] and local_files_of(read)[0] == data / "dev.en"
    few = entry(data, train=[{**columns, "source_column": 2}])
    refused(few, tmp_path / "refused", r"wiki\.de-en, line 1 has 2 columns, not 3")


HEADER = ["<url>http://x</url>", "<keywords>talks, {0}</keywords>", "<talkid>1</talkid>", "<title>Titel</title>"]
TRAIN, TEST = "train.tags.de-en.{}", "IWSLT14.TED.tst2010.de-en.{}.xml"
TAGGED = {
    # Also: surrounding white space, a `<` that starts no tag, an entity outside XML, a segment that contains a tag.
    TRAIN: [*HEADER, " Eins {0} ", "<3 & {0}", "<description>TED {0}</description>", "Drei &amp; {0}"],
    TEST: [
        '<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", '<srcset setid="x" srclang="{0}">', *HEADER,
        '<seg id="1"> Frag &amp; &lt;Antwort&gt; {0} </seg>', '  <seg id="2"><i>Zwei</i> {0}</seg>', "</srcset>",
    ],
}  # fmt: skip
URL = "https://example.org/de-en.tgz"


def tagged_archive(path: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Write an archive laid out like IWSLT14: each file in both languages, with the language in its text."""
    with tarfile.open(path, "w:gz") as archive:
        for name, lines in names.items():
            for language in ("de", "en"):
                content = "".join(f"{line.replace('{0}', language)}\n" for line in lines).encode()
                info = tarfile.TarInfo(f"de-en/{name.format(language)}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def tagged_part(name: str) -> list[Entry]:
    source, target = ({"url": URL, "member": f"de-en/{name.format(side)}"} for side in ("de", "en"))
    return [{"source": source, "target": target, "tagged": True}]


def test_of_tagged_talks_the_segments_count_or_else_the_lines_without_a_tag(data: Path, tmp_path: Path) -> None:
    tagged_archive(tmp_path / download_name(URL), TAGGED)
    given = entry(data, train=tagged_part(TRAIN), test=tagged_part(TEST))
    train, test = (texts(given, tmp_path, split) for split in ("train", "test"))
    assert train == [[f"Eins {one}", f"<3 & {one}", f"Drei &amp; {one}"] for one in ("de", "en")]
    assert test == [[f"Frag & <Antwort> {one}", f"<i>Zwei</i> {one}"] for one in ("de", "en")]


def test_a_fault_in_tagged_talks_is_told_with_the_line_of_the_file(data: Path, tmp_path: Path) -> None:
    tagged_archive(tmp_path / download_name(URL), {**TAGGED, TEST: [*TAGGED[TEST][:8], '<seg id="2"> </seg>']})
    given = entry(data, train=tagged_part(TRAIN), test=tagged_part(TEST))
    refused(given, tmp_path / "out", r"test pair at line 9 of .*tst2010.de-en.de.xml has an empty source")


def test_the_entry_of_iwslt14_reads_an_archive_of_that_shape(tmp_path: Path) -> None:
    given = {**configuration()["corpora"]["iwslt14-de-en"], "hold_out": {"dev": 2}}
    (url,) = downloads_of(parse_corpus(given))
    sets = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    talks = {TRAIN: [*HEADER, *(f"Satz {number} {{0}}" for number in range(9))]}
    talks |= {f"IWSLT14.{name}.de-en.{{}}.xml": ["<mteval>", f"<seg id='1'>{name} {{0}}</seg>"] for name in sets}
    tagged_archive(tmp_path / download_name(url), talks)
    test = texts(given, tmp_path, "test")
    assert test == [[f"{name.lower()} {language}" for name in sets] for language in ("de", "en")]
    dev, train = (read_lines(tmp_path / f"out/{split}.target.txt") for split in ("dev", "train"))
    assert sorted(dev + train) == [f"satz {number} en" for number in range(9)] and len(dev) == 2


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
    overlap = {"links": "s.xml.gz", "ids": "s.ids"}
    cleaning = {**CLEANING, "min_overlap": 0.9, "leakage": "source"}
    return entry(data, train=[{**part("s")[0], "overlap": overlap}], cleaning=cleaning)


def test_overlaps_of_opus_are_found_for_each_line_past_links_without_text(data: Path, tmp_path: Path) -> None:
    assert texts(subtitles(data, IDS), tmp_path, "train")[0] == ["p", "r"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([*IDS[:2], ("2", "9", "1", "1"), IDS[3]], "s.ids, line 3 names a link"),
        (IDS[:3], "s.en end before its line 4"),
        (IDS[::-1], "s.ids, line 2 names a link"),
    ],
)
def test_an_alignment_that_does_not_fit_the_text_is_refused_with_its_line(
    data: Path, tmp_path: Path, ids: Sequence[tuple[str, ...]], words: str
) -> None:
    refused(subtitles(data, ids), tmp_path / "out", words)


def test_overlaps_one_a_line_must_be_numbers_and_as_many_as_the_lines(data: Path, tmp_path: Path) -> None:
    cleaning = {**CLEANING, "min_overlap": 0.5}
    given = entry(data, train=[{**part("dev")[0], "overlap": "o.txt"}], dev=part("test"), cleaning=cleaning)
    write(data, {"o.txt": ["0.5"]})
    assert texts(given, tmp_path, "train")[0] == ["Dev One"]
    for lines, words in ((["0.5", "0.7"], "has 1 lines, but more overlaps"), (["much"], "o.txt, line 1 is not a numb")):
        write(data, {"o.txt": lines})
        refused(given, tmp_path / "refused", words)


def test_a_test_set_of_sacrebleu_gives_its_source_and_first_reference(
    monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path
) -> None:
    from sacrebleu.dataset import DATASETS

    monkeypatch.setattr(DATASETS["wmt14"], "get_source_file", lambda pair: str(data / "test.en"))
    monkeypatch.setattr(DATASETS["wmt14"], "get_reference_files", lambda pair: [str(data / "test.de"), "second"])
    given = entry(data, test=[{"sacrebleu": "wmt14"}])
    assert texts(given, tmp_path, "test") == [SAMPLE["test.en"], SAMPLE["test.de"]]


@pytest.mark.parametrize(
    ("name", "languages", "words"),
    [
        ("wmt13", ("en", "ru"), "could not give its test set wmt13 for en-ru .SystemExit"),
        ("wmt13", ("en", "fi"), "has no en-fi, only"),
        ("wmt1", ("en", "ru"), "does not know the test set wmt1"),
    ],
)
def test_a_test_set_that_sacrebleu_cannot_give_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, languages: tuple[str, str], words: str
) -> None:
    from sacrebleu.dataset import DATASETS

    def leave(langpair: str) -> str:
        raise SystemExit(1)

    monkeypatch.setattr(DATASETS["wmt13"], "get_source_file", leave)
    with pytest.raises(UserError, match=words):
        next(open_pairs(corpus_parts.TestSet(sacrebleu=name), tmp_path, languages))
