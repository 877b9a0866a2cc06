"""Open any model, a folder of ours or a third-party one, and keep it in memory; import one into a folder."""

import sys
from collections.abc import Sequence
from pathlib import Path

from heads.base.files import UserError, write_text
from heads.base.names import TRANSLATION
from heads.base.outputs import new_folder
from heads.base.provenance import made_by
from heads.base.stand_ins import refuse_pointers
from heads.interop.authors_search import not_used
from heads.interop.bundle import Bundle, saved_bundle
from heads.interop.downloads import fetched
from heads.interop.export_encoder import FOLDER_USE, encoder_page
from heads.interop.export_page import page, use_of
from heads.interop.families import OURS, family_of
from heads.interop.family import NO_LANGUAGES, ImportOptions
from heads.interop.firefox.format import FIREFOX
from heads.interop.formats import format_at, saved_as
from heads.interop.hub import CONFIG
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import config_in
from heads.model.encoder import Encoder
from heads.model.folder import save_folder
from heads.model.shape import FACTS
from heads.text.encoding import vocabulary_of, vocabulary_or_labels
from heads.text.labels import Labels
from heads.translation.model_folder import VOCABULARIES


def open_model(
    name: str, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Bundle:
    """The named model, on the CPU and in evaluation mode: from a folder of ours, or as `read_foreign` reads it."""
    if not name:
        raise UserError("No model is named: give a folder, a name on the hub, or one such as firefox/en-pt.")
    if not (Path(name) / FACTS).is_file():
        return read_foreign(name, prefix, labels, languages)
    refuse_pointers(sorted(Path(name).iterdir()))
    if prefix or labels or any(languages):
        raise UserError(f"{name} has its prefix, labels and languages already: leave these flags out.")
    return saved_bundle(Path(name))


def load(
    name: str | Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Encoder:
    """The named model, on the CPU and in evaluation mode. name: as in `read_foreign`, or a folder of ours."""
    return open_model(str(name), prefix, labels, languages).model


def read_foreign(
    name: str, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Bundle:
    """A third-party model as one of ours.

    name: a folder (Marian's, or of save_pretrained), a name on the hub, or one such as firefox/en-pt. prefix: what each
    source sentence begins with. labels: of a BERT, in the order of its classifier. languages: of source and target, as
    a multilingual model calls them. Says on stderr what is drawn at random or not used. Raises UserError if the model
    cannot be read, or if prefix, labels or languages do not go with it.
    """
    place = fetched(name)
    files = OriginalFiles(place)
    config = files.once(config_in) if (place / CONFIG).is_file() else None
    kind = str((config or {}).get("model_type"))
    found = format_at(place, kind, saved_as(kind).task)
    if labels and found.task == TRANSLATION and (config is not None or found is FIREFOX):
        raise UserError("--labels are for a BERT: leave them out.")
    options = ImportOptions(prefix, labels, languages=languages, embeds=True)
    family = family_of(found)
    theirs = family.read(files, options)
    model, texts = theirs.model(), theirs.vocabularies()
    note = theirs.drawn or not_used(theirs.unused)
    if note:
        print(note, file=sys.stderr)
    called = texts.origin.about["name"] if place == Path(name) else name
    facts = {"experiment": "imported", "run": called, "updates": 0, "total_updates": 0}
    return Bundle(
        place,
        model,
        vocabulary_of(place / VOCABULARIES[0], texts.source),
        vocabulary_or_labels(place / VOCABULARIES[1], texts.target),
        {"shape": model.shape.as_dict(), **facts, "provenance": made_by()},
        came_with=files,
        family=family,
        origin=texts.origin,
        note=note,
    )


def import_any(
    name: str, out: Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Bundle:
    """Write a third-party model into the new folder `out`, as one that can be pruned; as `read_foreign` reads it."""
    bundle = read_foreign(name, prefix, labels, languages)
    facts, origin = bundle.facts, bundle.facts["provenance"]
    if isinstance(bundle.target, Labels):
        use = "\n\n".join(filter(None, [FOLDER_USE, bundle.note]))
        readme = encoder_page(bundle.shape, facts, bundle.target.words, use)
    else:
        readme = page(bundle.model, facts, None, use_of(OURS, origin, None, None, bundle.about), bundle.about)
    with new_folder(out) as stage:
        bundle.write_vocabularies(stage)
        bundle.write_origin(stage)
        save_folder(bundle.model, stage, facts, origin)
        write_text(stage / "README.md", readme)
    return bundle
