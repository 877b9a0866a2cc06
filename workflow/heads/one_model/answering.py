"""What a model makes of a text, whatever it was trained for: translations, labels or vectors, their score and maps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heads.analysis.maps_of_text import maps_of_lines, maps_of_sentences
from heads.analysis.masking import classified
from heads.analysis.metrics import ACCURACY, BLEU, COSINE, labels_scored
from heads.base.files import read_lines, write_lines
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels
from heads.text.vocabulary import Tokens
from heads.translation.model_folder import VOCABULARIES
from heads.translation.scoring import every_pair, score_of_texts, searched

GREEDY = TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=2048)
MAPS = MapsSettings(sentences=12, min_words=5, max_words=16)
UNITS = {BLEU.name: "BLEU", ACCURACY.name: "points of accuracy", COSINE.name: "points of cosine"}
"""What is lost of a metric, in words."""


def answered_by(model: Encoder, tokens: Tokens, target: Path, device: torch.device) -> Sequence[str]:
    """What a model writes of a text, greedily, or which labels it predicts; a word that is always the same for vectors.

    target: its vocabulary of answers.
    """
    if isinstance(model, Transformer):
        return searched(model, every_pair(tokens), vocabulary_of(target), GREEDY, device)[1]
    labels, count = Labels(target), len(tokens.lengths)
    if model.shape.embeds:
        return labels.words * count
    return classified(model, tokens, labels, device, GREEDY.batch_tokens, count)


def score_of_answers(
    shape: ModelShape, answers: Sequence[str], references: Sequence[str], cosine: float = 100.0
) -> tuple[str, dict[str, Any]]:
    """The name of the metric of such a model, and all that its file says about a score; `cosine` is that of vectors."""
    if shape.embeds:
        return COSINE.name, {COSINE.name: cosine, "examples": len(answers)}
    if shape.classifies:
        return ACCURACY.name, labels_scored(answers, references)
    return BLEU.name, score_of_texts(answers, references, GREEDY)


def maps_of_any(model: Encoder, bpe: Path, shown: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Attention of some sentences of a text that lies in a folder with its vocabularies and answers.

    shown: their numbers, from 1; without any, the first of a fitting length.
    """
    source, target = (bpe / name for name in VOCABULARIES)
    text, answers, settings = bpe / "source.txt", bpe / "target.txt", MAPS
    if shown:
        settings = MapsSettings(sentences=len(shown), min_words=1, max_words=sys.maxsize)
        text, answers = (_chosen(path, shown) for path in (text, answers))
    if isinstance(model, Transformer):
        return maps_of_sentences(model, source, target, text, settings, GREEDY)
    return maps_of_lines(model, source, target, text, answers, None, settings, GREEDY.batch_tokens)


def _chosen(path: Path, numbers: Sequence[int]) -> Path:
    """A file beside a text with those of its lines, counted from 1."""
    lines, chosen = read_lines(path), path.with_name(f"shown.{path.name}")
    write_lines(chosen, [lines[number - 1] for number in numbers])
    return chosen
