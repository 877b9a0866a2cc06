"""Evaluation of a model during training: dev loss, and BLEU of greedy translations, accuracy or cosine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from heads.config.analyses import TranslateSettings
from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Vocabulary
from heads.training.loop import Evaluate
from heads.training.losses import drift
from heads.translation.beam_search import bleu
from heads.translation.scoring import searched


def evaluation(
    pairs: Pairs, references: Sequence[str], vocabulary: Vocabulary, settings: TrainingSettings, device: torch.device
) -> Evaluate:
    """A function that returns dev loss (nats per token, not smoothed) and BLEU of greedy translations.

    references: plain text of the target side, including pairs that are left out; vocabulary: of the target side.
    """
    greedy = TranslateSettings(
        beam=1, length_penalty=0.0, batch_tokens=settings.micro_batch_tokens, sentences=settings.dev_bleu_sentences
    )

    @torch.no_grad()
    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        """Dev loss and, if requested, dev BLEU, by name."""
        loss, _ = measured(model, pairs, gates, settings, device)
        scores = {"dev_loss": loss}
        if settings.dev_bleu_sentences and isinstance(model, Transformer):
            numbers, texts = searched(model, pairs, vocabulary, greedy, device, gates)
            scores["dev_bleu"] = round(bleu(texts, [references[i] for i in numbers])["bleu"], 2)
        return scores

    return evaluate


def classification(pairs: Pairs, settings: TrainingSettings, device: torch.device) -> Evaluate:
    """A function that returns dev loss (nats per example, not smoothed) and accuracy in percent."""

    @torch.no_grad()
    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        """Dev loss and dev accuracy, by name."""
        loss, right = measured(model, pairs, gates, settings, device)
        return {"dev_loss": loss, "dev_accuracy": round(100 * right, 2)}

    return evaluate


def fidelity(pairs: Pairs, first: Encoder, settings: TrainingSettings, device: torch.device) -> Evaluate:
    """A function that returns dev loss (the mean `drift` from the `first` model) and the mean cosine in percent."""

    @torch.no_grad()
    def evaluate(model: Encoder, gates: Gates | None) -> dict[str, float]:
        """Dev loss and dev cosine, by name."""
        batches = pairs.in_order(settings.micro_batch_tokens)
        mean = float(torch.cat([drift(model, first, batch.to(device), gates) for _, batch in batches]).mean())
        return {"dev_loss": mean, "dev_cosine": round(100 * (1 - mean), 2)}

    return evaluate


def measured(
    model: Encoder, pairs: Pairs, gates: Gates | None, settings: TrainingSettings, device: torch.device
) -> tuple[float, float]:
    """Cross-entropy in nats per answer, and the share of answers to which the model gives the highest probability."""
    total, right, answers = 0.0, 0, 0
    for _, batch in pairs.in_order(settings.micro_batch_tokens):
        batch = batch.to(device)
        states = model(batch.source, batch.source_mask, batch.target_input, gates)
        logits, wanted = model.projection(states[batch.target_mask]), batch.target_output[batch.target_mask]
        total += float(F.cross_entropy(logits, wanted, reduction="sum"))
        right += int((logits.argmax(-1) == wanted).sum())
        answers += int(batch.target_mask.sum())
    return total / answers, right / answers
