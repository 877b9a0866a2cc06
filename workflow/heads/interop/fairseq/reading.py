"""Read the folder of an M2M100, NLLB, BART or mBART that transformers wrote, without transformers.

V subwords of the vocabulary, which both sides share.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.fairseq.format import CLASSES, DESCRIBING, MERGES, SEGMENTER
from heads.interop.hub import CONFIG, DESCRIBED, GENERATION, SPECIAL, TOKENIZER, VOCAB
from heads.interop.marian.reading import DEFAULTS as MARIAN
from heads.interop.marian.reading import SHARES, TARGET, WHOLE, MarianFolder, rows_of
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import added_to, check_numbers, contradicts, read_config, read_object, read_vocabulary
from heads.interop.saved_weights import SavedWeights
from heads.text.added import MASK, Added, listed_in, named_rows
from heads.text.vocabulary import pieces_of, read_segmenter
from heads.text.wordpieces import described_subwords, numbered_by

BART: Mapping[str, Any] = {
    **MARIAN,
    "vocab_size": 50265,
    "max_position_embeddings": 1024,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "bart": BART,
    "mbart": {**BART, "decoder_start_token_id": None},
    "m2m_100": {
        **BART,
        "vocab_size": 128112,
        "activation_function": "relu",
        "attention_dropout": 0.1,
        "scale_embedding": True,
    },
}
"""Values of BartConfig, MBartConfig and M2M100Config (transformers 5.23) for keys that config.json leaves out.

But for these they are MarianConfig's.
"""
SHOWN = 6
"""Number of languages that an error message lists."""
FIRST = ("<s>", "<pad>", "</s>", "<unk>")
"""The first subwords of a fairseq vocabulary; a SentencePiece model has three of its own in their place."""
LANGUAGE = re.compile(r"__(\w+?)__|([a-z]{2,3}_[A-Z][A-Za-z]+)")
"""A subword that names a language: __en__ in M2M100, eng_Latn in NLLB, en_XX in mBART."""


@dataclass(frozen=True, slots=True)
class FairseqFolder(MarianFolder):
    """The contents of an M2M100, NLLB, BART or mBART folder."""

    languages: Mapping[str, int]
    """Original ids of the languages that the model knows, by code; empty for a BART, whose subwords are of bytes."""
    spoken: tuple[int, int] | None = None
    """Of an mBART of 25 languages: the original ids of the source's language and the target's."""

    @property
    def starts_and_ends(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """An mBART of 25 languages ends sources with EOS and their language, and starts translations with theirs."""
        bos, start, eos = (self.config[f"{name}_token_id"] for name in ("bos", "decoder_start", "eos"))
        return ((bos, self.spoken[0]), (self.spoken[1], eos)) if self.spoken else ((start, eos), (start, eos))

    @property
    def signs(self) -> set[str]:
        """Special tokens that stand for no text: languages and BOS."""
        start = self.config["bos_token_id"]
        numbers = {*self.languages.values(), *([start] if start is not None else ())}
        names = self.vocabularies[0]
        return {names[number] for number in numbers if number < len(names)}


def read_fairseq(files: OriginalFiles, languages: tuple[str, str] = ("", "")) -> FairseqFolder:
    """Read and check the folder of an M2M100, NLLB, BART or mBART.

    languages: of source and target, as `described_folder` takes them. Raises UserError for another kind of model, a
    missing or damaged file, or pickled weights.
    """
    config = files.once(config_of)
    tensors = SavedWeights(files.place, CLASSES[config["model_type"]])
    found = files.once(described_folder, languages, rows_of(files.place, config, tensors, TARGET))
    return replace(found, tensors=tensors)


def config_of(files: OriginalFiles) -> dict[str, Any]:
    """The config.json of a folder, with the defaults. Raises UserError for impossible values."""
    path, told = files.place / CONFIG, read_config(files, DESCRIBING)
    config = {**DEFAULTS[told["model_type"]], **told}
    check_numbers(path, config, (*WHOLE, "max_position_embeddings"), SHARES)
    return config


def described_folder(files: OriginalFiles, languages: tuple[str, str], rows: int) -> FairseqFolder:
    """The contents of a folder without its weights.

    languages: of source and target; only an mBART of 25 languages needs them to be read. rows: of its matrices of
    subwords. Raises UserError if languages are missing there, or unknown.
    """
    folder, config = files.place, files.once(config_of)
    kind = config["model_type"]
    segmenter, subwords = _subwords(folder)
    added = _added(folder, len(subwords))
    numbered = {**subwords, **{name: one.number for name, one in added.items()}}
    names = named_rows(folder, numbered, rows, TARGET)
    matches = {number: LANGUAGE.fullmatch(name) for number, name in enumerate(names) if kind != "bart"}
    known = {match[1] or match[2]: number for number, match in matches.items() if match}
    generation = read_object(folder / GENERATION, config)
    segmenters = None if segmenter is None else (segmenter, segmenter)
    # The model's own signs are there for the model; nobody writes them into texts.
    own = {*FIRST, MASK, *filter(LANGUAGE.fullmatch, added)}
    split = {name: one for name, one in added.items() if segmenters and name not in own}
    found = FairseqFolder(folder, config, generation, (names, names), segmenters, {}, split, known)
    if config["decoder_start_token_id"] in (None, *found.languages.values()):
        source, target = (language_of(found, side, name) for side, name in zip(SIDES, languages, strict=True))
        return replace(found, spoken=(source, target))
    return found


def language_of(folder: FairseqFolder, side: str, name: str) -> int:
    """The model's own id of the language of a side. Raises UserError if it is missing or unknown."""
    known, flag = folder.languages, f"--{side}-language"
    if name in known:
        return known[name]
    near = [other for other in known if name and other.startswith(name)]
    near = near or difflib.get_close_matches(name, known, SHOWN, 0.3)
    some = ", ".join([*near, *(other for other in known if other not in near)][:SHOWN])
    if name:
        raise UserError(f"{folder.path} does not know language {name}: give {flag} as it calls it, such as {some}.")
    raise UserError(f"{folder.path} knows {len(known)} languages: give {flag}, such as {some}.")


