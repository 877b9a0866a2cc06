"""Download a translation model or a BERT from the Hugging Face hub, file by file, into this machine's cache."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from heads.base import bert, fairseq, marian
from heads.base.files import UserError
from heads.base.marian import CONFIG, GENERATION, HUB, LICENCES, NEEDED, TOKENIZER, WEIGHTS
from heads.base.packaged import cache_of_hub
from heads.corpus.fetch import Absent, fetch
from heads.translation.export import new_folder
from heads.translation.marian_folder import read_object

FILES = {marian: (*NEEDED[1:], WEIGHTS), bert: (WEIGHTS,), fairseq: (WEIGHTS,)}
IF_THERE = {
    marian: (GENERATION, TOKENIZER, LICENCES[0]),
    bert: (TOKENIZER, bert.WORD_PIECES, bert.VOCAB, LICENCES[0]),
    fairseq: (*fairseq.DESCRIBING[1:], LICENCES[0]),
}
"""Optional files by kind of model, which config.json names."""


def folder_of(pretrained: Path, hub: str = HUB) -> Path:
    """The folder itself, or the cached folder of a name on the hub, downloaded if necessary.

    If the download fails, raises UserError that says what to fetch by hand, and leaves no partial folder behind.
    """
    name = pretrained.as_posix()
    place = cache_of_hub(name)
    if pretrained.is_dir() or place is None:
        return pretrained
    if place.is_dir():
        return place
    with new_folder(place) as folder:
        kind, file = marian, CONFIG
        try:
            fetch(f"{hub}/{name}/resolve/main/{file}", folder / file, sha256=None, attempts=2)
            model_type = read_object(folder / file).get("model_type")
            kind = bert if model_type == "bert" else fairseq if fairseq.fits(folder) else marian
            for file in FILES[kind]:
                fetch(f"{hub}/{name}/resolve/main/{file}", folder / file, sha256=None, attempts=2)
        except UserError as error:
            if file == WEIGHTS and isinstance(error, Absent):
                raise UserError(
                    f"{name} has no {WEIGHTS} on the hub, and pickled weights are not opened: write its model and "
                    "tokeniser with transformers' save_pretrained into a folder, and give that folder."
                ) from error
            raise UserError(f"{kind.not_there(pretrained)} ({error})") from error
        for file in IF_THERE[kind]:
            with suppress(Absent):
                fetch(f"{hub}/{name}/resolve/main/{file}", folder / file, sha256=None, attempts=2)
    return place
