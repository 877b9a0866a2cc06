"""Translate a test set by beam search and score it with sacrebleu."""

from collections.abc import Sequence
from typing import Any

import torch

from heads.base.files import UserError, check_references
from heads.base.names import AUTO, BLEU, DEFAULT_TOKENISER, METRIC_NAMES, ROUGE_L, TEXT_METRICS
from heads.config.analyses import TranslateSettings
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.beam_search import beam_search
from heads.translation.rouge import rouge_l, scorer
from heads.translation.text_scores import bleu, bleu_of_counts, bleu_statistics, chrf, tokeniser_of


def every_pair(source: Tokens) -> Pairs:
    """All sentences of a text, however long, as pairs whose source is to be translated; the target is not used."""
    return Pairs(source, source, int(source.lengths.max(initial=0)))


def search_pairs(
    model: Transformer, pairs: Pairs, settings: TranslateSettings, device: torch.device, gates: Gates | None = None
) -> dict[int, list[int]]:
    """Best translation of each of the first `settings.sentences` pairs (0: all), as subword ids by pair number."""
    found: dict[int, list[int]] = {}
    beam, alpha = settings.beam, settings.length_penalty
    for members, batch in pairs.in_order(settings.batch_tokens, settings.sentences or None):
        batch = batch.to(device)
        ids = beam_search(model, batch.source, batch.source_mask, beam=beam, length_penalty=alpha, gates=gates)
        found.update(zip(members.tolist(), ids, strict=True))
    return found


def searched(
    model: Transformer,
    pairs: Pairs,
    vocabulary: Vocabulary,
    settings: TranslateSettings,
    device: torch.device,
    gates: Gates | None = None,
) -> tuple[list[int], list[str]]:
    """Numbers and plain-text translations of the first `settings.sentences` pairs (0: all), in file order."""
    found = search_pairs(model, pairs, settings, device, gates)
    numbers = sorted(found)
    return numbers, vocabulary.decode([found[number] for number in numbers])


def scored(
    model: Transformer,
    source: Tokens,
    references: Sequence[str],
    vocabulary: Vocabulary,
    settings: TranslateSettings,
    device: torch.device,
    tokeniser: str,
) -> tuple[list[str], list[dict[str, int]], dict[str, Any]]:
    """Translations of the first `settings.sentences` sentences (0: all), BLEU's counts of each, and their score."""
    numbers, texts = searched(model, every_pair(source), vocabulary, settings, device)
    return texts, *score_of_texts(texts, [references[i] for i in numbers], settings, tokeniser)


def score_of_texts(
    texts: Sequence[str], references: Sequence[str], settings: TranslateSettings, tokeniser: str
) -> tuple[list[dict[str, int]], dict[str, Any]]:
    """BLEU's counts of each translation; then BLEU and chrF, with the search settings they were made with."""
    facts = {
        "split": "test",
        "sentences": len(texts),
        "beam": settings.beam,
        "length_penalty": settings.length_penalty,
    }
    tokeniser = tokeniser_of(references, tokeniser)
    counts = bleu_statistics(texts, references, tokeniser)
    return counts, {**bleu_of_counts(counts, tokeniser), **chrf(texts, references), **facts}


def score_in_words(texts: Sequence[str], references: Sequence[str], tokeniser: str, metric: str = BLEU) -> str:
    """BLEU and chrF, or also ROUGE-L, with their signatures, on one line.

    Raises UserError unless there are as many references.
    """
    check_references("The written text", len(texts), "its references", references)
    scores = {**bleu(texts, references, tokeniser), **chrf(texts, references)}
    said = f"BLEU {scores['bleu']:.2f} {scores['signature']}, chrF {scores['chrf']:.2f} {scores['chrf_signature']}"
    if metric != ROUGE_L:
        return said
    found = rouge_l(texts, references, tokeniser)
    return f"{said}, {METRIC_NAMES[ROUGE_L]} {found[ROUGE_L]:.2f} {found['signature']}"


def metric_named(name: str, tokeniser: str = AUTO) -> str:
    """The metric of a value of --metric. Raises UserError if it, or a tokeniser, is unknown or cannot be loaded."""
    tokeniser_of((), tokeniser)
    if name not in TEXT_METRICS:
        raise UserError(f"There is no metric {name}: choose one of {', '.join(TEXT_METRICS)}.")
    if TEXT_METRICS[name] == ROUGE_L:
        scorer(DEFAULT_TOKENISER)
    return TEXT_METRICS[name]
