"""Open any model that can be read as a folder of ours: a run, an exported folder, or a third-party model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from heads.base.files import UserError
from heads.base.marian import CONFIG
from heads.base.names import CLASSIFICATION, TRANSLATION
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.shape import FACTS
from heads.translation.encoders_alone import import_bert
from heads.translation.from_hub import folder_of
from heads.translation.from_mozilla import place_with_network
from heads.translation.marian_folder import read_object
from heads.translation.readers import NO_LANGUAGES, import_model


def import_any(
    name: str, out: Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> str:
    """Import a third-party model into the new folder `out`, as one that can be pruned, and return its task.

    name: a folder (Marian's, or of save_pretrained), a name on the hub, or one such as firefox/en-pt. prefix: what each
    source sentence begins with. labels: of a BERT, in the order of its classifier. languages: of source and target, as
    a multilingual model calls them. Reports randomly drawn parts on stderr. Raises UserError if the model cannot be
    read, or if prefix, labels or languages do not go with it.
    """
    folder = fetched(name)
    if is_bert(folder):
        if prefix or any(languages):
            raise UserError("--prefix and languages are for translation models: leave them out.")
        if anew := import_bert(folder, out, labels):
            print(anew, file=sys.stderr)
        return CLASSIFICATION
    if labels:
        raise UserError("--labels are for a BERT: leave them out.")
    import_model(str(folder), out, prefix, languages)
    return TRANSLATION


def fetched(name: str) -> Path:
    """The folder of a third-party model; one that is named and missing is downloaded into the cache.

    Raises UserError if it does not exist and cannot be downloaded.
    """
    return folder_of(place_with_network(name))


def is_bert(folder: Path) -> bool:
    """Whether a folder of transformers holds a BERT."""
    return (folder / CONFIG).is_file() and read_object(folder / CONFIG).get("model_type") == "bert"


@contextmanager
def opened(
    name: str, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Iterator[Path]:
    """Yield a folder of ours with the named model: its own, or a temporary import. Raises as `import_any` does."""
    if not name:
        raise UserError("No model is named: give a folder, a name on the hub, or one such as firefox/en-pt.")
    if (Path(name) / FACTS).is_file():
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
