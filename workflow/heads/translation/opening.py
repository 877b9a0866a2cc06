"""Open any model: a folder of ours, or one of others, in a format of `heads.formats.registry`, which is imported."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from heads.base.files import UserError, write_text
from heads.base.marian import CONFIG
from heads.base.names import CLASSIFICATION, TRANSLATION
from heads.base.provenance import made_by
from heads.base.stand_ins import refuse_pointers
from heads.formats.marian_parts import is_marian
from heads.formats.registry import format_of
from heads.model.encoder import Encoder
from heads.model.folder import load_model, save_folder
from heads.model.shape import FACTS
from heads.translation.authors_search import not_used, unused_of_marian
from heads.translation.bert_folder import read_bert
from heads.translation.downloads import folder_of, place_with_network
from heads.translation.encoders_alone import import_bert, write_subwords_and_labels
from heads.translation.export import new_folder
from heads.translation.export_page import page, use_of
from heads.translation.fairseq_folder import read_fairseq
from heads.translation.from_bert import drawn_anew, labels_of, model_of_bert
from heads.translation.from_firefox import model_of_firefox, read_firefox, write_firefox_vocabularies
from heads.translation.from_marian import model_of_marian
from heads.translation.from_t5 import model_of_t5, unused_of_t5, write_t5_vocabularies
from heads.translation.importing import frame_of, unused_of, write_fairseq_vocabularies, write_vocabularies
from heads.translation.marian_folder import read_marian, read_object
from heads.translation.model_folder import about_of
from heads.translation.saved_weights import refuse_adapter
from heads.translation.t5_folder import read_t5

NO_LANGUAGES = ("", "")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of an import besides the folder."""

    prefix: str = ""
    """What each source sentence begins with."""
    labels: Sequence[str] = ()
    seed: int = 0
    """For weights that the model came without."""
    languages: tuple[str, str] = NO_LANGUAGES
    """Of source and target, as a multilingual model calls them."""


@dataclass(frozen=True, slots=True)
class Read:
    """A third-party model that was read, and the two things that are made of it."""

    model: Callable[[], Encoder]
    """Returns the model as one of ours, in evaluation mode."""
    write_vocabularies: Callable[[Path], None]
    """Writes its vocabularies into a folder, and its original files beside them."""
    unused: Sequence[str] = ()
    """Search settings of its authors that our search does not have."""


def _bert(folder: Path, wishes: Wishes) -> Read:
    theirs = read_bert(folder)

    def model() -> Encoder:
        if anew := drawn_anew(theirs):
            print(anew, file=sys.stderr)
        return model_of_bert(theirs, wishes.labels, wishes.seed)

    return Read(model, lambda place: write_subwords_and_labels(theirs, place, labels_of(theirs, wishes.labels)))


def _fairseq(folder: Path, wishes: Wishes) -> Read:
    _refuse_prefix(wishes, "gets its languages from --source-language and --target-language")
    theirs = read_fairseq(folder, wishes.languages)

    def model() -> Encoder:
        frame = frame_of(theirs, *wishes.languages)
        return model_of_marian(theirs, frame.target[0] if frame.forced else 0)

    return Read(model, lambda place: write_fairseq_vocabularies(theirs, place, *wishes.languages), unused_of(theirs))


def _t5(folder: Path, wishes: Wishes) -> Read:
    _refuse_languages(wishes)
    theirs = read_t5(folder)
    write = partial(write_t5_vocabularies, theirs, prefix=wishes.prefix)
    return Read(partial(model_of_t5, theirs), write, unused_of_t5(theirs))


def _marian(folder: Path, wishes: Wishes) -> Read:
    theirs = read_marian(folder)
    _refuse_languages(wishes)
    write = partial(write_vocabularies, theirs, prefix=wishes.prefix)
    return Read(partial(model_of_marian, theirs), write, unused_of(theirs))


