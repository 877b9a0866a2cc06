"""Models in which only some known heads matter: a random one whose other heads are made faint, and one written by
hand, weight by weight, that translates by a rule and whose heads each carry a part of the answer."""

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heads.model.head_removal import module_name
from heads.model.shape import Head, ModelShape, full_heads
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.text.special_ids import BOS, EOS
from heads.translation.beam_search import greedy

RECURRENT: dict[str, Any] = {
    "decoder_past": "ssru",
    "live_heads": full_heads(layers=2, heads=3, kinds=("enc_self", "dec_enc")),
}
"""What differs in the tiny model whose decoder has no self-attention."""
USEFUL: tuple[Head, ...] = (("enc_self", 1, 2), ("dec_self", 0, 1), ("dec_enc", 0, 0), ("dec_enc", 1, 1))
"""The heads that matter; they differ in attention, layer and number."""
FAINT = 1e-4
LOUD = 4.0


def with_useful_heads(model: Transformer, useful: Collection[Head] = USEFUL) -> Transformer:
    """The same model with the output projections of useful heads enlarged and all others made faint."""
    modules, width = dict(model.named_modules()), model.shape.head_width
    for kind, layer, head in model.shape.heads():
        place = model.shape.live_heads[kind][layer].index(head)
        output = modules[f"{module_name(kind, layer)}.output"]
        assert isinstance(output, torch.nn.Linear)
        columns = slice(place * width, (place + 1) * width)
        output.weight.data[:, columns] *= LOUD if (kind, layer, head) in useful else FAINT
    return model