def _subwords(folder: Path) -> tuple[bytes | None, dict[str, int]]:
    """The SentencePiece model that cuts texts, if one does, and ids of subwords by name, without most added ones.

    tokenizer.json takes the place of all other files where it is alone, or where these number a subword otherwise:
    transformers prefers it.
    """
    described = folder / DESCRIBED
    if not any((folder / name).is_file() for name in (SEGMENTER, MERGES)) and described.is_file():
        return None, numbered_by(described_subwords(folder))
    if (folder / VOCAB).is_file():
        if not any((folder / name).is_file() for name in (SEGMENTER, MERGES)):
            raise UserError(f"{folder} has neither {SEGMENTER} nor {MERGES}: copy it from where the model is from.")
        subwords = read_vocabulary(folder / VOCAB)
    elif (folder / SEGMENTER).is_file():
        subwords = {
            name: number for number, name in enumerate([*FIRST, *pieces_of(read_segmenter(folder / SEGMENTER))[3:]])
        }
    else:
        raise UserError(f"{folder} has no {SEGMENTER}: copy it from where the model is from.")
    if described.is_file() and contradicts(read_object(described), subwords):
        return None, numbered_by(described_subwords(folder))
    return (folder / SEGMENTER).read_bytes() if (folder / SEGMENTER).is_file() else None, subwords


def _added(folder: Path, subwords: int) -> dict[str, Added]:
    """Added subwords by name; languages that a file only lists follow the other subwords in its order."""
    found = added_to(folder, DESCRIBED)
    if any(LANGUAGE.fullmatch(name) for name in found):
        return found
    for file in (TOKENIZER, SPECIAL):
        if listed := [*filter(LANGUAGE.fullmatch, listed_in(read_object(folder / file, {})))]:
            return found | {name: Added(subwords + place, special=True) for place, name in enumerate(listed)}
    return found
