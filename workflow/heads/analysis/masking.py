"""Outputs of a model for one text with any of its heads masked: translations, labels or vectors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.analysis.ablation import Translate
from heads.analysis.metrics import ACCURACY, COSINE, Answers, Metric, text_metric
from heads.base.files import UserError, read_references
from heads.base.names import AUTO, BLEU
from heads.config.analyses import TranslateSettings
from heads.model.cached_states import CachedStates
from heads.model.encoder import Encoder
from heads.model.encoder_only import ExampleEncoder, SentenceEncoder
from heads.model.folder import load_model
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import batched, pad
from heads.text.encoding import Encodes, vocabulary_or_labels
from heads.text.labels import Labels
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.drafts import Drafted
from heads.translation.scoring import every_pair, searched
from heads.translation.text_scores import tokeniser_of

VECTORS_BATCH_TOKENS = 4096


def load_with_heads(folder: Path, device: torch.device) -> Encoder:
    """The model of a folder, on the device. Raises UserError if it has no head to mask."""
    loaded = load_model(folder).to(device)
    if not loaded.shape.heads():
        raise UserError(f"{folder} holds a model without any heads, so there is nothing to mask: give another run.")
    return loaded


@dataclass(frozen=True)
class EncodedText:
    """A text in subwords, what is right for each line, and the vocabulary or labels to answer in."""

    source: Tokens
    references: Sequence[str]
    target: Encodes
    tokeniser: str = AUTO
    """Of BLEU and ROUGE-L, as in `tokeniser_of`."""
    metric: str = BLEU
    """What outputs are scored by, if they are text."""
    vectors: Answers | None = None
    """What vectors are compared with; None: those of the model that is asked, unmasked."""


def read_text(
    source: Path, references: Path, target_bpe: Path, tokeniser: str = AUTO, metric: str = BLEU
) -> EncodedText:
    """The text of a token file, with the lines of a plain file as references.

    target_bpe: the target vocabulary, or the labels. Raises UserError if text and references differ in length, or for
    a label that is not known.
    """
    tokens = Tokens(source)
    lines, target = read_references(references, str(source), len(tokens)), vocabulary_or_labels(target_bpe)
    lines = target.named(lines, references) if isinstance(target, Labels) else lines
    return EncodedText(tokens, lines, target, tokeniser, metric)


def evaluation_of(
    model: Encoder, device: torch.device, text: EncodedText, search: TranslateSettings, *, much_alike: bool = False
) -> tuple[Translate, Answers, Metric]:
    """A function that translates, classifies or embeds a text under given gates, its references, and its metric.

    Of the text, the first `search.sentences` lines are used (0: all). much_alike: the model keeps its weights and most
    outputs stay as in the first call, so that what they share is computed once. Raises UserError if the model answers
    in other subwords or labels than those of the text.
    """
    check_answered_in(model, text.target)
    tokens, lines, target = text.source, text.references[: search.sentences or None], text.target
    if isinstance(target, Vocabulary):
        assert isinstance(model, Transformer)
        pairs, metric = every_pair(tokens), text_metric(text.metric, tokeniser_of(text.references, text.tokeniser))
        if much_alike and search.beam == 1:
            drafted = Drafted(model, pairs, search, device)
            return lambda gates: target.decode([ids for _, ids in sorted(drafted(gates).items())]), lines, metric
        return lambda gates: searched(model, pairs, target, search, device, gates)[1], lines, metric
    cached = CachedStates(model) if much_alike else None
    if isinstance(model, SentenceEncoder):
        embed = partial(vectors, model, tokens, device, len(lines), cached=cached)
        return embed, embed(None) if text.vectors is None else text.vectors[: len(lines)], COSINE
    assert isinstance(target, Labels)
    examples = (tokens, target, device, search.batch_tokens, len(lines))
    return partial(classified, model, *examples, cached=cached), lines, ACCURACY


def check_answered_in(model: Encoder, target: Encodes) -> None:
    """Raise UserError if a model does not answer in a vocabulary or in labels, by their kind and number."""
    labels = isinstance(target, Labels)
    if labels != model.shape.encoder_only or len(target) != model.shape.target_subwords:
        had = f"{len(target)} {'labels' if labels else 'subwords'}"
        needed = f"{model.shape.target_subwords} {'labels' if model.shape.encoder_only else 'subwords'}"
        raise UserError(f"{target.path} has {had}, but the model answers in {needed}: give those it was trained with.")


@torch.inference_mode()
def classified(
    model: Encoder,
    examples: Tokens,
    labels: Labels,
    device: torch.device,
    batch_tokens: int,
    limit: int,
    gates: Gates | None = None,
    *,
    cached: CachedStates | None = None,
) -> list[str]:
    """The most likely label of each of the first `limit` examples, by a model in evaluation mode.

    cached: of this model and these examples, if they are read under many gates.
    """
    found = [""] * limit
    for members, states in pooled_states(model, examples, device, batch_tokens, limit, gates, cached):
        for member, place in zip(members, model.projection(states)[:, 0].argmax(-1).tolist(), strict=True):
            found[member] = labels.words[place]
    return found


@torch.inference_mode()
def vectors(
    model: Encoder,
    examples: Tokens,
    device: torch.device,
    limit: int | None = None,
    gates: Gates | None = None,
    *,
    cached: CachedStates | None = None,
) -> list[NDArray[np.float32]]:
    """The vector [D] of each of the first `limit` examples; as `classified`."""
    found: dict[int, NDArray[np.float32]] = {}
    for members, states in pooled_states(model, examples, device, VECTORS_BATCH_TOKENS, limit, gates, cached):
        found |= zip(members.tolist(), states[:, 0].float().cpu().numpy(), strict=True)
    return [found[member] for member in range(len(found))]


def pooled_states(
    model: Encoder,
    examples: Tokens,
    device: torch.device,
    batch_tokens: int,
    limit: int | None,
    gates: Gates | None,
    cached: CachedStates | None,
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Batches of similar length: numbers of examples, and the state [B, 1, D] that stands for each of them."""
    assert isinstance(model, ExampleEncoder)
    encode = (cached or CachedStates(model, room=0)).encode
    lengths = examples.lengths[:limit]
    for number, members in enumerate(batched(np.argsort(lengths, kind="stable"), lengths, batch_tokens)):
        source, mask = (part.to(device) for part in pad([examples[i] for i in members]))
        yield members, model.pool(encode(number, source, mask, gates), mask)
