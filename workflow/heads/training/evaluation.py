"""How good a model is while it trains: dev loss, and BLEU of greedy translations of dev sentences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from heads.config.trainings import TrainingSettings
from heads.model.transformer import Gates, Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Vocabulary
from heads.training.loop import Evaluate
from heads.translation.beam_search import bleu, translate_pairs


def evaluation(
    pairs: Pairs, references: Sequence[str], vocabulary: Vocabulary, settings: TrainingSettings, device: torch.device
) -> Evaluate:
    """A function that gives dev loss (nats a token, not smoothed) and BLEU of greedy translations.

    references: plain text of the target side, also of pairs that are left out; vocabulary: of the target side.
    """

    @torch.no_grad()
    def evaluate(model: Transformer, gates: Gates | None) -> dict[str, float]:
        total, tokens = 0.0, 0
        for _, batch in pairs.in_order(settings.micro_batch_tokens):
            batch = batch.to(device)
            states = model(batch.source, batch.source_mask, batch.target_input, gates)
            logits = model.projection(states[batch.target_mask])
            total += float(F.cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum"))
            tokens += int(batch.target_mask.sum())
        scores = {"dev_loss": total / tokens}
        if settings.dev_bleu_sentences:
            numbers, texts = translate_pairs(
                model,
                pairs,
                vocabulary,
                device,
                batch_tokens=settings.micro_batch_tokens,
                beam=1,
                length_penalty=0.0,
                limit=settings.dev_bleu_sentences,
                gates=gates,
            )
            scores["dev_bleu"] = round(bleu(texts, [references[i] for i in numbers])["bleu"], 2)
        return scores

    return evaluate
