"""The raw sentence pairs of a part of a corpus, read line by line in constant memory."""

import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from html import unescape
from itertools import repeat, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from heads.base.fetch import open_bytes
from heads.base.files import UserError
from heads.config.corpus_parts import Columns, Distilled, FileSpec, OpusOverlap, Part, TestSet, TwoFiles

SEGMENT = re.compile(r"\s*<seg\b[^>]*>(.*)</seg>\s*")
OTHER_TAG = re.compile(r"\s*<[?!/]?[A-Za-z][^<>]*>")
BROKEN_FILE = (EOFError, zlib.error, lzma.LZMAError, OSError, tarfile.TarError, zipfile.BadZipFile)


class RawPair(NamedTuple):
    """A pair as written in a file, with its line counted from 1 and its time overlap if the part has one."""

    source: str
    target: str
    file: str
    line: int
    overlap: float | None


def open_pairs(part: Part, downloads: Path, languages: tuple[str, str]) -> Iterator[RawPair]:
    """The pairs of one part in order.

    Raises UserError, naming file and line, for a missing or damaged file, text that is not UTF-8, sides of different
    length and a test set that sacrebleu cannot provide.
    """
    if isinstance(part, TestSet):
        part = sacrebleu_files(part.sacrebleu, languages)
    if isinstance(part, Distilled):
        part = part.files
    if isinstance(part, Columns):
        yield from column_pairs(part, downloads)
        return
    overlaps = repeat(None) if part.overlap is None else overlap_numbers(part.overlap, downloads)
    sources, targets = (sentences(file, downloads, tagged=part.tagged) for file in (part.source, part.target))
    file, number = str(part.source), 0
    for number, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            rest = 1 + sum(1 for _ in (sources if target is None else targets))
            lengths = (number - 1 + rest, number - 1) if target is None else (number - 1, number - 1 + rest)
            raise UserError(
                f"{part.source} has {lengths[0]} lines and {part.target} {lengths[1]}, so line {number} has no "
                "partner: give two files that are aligned line by line."
            )
        try:
            yield RawPair(source[1], target[1], file, source[0], next(overlaps))
        except StopIteration:
            raise UserError(f"The overlaps of {part.source} end before its line {number}: give one per line.") from None
    if part.overlap is not None and next(overlaps, None) is not None:
        raise UserError(f"{part.source} has {number} lines, but more overlaps: give one per line.")


def column_pairs(part: Columns, downloads: Path) -> Iterator[RawPair]:
    """The pairs of a file that has both sides on each line."""
    wanted, file = max(part.source_column, part.target_column) + 1, str(part.columns)
    for line, text in enumerate(read_text(part.columns, downloads), 1):
        columns = text.split(part.separator)
        if len(columns) < wanted:
            raise UserError(
                f"{file}, line {line} has {len(columns)} columns, not {wanted}: correct it or the separator."
            )
        yield RawPair(columns[part.source_column], columns[part.target_column], file, line, None)


def sentences(file: FileSpec, downloads: Path, *, tagged: bool) -> Iterator[tuple[int, str]]:
    """The sentences of a file, each with its line number from 1.

    tagged: an IWSLT file. Test sets have one segment per line; tagged lines about each talk are skipped.
    """
    for line, text in enumerate(read_text(file, downloads), 1):
        if not tagged:
            yield line, text
        elif segment := SEGMENT.fullmatch(text):
            yield line, unescape(segment[1])
        elif not OTHER_TAG.match(text):
            yield line, text


def read_text(file: FileSpec, downloads: Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their line feeds, the only line ends, and without a byte order mark."""
    line = 0
    try:
        with open_bytes(file.on_disk(downloads), file.member) as stream:
            for line, raw in enumerate(stream, 1):
                text = raw.decode("utf-8").removesuffix("\n")
                yield text.removeprefix("\ufeff") if line == 1 else text
    except UnicodeDecodeError as error:
        raise UserError(f"{file}, line {line} is not UTF-8 ({error.reason}): convert the file to UTF-8.") from None
    except BROKEN_FILE as error:
        again = "delete it and fetch it again" if file.url else "put a complete file in its place"
        raise UserError(f"{file} cannot be read beyond line {line} ({error}): {again}.") from None


def sacrebleu_files(name: str, languages: tuple[str, str]) -> TwoFiles:
    """Source and first reference of a test set, which sacrebleu downloads to its own cache if needed."""
    from sacrebleu.dataset import DATASETS

    pair = "-".join(languages)
    test_set: Any = DATASETS.get(name)
    if test_set is None:
        raise UserError(f"sacrebleu does not know the test set {name}: choose one from `sacrebleu --list`.")
    if pair not in test_set.langpairs:
        raise UserError(f"sacrebleu's test set {name} has no {pair}, only {', '.join(test_set.langpairs)}.")
    try:
        source = test_set.get_source_file(pair)
        reference = test_set.get_reference_files(pair)[0]
    # sacrebleu raises bare exceptions and even exits when a download fails.
    except (Exception, SystemExit) as error:
        raise UserError(
            f"sacrebleu could not give its test set {name} for {pair} ({type(error).__name__}: {error}): "
            f"run `sacrebleu -t {name} -l {pair} --echo src` where there is network, or give files by path."
        ) from None
    return TwoFiles(source=FileSpec(path=Path(source)), target=FileSpec(path=Path(reference)))


def overlap_numbers(overlap: FileSpec | OpusOverlap, downloads: Path) -> Iterator[float]:
    """The relative time overlap of each line of a part."""
    if isinstance(overlap, OpusOverlap):
        yield from opus_overlaps(overlap, downloads)
        return
    for line, text in enumerate(read_text(overlap, downloads), 1):
        try:
            yield float(text)
        except ValueError:
            raise UserError(f"{overlap}, line {line} is not a number: give one overlap per line.") from None


def opus_overlaps(overlap: OpusOverlap, downloads: Path) -> Iterator[float]:
    """The overlap of each line of the `.ids` file, found by reading the alignment in step with it.

    The text omits links with an empty side or without words but keeps the order, so each line's link is the
    next one with its documents and ids. A link without an overlap counts as 0.
    """
    with open_bytes(overlap.links.on_disk(downloads), overlap.links.member) as stream:
        links = opus_links(stream, overlap.links)
        for line, text in enumerate(read_text(overlap.ids, downloads), 1):
            names = tuple(column.strip() for column in text.split("\t"))
            if len(names) != 4:
                raise UserError(
                    f"{overlap.ids}, line {line} does not have the four columns of an OPUS .ids file: check it."
                )
            found = next((number for link, number in links if link == names), None)
            if found is None:
                raise UserError(
                    f"{overlap.ids}, line {line} names a link that is missing or out of order in {overlap.links}: "
                    "take both files from the same OPUS release."
                )
            yield found


def opus_links(stream: IO[bytes], file: FileSpec) -> Iterator[tuple[tuple[str, ...], float]]:
    """The links of an OPUS alignment in XML (xces), in order: two documents and the ids of both sides; the overlap."""
    documents: tuple[str, ...] = ()
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            if event == "start" and element.tag == "linkGrp":
                documents = (element.attrib["fromDoc"], element.attrib["toDoc"])
            elif event == "end" and element.tag == "link":
                source, _, target = element.attrib["xtargets"].partition(";")
                yield (*documents, source.strip(), target.strip()), float(element.attrib.get("overlap", 0))
                element.clear()
            elif event == "end" and element.tag == "linkGrp":
                element.clear()
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise UserError(
            f"{file} is not an OPUS alignment ({error}): give the xces file of the language pair."
        ) from None
