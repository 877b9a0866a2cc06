"""Settings of the files and parts of a corpus, with types and descriptions. Imported by the Snakefile, so light."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo

from heads.base.names import SIDES
from heads.base.packaged import slug
from heads.config.fields import Closed, Count, CountOrZero, Name, Text, YesNo, meant, required, setting
from heads.config.messages import fault

READABLE_LENGTH = 80


def download_name(url: str) -> str:
    """A file name for a URL: a short hash of the URL, then its readable end with the file extension."""
    parts = urlsplit(url)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{parts.netloc}{parts.path}").strip("-.")
    return f"{hashlib.sha256(url.encode()).hexdigest()[:10]}-{readable[-READABLE_LENGTH:]}"


def _in_folder(path: Path, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("folder", "."), path)


def _of_the_web(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise fault(f": {url!r} does not begin with http:// or https://: use path for local files.")
    return url


def _checksum(sha256: str) -> str | None:
    if sha256 != "unknown" and not re.fullmatch("[0-9a-f]{64}", sha256):
        raise fault(f": {sha256!r} is not 64 lowercase hexadecimal digits: correct it or write unknown.")
    return None if sha256 == "unknown" else sha256


class FileSpec(Closed):
    """One file: a local `path` or a `url` (exactly one is set), optionally a `member` of that archive."""

    path: Annotated[Path, AfterValidator(_in_folder)] | None = setting(None, "relative to the corpus's folder")
    url: Annotated[Text, AfterValidator(_of_the_web)] | None = setting(
        None, "an address that begins with http:// or https://"
    )
    member: Text | None = setting(None, "name of the file inside an archive")
    sha256: Annotated[Text, AfterValidator(_checksum)] | None = setting(
        None, "the file's checksum, 64 hexadecimal digits, or unknown"
    )

    @classmethod
    def check_keys(cls, content: Any, info: ValidationInfo) -> Any:
        """As in every model; in addition, exactly one of `path` and `url` must be set."""
        super().check_keys(content, info)
        if isinstance(content, Mapping) and ("path" in content) == ("url" in content):
            raise fault(" needs one of the keys path and url, not both.")
        return content

    def on_disk(self, downloads: Path) -> Path:
        """The path of the file, or of its download."""
        return self.path if self.path is not None else downloads / download_name(self.url or "")

    def __str__(self) -> str:
        place = self.url or str(self.path)
        return f"{place}, member {self.member}" if self.member else place


def _as_file(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


File = Annotated[FileSpec, BeforeValidator(_as_file, json_schema_input_type=Text | FileSpec)]


class WordAlignment(Closed):
    """An aligner's output for dev or test of a corpus, line by line; a path alone means `links`."""

    links: File = required("links in Pharaoh format, 0-0 1-2, source word before target word; one line per pair")
    source: File | None = setting(None, "the source text with spaces between words; without it, the corpus's own text")
    target: File | None = setting(None, "the target text likewise")


def _as_alignment(value: Any) -> Any:
    return {"links": value} if isinstance(value, str) or {"path", "url"} & {*keys_of(value)} else value


def keys_of(value: Any) -> Any:
    """The keys of a mapping, which show its shape; empty for anything else."""
    return value if isinstance(value, Mapping) else ()


Alignment = Annotated[
    WordAlignment, BeforeValidator(_as_alignment, json_schema_input_type=Text | FileSpec | WordAlignment)
]


class OpusOverlap(Closed):
    """Time overlaps in OPUS's format: the alignment XML, and the `.ids` file with the link of each line."""

    links: File = required("the alignment XML")
    ids: File = required("the link of each line")


Overlap = Annotated[
    Annotated[OpusOverlap, Tag("<opus>")] | Annotated[File, Tag("<file>")],
    Discriminator(lambda value: "<opus>" if {"links", "ids"} & {*keys_of(value)} else "<file>"),
]


class TwoFiles(Closed):
    """A part in two parallel files. `overlap` is OPUS's, or a file with one number per line."""

    source: File = required("the source side, a sentence per line")
    target: File = required("the target side, line by line")
    overlap: Overlap | None = setting(None, "relative time overlaps: one per line, or links and ids of OPUS")
    tagged: YesNo = setting(
        False, "true: talks of IWSLT; read what is inside <seg>...</seg>, skip other lines that begin with a tag"
    )


class Columns(Closed):
    """A part in one file with a pair per line, split at `separator`; columns are counted from 0."""

    columns: File = required("a file with a pair per line")
    separator: Annotated[Text, Field(min_length=1)] = required("the text between two columns")
    source_column: CountOrZero = required("counted from 0")
    target_column: CountOrZero = required("counted from 0")


class TestSet(Closed):
    """A part that is a sacrebleu test set, such as wmt14."""

    sacrebleu: Text = required("a test set of `sacrebleu --list`, such as wmt14/full")


def _as_number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


CountOrText = Annotated[Count, BeforeValidator(_as_number, json_schema_input_type=Count)]
"""A number that may be given as text, since all values inside the braces of --config are text."""


