"""Read the folder of an M2M100, NLLB, BART or mBART that transformers wrote, without transformers.

V subwords of the vocabulary, which both sides share.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sentencepiece

from heads.base.fairseq import CLASSES, DESCRIBING, LISTS, MERGES, SEGMENTER
from heads.base.files import UserError
from heads.base.marian import CONFIG, GENERATION, TOKENIZER, VOCAB
from heads.base.names import SIDES
from heads.translation.marian_folder import DEFAULTS as MARIAN
from heads.translation.marian_folder import (
    SHARES,
    WHOLE,
    MarianFolder,
    check_numbers,
    read_config,
    read_object,
    read_vocabulary,
)
from heads.translation.saved_weights import SavedWeights

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


def read_fairseq(folder: Path, languages: tuple[str, str] = ("", "")) -> FairseqFolder:
    """Read and check the folder of an M2M100, NLLB, BART or mBART.

    languages: of source and target, as `described_folder` takes them. Raises UserError for another kind of model, a
    missing or damaged file, or pickled weights.
    """
    found = described_folder(folder, languages)
    return replace(found, tensors=SavedWeights(folder, CLASSES[found.config["model_type"]]))


def described_folder(folder: Path, languages: tuple[str, str] = ("", "")) -> FairseqFolder:
    """The contents of a folder without its weights.

    languages: of source and target; only an mBART of 25 languages needs them to be read. Raises UserError if they are
    missing there, or unknown.
    """
    path = folder / CONFIG
    config = read_config(folder, DESCRIBING)
    kind = config["model_type"]
    config = {**DEFAULTS[kind], **config}
    check_numbers(path, config, (*WHOLE, "max_position_embeddings"), SHARES)
    subwords = _subwords(folder)
    added = {name: number for name, number in _added(folder, len(subwords)).items() if name not in subwords}
    names = [f"<no subword {number}>" for number in range(config["vocab_size"])]
    for number, name in (*enumerate(subwords), *((number, name) for name, number in added.items())):
        if not 0 <= number < len(names):
            raise UserError(
                f"{folder}: {name} has id {number}, but {CONFIG} a vocab_size of {len(names)}: copy the folder again."
            )
        names[number] = name
    segmenter = (folder / SEGMENTER).read_bytes() if (folder / SEGMENTER).is_file() else b""
    matches = {number: LANGUAGE.fullmatch(name) for number, name in enumerate(names) if kind != "bart"}
    known = {match[1] or match[2]: number for number, match in matches.items() if match}
    generation = read_object(folder / GENERATION, config)
    found = FairseqFolder(folder, config, generation, (names, names), (segmenter, segmenter), {}, known)
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


def _subwords(folder: Path) -> list[str]:
    """Subword names by id, without added ones: from vocab.json, or from SentencePiece in fairseq's numbering."""
    if (folder / VOCAB).is_file():
        for name in (SEGMENTER, MERGES):
            if (folder / name).is_file():
                return read_vocabulary(folder / VOCAB)
        raise UserError(f"{folder} has neither {SEGMENTER} nor {MERGES}: copy it from where the model is from.")
    if not (folder / SEGMENTER).is_file():
        raise UserError(f"{folder} has no {SEGMENTER}: copy it from where the model is from.")
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto((folder / SEGMENTER).read_bytes())
    except RuntimeError:
        raise UserError(f"{folder / SEGMENTER} is not a SentencePiece model, or is damaged: copy it again.") from None
    return [*FIRST, *(processor.id_to_piece(number) for number in range(3, processor.get_piece_size()))]


def _added(folder: Path, subwords: int) -> dict[str, int]:
    """Ids of added subwords by name; if a file only lists them, they follow the other subwords in its order."""
    files = [read_object(folder / name) for name in (TOKENIZER, *LISTS) if (folder / name).is_file()]
    found: dict[str, int] = {}
    for tokenizer in files:
        for number, one in (tokenizer.get("added_tokens_decoder") or {}).items():
            found[one["content"]] = int(number)
        for one in tokenizer.get("added_tokens") or ():
            found[one["content"]] = int(one["id"])
        found |= {
            name: number for name, number in tokenizer.items() if isinstance(number, int) and LANGUAGE.fullmatch(name)
        }
    if any(LANGUAGE.fullmatch(name) for name in found):
        return found
    for tokenizer in files:
        told = tokenizer.get("additional_special_tokens") or tokenizer.get("extra_special_tokens") or ()
        names = [one["content"] if isinstance(one, dict) else str(one) for one in told]
        if listed := [*filter(LANGUAGE.fullmatch, names)]:
            return {**found, **{name: subwords + place for place, name in enumerate(listed)}}
    return found