def random_batch(sentences: int, seed: int) -> Batch:
    """Random subwords of the tiny model; every sentence has 6 source and 5 target subwords."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 13, (sentences, 6), generator=generator)
    target = torch.randint(4, 11, (sentences, 5), generator=generator)
    return Batch(source, source > 0, target, target.roll(-1, 1), target > 0)


@torch.no_grad()
def assert_steps_are_those_at_once(model: Transformer, batch: Batch, gates: Gates | None = None) -> None:
    """Assert that decoding token by token gives the logits of decoding all at once."""
    memory = model.encode(batch.source, batch.source_mask, gates)
    expected = model.projection(model.decode(batch.target_input, memory, batch.source_mask, gates))
    cache = model.start_cache(memory, batch.source_mask)
    steps = [model.decode_next(batch.target_input[:, [i]], cache, gates) for i in range(batch.target_input.shape[1])]
    torch.testing.assert_close(torch.cat(steps, 1), expected)


def translator(model: Transformer, batch: Batch) -> Callable[[Gates | None], list[str]]:
    """Greedy translations of a batch as words made of subword numbers."""

    def translate(gates: Gates | None) -> list[str]:
        return [" ".join(f"w{i}" for i in ids) for ids in greedy(model, batch.source, batch.source_mask, gates)]

    return translate


KNOWN: tuple[Head, ...] = (("enc_self", 0, 2), ("dec_self", 0, 1), ("dec_enc", 0, 0), ("dec_enc", 1, 1))
"""The heads that do all the work of `hand_made`, each alone in its layer."""
WIDTH, HEAD_WIDTH = 64, 8
SURE, MIDDLING, UNSURE = 10.0, 1.0, 0.3
SHARP, LARGE = 300.0, 10.0
FIRST_WORD, WORDS, TRANSLATIONS = 4, 8, 16
P, Q, R, END, BEFORE = range(28, 48, 4)
"""Dimensions of the encoder's stream where the position signal is nearly zero: three marks (+ or -) of a source word,
whether it is the end, and Q of the previous word."""
LAST, *OUT = range(28, 52, 4)
"""Dimensions of the decoder's stream: the first mark of its input, and in OUT the four marks of its output and
whether it is the end."""
ANCHOR, NOTHING = 56, 62
"""Two more dimensions. ANCHOR has a large value, so that layer norms divide all positions by nearly the same number.
NOTHING is never written to; norms shift it like all others, so marks and positions are read as differences from it.
For the same reasons, whatever is written into a dimension is also subtracted from the one two further on."""


def expected(source: list[int]) -> list[int]:
    """Translation of words by `hand_made`: P of a word, Q of the previous one, R of the next, and P of two outputs ago.

    At either end of the sentence a word stands for its missing neighbour; the start and the end have all marks.
    """
    bits = [[word - FIRST_WORD >> place & 1 for place in (2, 1, 0)] for word in source] + [[1, 1, 1]]
    found: list[list[int]] = []
    for i in range(len(source)):
        found.append([bits[i][0], bits[max(i - 1, 0)][1], bits[i + 1][2], found[i - 2][0] if i > 1 else 1])
    return [FIRST_WORD + 8 * a + 4 * b + 2 * c + d for a, b, c, d in found]


def hand_made(shape: Callable[..., ModelShape], *, sharpness: float = SURE, **changes: Any) -> Transformer:
    """A float32 model that translates as in `expected`: every KNOWN head carries marks, all others are nearly silent.

    A KNOWN head attends, by the position signal, to one position at a fixed offset; others attend uniformly.
    sharpness: factor on the logits; SURE is more confident than smoothed labels ask for, UNSURE far less.
    """
    subwords = {"source_subwords": FIRST_WORD + WORDS, "target_subwords": FIRST_WORD + TRANSLATIONS}
    model = Transformer(shape(**{"width": WIDTH, "head_width": HEAD_WIDTH, **subwords, **changes})).eval()
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if not name.endswith("norm.weight"):
                value.copy_(FAINT**0.5 * torch.randn(value.shape, generator=generator))
        write_words(model, sharpness)
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.subwords.weight[:, ANCHOR] = LARGE / WIDTH**0.5
            embedding.subwords.weight[:, P + 2 : NOTHING : 4] = -embedding.subwords.weight[:, P : NOTHING - 2 : 4]
        carry(model, KNOWN[0], -1, {Q: BEFORE})
        carry(model, KNOWN[1], -1, {LAST: OUT[3]})
        carry(model, KNOWN[2], 1, {R: OUT[2]})
        carry(model, KNOWN[3], 0, {P: OUT[0], BEFORE: OUT[1], END: OUT[4]})
    return model


def write_words(model: Transformer, sharpness: float) -> None:
    """Embeddings that show the marks of words, and logits that read them off the output."""
    marks = 2 / WIDTH**0.5
    source, target = model.source_embedding.subwords.weight, model.target_embedding.subwords.weight
    for subwords in (source, target):  # noise would blur the position signal
        subwords.zero_()
    for bits, word in enumerate(range(FIRST_WORD, FIRST_WORD + WORDS)):
        for place, mark in enumerate((R, Q, P)):
            source[word, mark] = marks * (1 if bits >> place & 1 else -1)
        source[word, END] = -marks
    source[EOS, [P, Q, R, END]] = target[[BOS, EOS], LAST] = marks
    logits = model.projection
    logits.bias[:FIRST_WORD] = logits.bias[FIRST_WORD + TRANSLATIONS :] = -100.0
    logits.bias[EOS] = 0.0
    logits.weight[EOS, OUT[4]] = 8 * sharpness
    for bits, word in enumerate(range(FIRST_WORD, FIRST_WORD + TRANSLATIONS)):
        signs = [1 if bits >> place & 1 else -1 for place in (3, 2, 1, 0)]
        target[word, LAST] = marks * signs[0]
        logits.weight[word, OUT[:4]] = sharpness * torch.tensor(signs, dtype=torch.float32)
    logits.weight[:, NOTHING] = -logits.weight[:, OUT].sum(1)


def carry(model: Transformer, head: Head, offset: int, marks: dict[int, int]) -> None:
    """Let a head attend `offset` positions further on and add the marks it finds there to those of its own position."""
    kind, layer, number = head
    if number not in model.shape.live_heads[kind][layer]:
        return
    attention = dict(model.named_modules())[module_name(kind, layer)]
    first = model.shape.live_heads[kind][layer].index(number) * HEAD_WIDTH
    for pair in range(0, HEAD_WIDTH, 2):
        angle = offset * 10_000.0 ** (-pair / WIDTH)
        turned = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        rows, columns = slice(first + pair, first + pair + 2), slice(pair, pair + 2)
        attention.query.weight[rows, columns] = SHARP * turned
        attention.query.weight[rows, NOTHING] = -SHARP * turned.sum(1)
        attention.key.weight[rows, columns], attention.key.weight[rows, NOTHING] = torch.eye(2), -1.0
    for place, (read, write) in enumerate(marks.items()):
        attention.value.weight[first + place, [read, NOTHING]] = torch.tensor([1.0, -1.0])
        attention.output.weight[[write, write + 2], first + place] = torch.tensor([2.0, -2.0])


def sentences(count: int, seed: int) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """Random source sentences of four to seven words, and their translations by `hand_made`."""
    generator = np.random.default_rng(seed)
    sources = [generator.integers(FIRST_WORD, FIRST_WORD + WORDS, n) for n in generator.integers(4, 8, count)]
    targets = [np.array(expected(source.tolist()), np.int32) for source in sources]
    return [source.astype(np.int32) for source in sources], targets
