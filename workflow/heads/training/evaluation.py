"""Evaluation of a model during training: dev loss, and BLEU of greedy translations, accuracy or cosine."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from heads.base.names import AUTO
from heads.config.analyses import TranslateSettings
from heads.config.trainings import TrainingSettings
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Vocabulary
from heads.training.losses import drift
from heads.translation.scoring import searched
from heads.translation.text_scores import bleu, tokeniser_of


@torch.no_grad()
def evaluation(
    pairs: Pairs,
    references: Sequence[str],
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    device: torch.device,
    model: Encoder,
    gates: Gates | None,
    tokeniser: str = AUTO,
) -> dict[str, float]:
    """Dev loss, in nats per token and not smoothed, and, if requested, BLEU of greedy translations, by name.

    references: plain text of the target side, including pairs that are left out; vocabulary: of the target side;
    tokeniser: of BLEU.
    """
    scores = {"dev_loss": measured(model, pairs, gates, settings, device)[0]}
    if settings.dev_bleu_sentences and isinstance(model, Transformer):
        greedy = TranslateSettings(
            beam=1, length_penalty=0.0, batch_tokens=settings.micro_batch_tokens, sentences=settings.dev_bleu_sentences
        )
        numbers, texts = searched(model, pairs, vocabulary, greedy, device, gates)
        own = [references[i] for i in numbers]
        scores["dev_bleu"] = round(bleu(texts, own, tokeniser_of(references, tokeniser))["bleu"], 2)
    return scores


@torch.no_grad()
def classification(
    pairs: Pairs, settings: TrainingSettings, device: torch.device, model: Encoder, gates: Gates | None
) -> dict[str, float]:
    """Dev loss, in nats per example and not smoothed, and dev accuracy in percent, by name."""
    loss, right = measured(model, pairs, gates, settings, device)
    return {"dev_loss": loss, "dev_accuracy": round(100 * right, 2)}


@torch.no_grad()
def fidelity(
    pairs: Pairs,
    teacher: Encoder,
    settings: TrainingSettings,
    device: torch.device,
    model: Encoder,
    gates: Gates | None,
) -> dict[str, float]:
    """Dev loss, the mean `drift` from the teacher, and the mean cosine in percent, by name."""
    batches = pairs.in_order(settings.micro_batch_tokens)
    mean = float(torch.cat([drift(model, teacher, batch.to(device), gates) for _, batch in batches]).mean())
    return {"dev_loss": mean, "dev_cosine": round(100 * (1 - mean), 2)}


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
