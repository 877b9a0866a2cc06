"""A test set translated by beam search and scored with sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from heads.config.analyses import TranslateSettings
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.beam_search import bleu, translate_pairs


def scored(
    model: Transformer,
    source: Tokens,
    references: Sequence[str],
    vocabulary: Vocabulary,
    settings: TranslateSettings,
    device: torch.device,
) -> tuple[list[str], list[str], dict[str, Any]]:
    """Translations of the first `settings.sentences` sentences (0: all), their references, and BLEU with its search."""
    numbers, texts = translate_pairs(
        model,
        Pairs(source, source, int(source.lengths.max(initial=0))),
        vocabulary,
        device,
        batch_tokens=settings.batch_tokens,
        beam=settings.beam,
        length_penalty=settings.length_penalty,
        limit=settings.sentences,
    )
    own = [references[i] for i in numbers]
    facts = {
        "split": "test",
        "sentences": len(texts),
        "beam": settings.beam,
        "length_penalty": settings.length_penalty,
    }
    return texts, own, {**bleu(texts, own), **facts}