class GrammarTrees(Closed):
    """Sentences of the embedded grammar with their trees, in place of a treebank for an English source."""

    grammar: CountOrText = required("number of distinct English sentences; a larger number begins with the same ones")

    @classmethod
    def about_unknown(cls, key: object) -> str:
        """The message about a key of a file, which settings laid over this mapping may have added."""
        return f".{key} does not go with grammar: keep one of the two, or give a file's path alone."


Treebank = Annotated[
    Annotated[GrammarTrees, Tag("<grammar>")] | Annotated[File, Tag("<file>")],
    Discriminator(lambda value: "<grammar>" if "grammar" in keys_of(value) else "<file>"),
]
DISTILLED = Path("results", "distilled")
"""The folder where the text of distilled parts is written."""


class Distilled(Closed):
    """A part whose targets are a model's translations (sequence-level knowledge distillation, Kim and Rush 2016).

    Its source sentences come from a file, or from the documentation of the installed Python packages.
    """

    distilled_by: Text = required("the model that translates: a folder, or a name such as firefox/en-pt")
    sentences: CountOrText = required("how many are translated, drawn from all that are clean and distinct")
    after: CountOrZero = setting(0, "how many are skipped first, so that several parts have none in common")
    source: File | None = setting(
        None, "a file with a sentence per line; without it, the documentation of installed Python packages"
    )

    @property
    def name(self) -> str:
        """The name of its files: the model, and a short hash of all that they depend on."""
        content = f"{self.distilled_by} {self.sentences} {self.after} {self.source or ''}"
        return f"{slug(self.distilled_by)}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"

    @property
    def files(self) -> TwoFiles:
        """The two files that the translated text is written to."""
        source, target = (FileSpec(path=DISTILLED / f"{self.name}.{side}.txt") for side in SIDES)
        return TwoFiles(source=source, target=target)


def _shape(value: Any) -> str:
    keys = keys_of(value)
    if "distilled_by" in keys:
        return "<distilled>"
    return "<test set>" if "sacrebleu" in keys else "<columns>" if "columns" in keys else "<two files>"


Part = Annotated[
    Annotated[TwoFiles, Tag("<two files>")]
    | Annotated[Columns, Tag("<columns>")]
    | Annotated[TestSet, Tag("<test set>")]
    | Annotated[Distilled, Tag("<distilled>")],
    Discriminator(_shape),
]
Parts = Annotated[tuple[Part, ...], Field(min_length=1)]
ColumnName = Annotated[
    CountOrZero | Text, meant("a column's name in the first line, or its number from 0 if the first line has no names")
]


class ExampleColumns(Closed):
    """The columns of sentences and labels: names, or numbers in a table whose first line is an example."""

    premise: ColumnName = required("column of the first or only sentence")
    label: ColumnName = required("column of the label")
    hypothesis: ColumnName | None = setting(None, "column of the second sentence; left out if there is only one")

    @property
    def sentences(self) -> tuple[int | str, ...]:
        """The columns of the sentences, in order."""
        return (self.premise,) if self.hypothesis is None else (self.premise, self.hypothesis)

    @property
    def named(self) -> bool:
        """Whether the first line of a table names its columns."""
        return isinstance(self.premise, str)


class Table(Closed):
    """A part in one file with an example per line, its columns separated by tabs and never quoted."""

    table: File = required("a file with an example per line")
    only: Mapping[Text, Text] = setting({}, "use only lines that have these words in the columns of these names")
    ragged: YesNo = setting(False, "true: lines may lack their last columns, if none of those is read")


class GrammarExamples(Closed):
    """A part written by the embedded grammar: premises and hypotheses, see `heads.corpus.grammar.inference`."""

    grammar: CountOrText = required(
        "number of pairs, best a multiple of nine; a larger number begins with the same pairs"
    )


def _by_word(value: Any) -> Any:
    """A list of labels as a mapping of each to itself, and numbers as text: YAML reads 0 as a number, tables do not."""
    if isinstance(value, list | tuple):
        return {_text(word): _text(word) for word in value}
    if isinstance(value, Mapping):
        return {_text(word): _text(label) for word, label in value.items()}
    return value


def _text(word: Any) -> Any:
    return str(word) if isinstance(word, int) and not isinstance(word, bool) else word


def _several(labels: Mapping[str, str]) -> Mapping[str, str]:
    if len({*labels.values()}) < 2:
        raise fault(" must be two labels or more, to choose from.")
    return labels


Labels = Annotated[
    Mapping[Text, Name],
    BeforeValidator(_by_word, json_schema_input_type=tuple[Name | int, ...] | Mapping[str, Name]),
    AfterValidator(_several),
]
"""The label that each word in the label column of a table stands for."""
ExamplePart = Annotated[
    Annotated[GrammarExamples, Tag("<grammar>")] | Annotated[Table, Tag("<table>")],
    Discriminator(lambda value: "<grammar>" if "grammar" in keys_of(value) else "<table>"),
]
ExampleParts = Annotated[tuple[ExamplePart, ...], Field(min_length=1)]
