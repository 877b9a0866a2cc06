"""The folder of an M2M100, NLLB, BART or mBART (trained by fairseq) in transformers' format: names of its files."""

from pathlib import Path

from heads.base.names import TRANSLATION
from heads.interop import hub
from heads.interop.format import Format
from heads.interop.hub import (
    ADDED,
    CONFIG,
    DESCRIBED,
    GENERATION,
    HUB,
    LICENCES,
    PICKLED,
    SPECIAL,
    TOKENIZER,
    VOCAB,
    WEIGHTS,
)
from heads.interop.marian import format as marian

CLASSES = {
    "m2m_100": "M2M100ForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
}
"""The class that transformers saves, by the `model_type` in config.json; NLLB is an M2M100 with its own subwords."""
SEGMENTER, MERGES = "sentencepiece.bpe.model", "merges.txt"
LISTS = (DESCRIBED, ADDED, SPECIAL)
"""Files that name subwords outside the vocabulary, such as languages; so does tokenizer_config.json."""
DESCRIBING = (CONFIG, GENERATION, TOKENIZER, VOCAB, SEGMENTER, MERGES, *LISTS)
"""All files but the weights; a folder may lack some."""
NAMES = {"m2m_100": "M2M100", "bart": "BART", "mbart": "mBART"}


def fits(folder: Path) -> bool:
    """Whether a folder holds one of these models, by its config.json."""
    return hub.model_type(folder) in NAMES


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that an import reads, including the weights."""
    own = [path for name in (SEGMENTER, MERGES) if (path := folder / name).is_file()]
    return [*marian.files_of(folder), *own]


def not_there(folder: Path) -> str:
    """The message about a missing folder that may be a name on the hub: what to fetch by hand."""
    files = ", ".join(DESCRIBING)
    return (
        f"{folder} is no folder: fetch {WEIGHTS}, and those of {files} that exist, from "
        f"{HUB}/{folder.as_posix()}/tree/main into it; a {PICKLED} must first be saved as {WEIGHTS} by transformers."
    )


FAIRSEQ = Format(
    "fairseq",
    TRANSLATION,
    fits,
    files_of,
    marian.heads_of,
    not_there,
    NAMES,
    from_hub=(WEIGHTS,),
    from_hub_if_there=(*DESCRIBING[1:], LICENCES[0]),
)
