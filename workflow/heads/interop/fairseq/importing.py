"""The languages and vocabularies of an M2M100, NLLB, BART or mBART; its weights are converted as Marian's are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heads.base.files import UserError
from heads.base.names import SIDES
from heads.interop.authors_search import searched_by_its_authors, unused
from heads.interop.fairseq.format import DESCRIBING, MERGES
from heads.interop.fairseq.reading import FairseqFolder, language_of
from heads.interop.hub import VOCAB, saved_files
from heads.interop.marian.importing import cutting, numberings_of
from heads.interop.origin import Origin, Vocabularies, sentencepiece_in_our_ids
from heads.text.special_ids import BOS, EOS
from heads.text.stored import Stored
from heads.text.wordpieces import described_subwords, subwords_as_described


@dataclass(frozen=True, slots=True)
class FramingTokens:
    """Our ids of the subwords that texts begin and end with, such as their language."""

    source: Sequence[int]
    target: Sequence[int]
    forced: bool = False
    """Whether a search has to begin with the target's, or is free to."""
    suffix: Sequence[int] = ()
    """What sources end with, before EOS."""


def framing_tokens(folder: FairseqFolder, source: str, target: str) -> FramingTokens:
    """The subwords that texts in these languages begin and end with; for a BART without languages, its BOS.

    Raises UserError if a language is missing, unknown, or given to a model without languages.
    """
    rows = numberings_of(folder)[0].rows
    if folder.spoken:
        return FramingTokens((), (), suffix=(rows.index(folder.config["eos_token_id"]),))
    if folder.languages:
        numbers = [language_of(folder, side, name) for side, name in zip(SIDES, (source, target), strict=True)]
        return FramingTokens((rows.index(numbers[0]),), (rows.index(numbers[1]),), forced=True)
    if source or target:
        raise UserError(
            f"{folder.path} has no languages to choose from: leave out --source-language and --target-language."
        )
    start, forced = folder.config["bos_token_id"], folder.generation.get("forced_bos_token_id")
    if start not in rows or forced not in (None, start):
        raise UserError(f"{folder.path}: translations begin with {start} or {forced}, which is not a subword.")
    return FramingTokens((rows.index(start),), (rows.index(start),), forced is not None)


def vocabularies_of(folder: FairseqFolder, source: str, target: str) -> Vocabularies:
    """The vocabularies of both sides in our ids, for texts in these languages, and where the model is from.

    Raises UserError as `framing_tokens` does.
    """
    frame, names = framing_tokens(folder, source, target), [numbering.names for numbering in numberings_of(folder)]
    stored = (
        _vocabulary(folder, names[0], frame.source, frame.suffix),
        _vocabulary(folder, names[1], frame.target),
    )
    about: dict[str, Any] = {
        "prefix": "".join(names[0][number] for number in frame.source),
        "suffix": [names[0][number] for number in (*frame.suffix, EOS)] if frame.suffix else [],
        "target_prefix": "".join(names[1][number] for number in frame.target) if frame.forced else "",
    }
    about |= {"model_type": folder.config["model_type"], **cutting(folder)}
    about |= {"source_language": source, "target_language": target}
    about |= searched_by_its_authors(folder.path, folder.generation)
    return Vocabularies(*stored, Origin(folder.path, saved_files(folder.path, DESCRIBING), DESCRIBING, about))


def _vocabulary(
    folder: FairseqFolder, names: Sequence[str], prefix: Sequence[int], suffix: Sequence[int] = ()
) -> Stored:
    if not folder.segmenters:
        return subwords_as_described(described_subwords(folder.path, VOCAB, MERGES), names, prefix, suffix)
    content = folder.segmenters[0]
    return sentencepiece_in_our_ids(content, names, folder.path, folder.added, prefix, suffix, folder.signs)


def unused_of(folder: FairseqFolder) -> list[str]:
    """The search settings of a model's authors that our search does not have, with their values."""
    ours = numberings_of(folder)[1]
    return unused(folder.generation, ours.never, None if folder.languages else ours.rows[BOS], ours.rows[EOS])
