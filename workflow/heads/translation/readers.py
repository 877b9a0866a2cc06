"""Read the formats of `heads.formats.registry`: convert third-party models and their vocabularies to ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heads.base.files import UserError, write_text
from heads.base.provenance import made_by
from heads.formats.registry import format_of
from heads.model.encoder import Encoder
from heads.model.folder import save_folder
from heads.translation.bert_folder import read_bert
from heads.translation.encoders_alone import write_subwords_and_labels
from heads.translation.export import new_folder
from heads.translation.export_page import page, use_of
from heads.translation.fairseq_folder import read_fairseq
from heads.translation.from_bert import drawn_anew, labels_of, model_of_bert
from heads.translation.from_firefox import model_of_firefox, read_firefox, write_firefox_vocabularies
from heads.translation.from_marian import model_of_marian
from heads.translation.importing import write_vocabularies
from heads.translation.importing_fairseq import frame_of, write_fairseq_vocabularies
from heads.translation.marian_folder import read_marian
from heads.translation.model_folder import about_of

NO_LANGUAGES = ("", "")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of an import besides the folder."""

    prefix: str = ""
    """What each source sentence begins with."""
    labels: Sequence[str] = ()
    seed: int = 0
    """For weights that the model came without."""
    source_language: str = ""
    target_language: str = ""
    """As a multilingual model calls them."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The functions that read a format."""

    model: Callable[[Path, Wishes], Encoder]
    """Returns the model, in evaluation mode."""
    vocabularies: Callable[[Path, Path, Wishes], None]
    """Writes the vocabularies of a folder into another, and the model's original files beside them."""


def _bert(folder: Path, wishes: Wishes) -> Encoder:
    theirs = read_bert(folder)
    if anew := drawn_anew(theirs):
        print(anew, file=sys.stderr)
    return model_of_bert(theirs, wishes.labels, wishes.seed)


def _bert_vocabulary(folder: Path, place: Path, wishes: Wishes) -> None:
    theirs = read_bert(folder)
    write_subwords_and_labels(theirs, place, labels_of(theirs, wishes.labels))


def _no_prefix(wishes: Wishes, why: str) -> None:
    if wishes.prefix:
        raise UserError(f"this model {why}: leave the prefix out.")


def _no_languages(wishes: Wishes) -> None:
    if wishes.source_language or wishes.target_language:
        raise UserError("--source-language and --target-language are for M2M100, NLLB and mBART: leave them out.")


def _firefox_vocabularies(folder: Path, place: Path, wishes: Wishes) -> None:
    _no_prefix(wishes, "has one target language")
    _no_languages(wishes)
    write_firefox_vocabularies(read_firefox(folder), place)


def _marian_vocabularies(folder: Path, place: Path, wishes: Wishes) -> None:
    _no_languages(wishes)
    write_vocabularies(read_marian(folder), place, wishes.prefix)


def _fairseq_vocabularies(folder: Path, place: Path, wishes: Wishes) -> None:
    _no_prefix(wishes, "gets its languages from --source-language and --target-language")
    languages = wishes.source_language, wishes.target_language
    write_fairseq_vocabularies(read_fairseq(folder, languages), place, *languages)


def _fairseq(folder: Path, wishes: Wishes) -> Encoder:
    languages = wishes.source_language, wishes.target_language
    theirs = read_fairseq(folder, languages)
    frame = frame_of(theirs, *languages)
    return model_of_marian(theirs, frame.target[0] if frame.forced else 0)


def _marian(folder: Path, wishes: Wishes) -> Encoder:
    return model_of_marian(read_marian(folder))


def _firefox(folder: Path, wishes: Wishes) -> Encoder:
    return model_of_firefox(read_firefox(folder))


READERS = {
    "bert": Reader(_bert, _bert_vocabulary),
    "fairseq": Reader(_fairseq, _fairseq_vocabularies),
    "marian": Reader(_marian, _marian_vocabularies),
    "firefox": Reader(_firefox, _firefox_vocabularies),
}
"""By the name of the format."""


def import_model(pretrained: str, out: Path, prefix: str = "", languages: tuple[str, str] = NO_LANGUAGES) -> None:
    """Import a third-party translation model, with everything needed to translate, into the new folder `out`.

    pretrained: its folder, or a name such as firefox/en-pt. prefix: the subword that each source sentence is to begin
    with. languages: of source and target, as a multilingual model calls them. Raises UserError if it is not such a
    model.
    """
    found, folder = format_of(pretrained)
    source, target = languages
    reader, wishes = READERS[found.name], Wishes(prefix, source_language=source, target_language=target)
    model, origin = reader.model(folder, wishes), made_by()
    with new_folder(out) as stage:
        reader.vocabularies(folder, stage, wishes)
        about = about_of(stage)
        facts = {"experiment": "imported", "run": (about or {})["name"], "updates": 0, "total_updates": 0}
        save_folder(model, stage, facts, origin)
        parameters = sum(value.numel() for value in model.parameters())
        use = use_of("folder", origin, None, None, about)
        write_text(stage / "README.md", page(model.shape, parameters, facts, None, use, about))
