"""The cost of translating with each head of a model masked alone.

Run `PYTHONPATH=workflow python benchmarks/masking.py [results/demo]`: with the demo's model and the first 500 sentences
of its test set if the folder has them, otherwise with a random model of similar size, which ends sentences only at
their length limit and so takes much longer. Times are CPU seconds on one thread. Compared in turn, every ninth head
masked: beam search, greedy search and greedy search checked against drafts, as in `ablation` with a beam size of 1.
Before that, for any model including classifiers: the encoder alone with each head masked, run from the bottom and from
states kept below the masked layer.
"""

import sys
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heads.analysis.ablation import gates_without, masked_alone
from heads.config.analyses import TranslateSettings
from heads.config.trainings import ModelSettings
from heads.model.cached_states import CachedStates
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.shape import Head, unpruned_shape
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import cut, pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Tokens
from heads.translation.beam_search import beam_search
from heads.translation.drafts import Drafted
from heads.translation.scoring import every_pair, search_pairs

CPU = torch.device("cpu")
SENTENCES, MEAN_LENGTH = 500, 12
TEXT = Path("bpe/test.source.safetensors")
STAGE = 4000
"""Tokens per batch in the stage `ablation`."""
SHAPE = unpruned_shape(ModelSettings(layers=3, heads=4, width=64, feedforward=256, dropout=0.0), 1500, 2500)
Sources = list[tuple[Tensor, Tensor]]


def opened(folder: Path) -> tuple[Encoder, list[np.ndarray]]:
    """The demo's model and sentences, or a random model and random sentences."""
    if (folder / "baseline" / "seed-1" / "model.safetensors").exists():
        tokens = Tokens(folder / TEXT)
        return load_model(folder / "baseline" / "seed-1"), [tokens[i] for i in range(SENTENCES)]
    torch.manual_seed(1)
    generator = np.random.default_rng(2)
    lengths = generator.integers(MEAN_LENGTH - 3, MEAN_LENGTH + 4, SENTENCES)
    return Transformer(SHAPE).eval(), [generator.integers(4, 1500, n).astype(np.int32) for n in lengths]


def batches_of(sentences: Sequence[np.ndarray]) -> Sources:
    """Batches of sentences of similar length, of about as many tokens as in the stage."""
    lengths = np.array([len(ids) for ids in sentences])
    parts = cut(np.argsort(lengths, kind="stable"), lengths, STAGE)
    return [pad([np.append(sentences[i], EOS) for i in part]) for part in parts]


def main() -> None:
    """Print the cost of all heads, and of every ninth head in other ways."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/demo")
    model, sentences = opened(folder)
    masks, batches = list(masked_alone(model.shape).values()), batches_of(sentences)
    by_prefixes(model, batches, masks)
    if not isinstance(model, Transformer):
        return
    if (folder / TEXT).exists():
        by_drafts(model, Tokens(folder / TEXT), masks)
    print(f"{len(masks)} masks x {len(sentences)} sentences, {STAGE} tokens at a time", end=": ", flush=True)
    started = time.process_time()
    for masked in masks:
        gates = gates_without(model, masked)
        for source, mask in batches:
            beam_search(model, source, mask, beam=4, length_penalty=0.6, gates=gates)
    print(f"{time.process_time() - started:.1f} CPU s")


@torch.inference_mode()
def by_prefixes(model: Encoder, batches: Sources, masks: Sequence[Collection[Head]]) -> None:
    """Print the cost of the encoder with each head masked, in turn from the bottom and from kept states."""
    cached, whole, kept = CachedStates(model), 0.0, 0.0
    for masked in masks:
        gates = gates_without(model, masked)
        started = time.process_time()
        expected = [model.encode(*batch, gates) for batch in batches]
        between = time.process_time()
        found = [cached.encode(number, *batch, gates) for number, batch in enumerate(batches)]
        whole, kept = whole + between - started, kept + time.process_time() - between
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    print(f"{len(masks)} masks, the encoder alone: {whole:.1f} CPU s, from states that are kept {kept:.1f} CPU s")


def by_drafts(model: Transformer, tokens: Tokens, masks: Sequence[Collection[Head]]) -> None:
    """Print the cost of the searches, taking turns mask by mask, and the cost of all heads with drafts."""
    pairs = every_pair(tokens)
    wide, greedy = (
        TranslateSettings(beam=beam, length_penalty=0.6, batch_tokens=STAGE, sentences=SENTENCES) for beam in (4, 1)
    )
    drafted = Drafted(model, pairs, greedy, CPU)
    ways: dict[str, Callable[[Gates | None], dict[int, list[int]]]] = {
        "a beam of 4": partial(search_pairs, model, pairs, wide, CPU),
        "greedy": partial(search_pairs, model, pairs, greedy, CPU),
        "greedy by drafts": drafted,
    }
    spent, differ = dict.fromkeys(ways, 0.0), 0
    drafted(None)
    for masked in masks[::9]:
        gates, found = gates_without(model, masked), {}
        for name, way in ways.items():
            started = time.process_time()
            found[name] = way(gates)
            spent[name] += time.process_time() - started
        differ += sum(ids != found["greedy"][number] for number, ids in found["greedy by drafts"].items())
    for name, each in spent.items():
        print(f"{len(masks[::9])} masks x {SENTENCES} sentences, {name}: {each:.2f} CPU s")
    print(f"{differ} of {len(masks[::9]) * SENTENCES} translations by drafts are not those of greedy search")
    started = time.process_time()
    for masked in masks:
        drafted(gates_without(model, masked))
    print(f"{len(masks)} masks x {SENTENCES} sentences, greedy by drafts: {time.process_time() - started:.1f} CPU s")


if __name__ == "__main__":
    main()
