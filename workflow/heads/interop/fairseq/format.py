"""The folder of an M2M100, NLLB, BART or mBART (trained by fairseq) in transformers' format: names of its files."""

from pathlib import Path

from heads.base.names import TRANSLATION
from heads.interop.hub import (
    ADDED,
    CONFIG,
    DESCRIBED,
    GENERATION,
    PICKLED,
    SPECIAL,
    TOKENIZER,
    VOCAB,
    WEIGHTS,
    saved_format,
    to_fetch,
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


def not_there(folder: Path) -> str:
    """The message about a missing folder that may be a name on the hub: what to fetch by hand."""
    return f"{to_fetch(folder, DESCRIBING)}; a {PICKLED} must first be saved as {WEIGHTS} by transformers."


FAIRSEQ = saved_format("fairseq", TRANSLATION, NAMES, DESCRIBING, marian.heads_of, not_there)
