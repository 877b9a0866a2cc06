"""Any model that can be read, as a folder of ours: a run, an exported folder, or what others made."""

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
    """Write a model of others to the new folder `out`, as one that can be pruned; give its task, labels or none.

    name: a folder (Marian's, or of save_pretrained), a name on the hub, or one such as firefox/en-pt. prefix: what each
    source sentence begins with. labels: of a BERT, in the order of its classifier. languages: of source and target, as
    a model of many calls them. What was drawn at random is said. Raises UserError for what cannot be read, and for a
    prefix, labels or languages that do not go with it.
    """
    folder = fetched(name)
    if is_bert(folder):
        if prefix or any(languages):
            raise UserError("--prefix and languages are of models that translate: take them away.")
        if anew := import_bert(folder, out, labels):
            print(anew, file=sys.stderr)
        return CLASSIFICATION
    if labels:
        raise UserError("--labels are of a BERT: take them away.")
    import_model(str(folder), out, prefix, languages)
    return TRANSLATION


def fetched(name: str) -> Path:
    """The folder of a model of others, which is fetched into the cache where it has a name and is not there.

    Raises UserError where there is none and none to be fetched.
    """
    return folder_of(place_with_network(name))


def is_bert(folder: Path) -> bool:
    """Whether a folder of transformers is of a BERT."""
    return (folder / CONFIG).is_file() and read_object(folder / CONFIG).get("model_type") == "bert"


@contextmanager
def opened(
    name: str, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Iterator[Path]:
    """A folder of ours with the model of this name: its own, or one in a temporary place. Raises as `import_any`."""
    if not name:
        raise UserError("No model is named: give a folder, a name on the hub, or firefox/en-pt.")
    if (Path(name) / FACTS).is_file():
        yield Path(name)
        return
    with TemporaryDirectory() as place:
        import_any(name, folder := Path(place) / "model", prefix, labels, languages)
        yield folder


def load(
    name: str | Path, prefix: str = "", labels: Sequence[str] = (), languages: tuple[str, str] = NO_LANGUAGES
) -> Encoder:
    """The model of this name, on the CPU and in evaluation mode. name: as of `import_any`, or a folder of ours."""
    with opened(str(name), prefix, labels, languages) as folder:
        return load_model(folder)
