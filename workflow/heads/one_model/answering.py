"""A model's outputs for a text (texts, labels or vectors), their score, and its attention maps."""

import sys
from collections.abc import Sequence
from typing import Any

import torch

from heads.analysis.maps_of_text import maps_of_lines, maps_of_sentences
from heads.analysis.masking import classified
from heads.analysis.metrics import ACCURACY, COSINE, labels_scored
from heads.base.files import UserError
from heads.base.names import AUTO, BLEU, CHRF, METRIC_NAMES, ROUGE_L
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.interop.bundle import Bundle
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.syntax.tokenising import words_of_text
from heads.text.encoding import Encodes
from heads.text.labels import Labels
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.rouge import rouge_l
from heads.translation.scoring import every_pair, score_of_texts, searched

GREEDY = TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=2048)
MAPS = MapsSettings(sentences=12, min_words=5, max_words=16)
UNITS = {**METRIC_NAMES, ACCURACY.name: "points of accuracy", COSINE.name: "points of cosine"}
"""The unit of each metric, in words."""


def answered_by(model: Encoder, tokens: Tokens, target: Encodes, device: torch.device) -> Sequence[str]:
    """A model's greedy outputs for a text in its own `target`, or labels; if it embeds, one word for all lines."""
    if isinstance(target, Vocabulary):
        assert isinstance(model, Transformer)
        return searched(model, every_pair(tokens), target, GREEDY, device)[1]
    assert isinstance(target, Labels)
    count = len(tokens.lengths)
    if model.shape.embeds:
        return target.words * count
    return classified(model, tokens, target, device, GREEDY.batch_tokens, count)


def score_of_answers(
    shape: ModelShape,
    answers: Sequence[str],
    references: Sequence[str],
    cosine: float = 100.0,
    tokeniser: str = AUTO,
    metric: str = BLEU,
) -> tuple[str, dict[str, Any]]:
    """The name of a model's metric, and the content of its score file.

    cosine: the score of vectors. tokeniser, metric: of text.
    """
    if shape.embeds:
        return COSINE.name, {COSINE.name: cosine, "examples": len(answers)}
    if shape.classifies:
        return ACCURACY.name, labels_scored(answers, references)
    _, found = score_of_texts(answers, references, GREEDY, tokeniser)
    if metric == CHRF:
        found |= {"signature": found["chrf_signature"]}
    if metric == ROUGE_L:
        found |= rouge_l(answers, references, tokeniser)
    return metric, found


def references_named(
    model: Bundle, sentences: Sequence[str], references: Sequence[str], origin: object
) -> Sequence[str]:
    """The references of a model's sentences; if they are labels, as the model spells them.

    origin: where they are from. Raises UserError for a label that the model does not have, with
    the number of its line, and for a model that embeds sentences, which has no answers to hold references against.
    """
    if model.shape.embeds:
        raise UserError("A sentence encoder is measured by its own vectors: remove --references.")
    labels = model.target
    if not isinstance(labels, Labels):
        return references
    filled = [number for number, sentence in enumerate(sentences, 1) if sentence.strip()]
    named = dict(zip(filled, labels.named((references[number - 1] for number in filled), origin, filled), strict=True))
    return [named.get(number, line) for number, line in enumerate(references, 1)]


def maps_of_any(
    model: Encoder,
    source: Vocabulary,
    target: Encodes,
    lines: Sequence[str],
    wanted: Sequence[str],
    shown: Sequence[int] = (),
) -> list[dict[str, Any]]:
    """Attention maps of some sentences of a text.

    target: the target vocabulary or labels. wanted: the label of each line. shown: numbers of the sentences, from 1; by
    default the first ones of suitable length.
    """
    settings = MAPS
    if shown:
        settings = MapsSettings(sentences=len(shown), min_words=1, max_words=sys.maxsize)
        lines, wanted = ([text[number - 1] for number in shown] for text in (lines, wanted))
    if isinstance(target, Vocabulary):
        assert isinstance(model, Transformer)
        return maps_of_sentences(model, source, target, map(words_of_text, lines), settings, GREEDY)
    assert isinstance(target, Labels)
    return maps_of_lines(model, source, target, lines, wanted, None, settings, GREEDY.batch_tokens)