def _firefox(folder: Path, wishes: Wishes) -> Read:
    _refuse_languages(wishes)
    theirs = read_firefox(folder)
    if not theirs.parts.numbers:
        _refuse_prefix(wishes, "has one target language")
    prefix, unused = wishes.prefix, unused_of_marian(theirs.parts.model)
    return Read(
        partial(model_of_firefox, theirs), lambda place: write_firefox_vocabularies(theirs, place, prefix), unused
    )


def _refuse_prefix(wishes: Wishes, why: str) -> None:
    if wishes.prefix:
        raise UserError(f"this model {why}: leave the prefix out.")


def _refuse_languages(wishes: Wishes) -> None:
    if any(wishes.languages):
        raise UserError("--source-language and --target-language are for M2M100, NLLB and mBART: leave them out.")


READERS: Mapping[str, Callable[[Path, Wishes], Read]] = {
    "bert": _bert,
    "fairseq": _fairseq,
    "t5": _t5,
    "marian": _marian,
    "firefox": _firefox,
}
"""By the name of the format."""


def import_model(pretrained: str, out: Path, prefix: str = "", languages: tuple[str, str] = NO_LANGUAGES) -> None:
    """Import a third-party translation model, with everything needed to translate, into the new folder `out`.

    pretrained: its folder, or a name such as firefox/en-pt. prefix: the subword that each source sentence is to begin
    with. languages: of source and target, as a multilingual model calls them. Raises UserError if it is not such a
    model.
    """
    found, folder = format_of(pretrained)
    theirs = READERS[found.name](folder, Wishes(prefix, languages=languages))
    model, origin = theirs.model(), made_by()
    with new_folder(out) as stage:
        theirs.write_vocabularies(stage)
        about = about_of(stage)
        facts = {"experiment": "imported", "run": (about or {})["name"], "updates": 0, "total_updates": 0}
        save_folder(model, stage, facts, origin)
        use = use_of("folder", origin, None, None, about)
        write_text(stage / "README.md", page(model, facts, None, use, about))
    if theirs.unused:
        print(not_used(theirs.unused), file=sys.stderr)


def import_any(
    name: str, out: Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> str:
    """Import a third-party model into the new folder `out`, as one that can be pruned, and return its task.

    name: a folder (Marian's, or of save_pretrained), a name on the hub, or one such as firefox/en-pt. prefix: what each
    source sentence begins with. labels: of a BERT, in the order of its classifier. languages: of source and target, as
    a multilingual model calls them. Says on stderr what is drawn at random or not used. Raises UserError if the model
    cannot be read, or if prefix, labels or languages do not go with it.
    """
    folder = fetched(name)
    refuse_adapter(folder)
    if (folder / CONFIG).is_file() and read_object(folder / CONFIG).get("model_type") == "bert":
        if prefix or any(languages):
            raise UserError("--prefix and languages are for translation models: leave them out.")
        if note := import_bert(folder, out, labels):
            print(note, file=sys.stderr)
        return CLASSIFICATION
    if labels and ((folder / CONFIG).is_file() or is_marian(folder)):
        raise UserError("--labels are for a BERT: leave them out.")
    import_model(str(folder), out, prefix, languages)
    return TRANSLATION


def fetched(name: str) -> Path:
    """The folder of a third-party model, downloaded if it is named and missing. Raises UserError if it cannot be."""
    return folder_of(place_with_network(name))


@contextmanager
def opened(
    name: str, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Iterator[Path]:
    """Yield a folder of ours with the named model: its own, or a temporary import. Raises as `import_any` does."""
    if not name:
        raise UserError("No model is named: give a folder, a name on the hub, or one such as firefox/en-pt.")
    if (Path(name) / FACTS).is_file():
        refuse_pointers(sorted(Path(name).iterdir()))
        if prefix or labels or any(languages):
            raise UserError(f"{name} has its prefix, labels and languages already: leave these flags out.")
        yield Path(name)
        return
    with TemporaryDirectory() as place:
        import_any(name, folder := Path(place) / "model", prefix, labels, languages)
        yield folder


def load(
    name: str | Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Encoder:
    """The named model, on the CPU and in evaluation mode. name: as in `import_any`, or a folder of ours."""
    with opened(str(name), prefix, labels, languages) as folder:
        return load_model(folder)
