"""Our beam search compared with CTranslate2's: sentences per CPU second, one thread, same weights, several types.

Run by benchmarks/peers.py on a folder that has `test.en.gz`. Words become ids by their checksum. Both translate
the same batches of 64 sentences sorted by length, with a beam size of 4, in exactly 40 steps: ours ends with a forced
end-of-sentence token, so it has 39 subwords where CTranslate2 has 40. Agreement of the outputs is counted outside the
timing, with 40 subwords in both.

All take turns; times are CPU seconds of the fastest turn, over all threads of the process.
"""

import gzip
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import ctranslate2
import numpy as np
import torch
from torch import Tensor, nn

import heads.translation.beam_search
from heads.analysis.speed import ending_after
from heads.config.trainings import ModelSettings
from heads.model.attention import Attention
from heads.model.encoder import sinusoids
from heads.model.shape import unpruned_shape
from heads.model.sublayers import Layer, layers_of
from heads.model.transformer import Transformer
from heads.text.batches import pad
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.translation.beam_search import IMPOSSIBLE, beam_search

SUBWORDS, AT_A_TIME, BEAM, STEPS, TURNS, LONGEST = 4000, 64, 4, 40, 5, 200
SHAPE = unpruned_shape(ModelSettings(layers=3, heads=4, width=128, feedforward=512, dropout=0.0), SUBWORDS, SUBWORDS)
COMPUTE_TYPES = ("float32", "bfloat16", "int8")
"""Of CTranslate2, those that it supports on the processor; the first, with which all are compared, everywhere."""
ONE_THREAD = {"inter_threads": 1, "intra_threads": 1}
NAMES = ["<blank>", "<s>", "</s>", "<unk>", *map(str, range(UNK + 1, SUBWORDS))]
"""CTranslate2's names for the ids."""
IDS = {name: number for number, name in enumerate(NAMES)}


def batches_of(text: Path) -> list[list[list[int]]]:
    """Batches of sentences sorted by length, as ids with the end-of-sentence token."""
    with gzip.open(text, "rt", encoding="utf-8") as lines:
        ids = [[crc32(word.encode()) % (SUBWORDS - 4) + 4 for word in line.split()] + [EOS] for line in lines]
    ids.sort(key=len)
    return [ids[first : first + AT_A_TIME] for first in range(0, len(ids), AT_A_TIME)]


def random_model() -> Transformer:
    """A random model in which forbidden subwords are practically impossible, since CTranslate2 does not forbid them."""
    torch.manual_seed(1)
    model = Transformer(SHAPE).eval()
    model.projection.bias.data[[PAD, BOS, UNK]] = IMPOSSIBLE
    return model


def put(spec: Any, weight: Tensor, bias: Tensor | None = None, *, names: tuple[str, str] = ("weight", "bias")) -> None:
    """Copy weights into a part of CTranslate2's model specification."""
    for name, value in zip(names, (weight, bias), strict=True):
        if value is not None:
            setattr(spec, name, value.detach().float().numpy().copy())


def put_norm(spec: Any, norm: nn.Module) -> None:
    """Copy the weights of a layer norm."""
    put(spec, norm.get_parameter("weight"), norm.get_parameter("bias"), names=("gamma", "beta"))


def put_attention(spec: Any, norm: nn.Module, ours: Attention) -> None:
    """Copy the weights of an attention, whose matrices CTranslate2 joins: all three, or keys and values."""
    put_norm(spec.layer_norm, norm)
    joined = [ours.query.weight, ours.key.weight, ours.value.weight]
    into = [joined] if len(spec.linear) == 2 else [joined[:1], joined[1:]]
    for linear, weights in zip(spec.linear, [*into, [ours.output.weight]], strict=True):
        put(linear, torch.cat(weights))


def put_layer(spec: Any, layer: Layer) -> None:
    """Copy the weights of an encoder or decoder layer."""
    put_attention(spec.self_attention, layer.self_residual.norm, layer.self_attention)
    if hasattr(layer, "cross_attention"):
        put_attention(spec.attention, layer.cross_residual.norm, layer.cross_attention)
    put_norm(spec.ffn.layer_norm, layer.feedforward_residual.norm)
    put(spec.ffn.linear_0, layer.feedforward.inner.weight, layer.feedforward.inner.bias)
    put(spec.ffn.linear_1, layer.feedforward.outer.weight, layer.feedforward.outer.bias)


def save(model: Transformer, folder: Path) -> None:
    """Write the same model for CTranslate2."""
    spec = ctranslate2.specs.TransformerSpec.from_config(SHAPE.layers("enc_self"), SHAPE.original_heads, pre_norm=True)
    for stack, layers in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        stack.position_encodings.encodings = sinusoids(LONGEST, SHAPE.width).float().numpy()
        for described, layer in zip(stack.layer, layers_of(layers), strict=True):
            put_layer(described, layer)
    put(spec.encoder.embeddings[0], model.source_embedding.subwords.weight)
    put(spec.decoder.embeddings, model.target_embedding.subwords.weight)
    put_norm(spec.encoder.layer_norm, model.encoder_norm)
    put_norm(spec.decoder.layer_norm, model.decoder_norm)
    put(spec.decoder.projection, model.projection.weight, model.projection.bias)
    spec.register_source_vocabulary(NAMES)
    spec.register_target_vocabulary(NAMES)
    spec.validate()
    spec.save(str(folder))


def theirs(translator: ctranslate2.Translator, batches: list[list[list[int]]]) -> list[list[int]]:
    """CTranslate2's translations."""
    found = []
    for batch in batches:
        named = [[NAMES[i] for i in ids] for ids in batch]
        ends = {"min_decoding_length": STEPS, "max_decoding_length": STEPS}
        results = translator.translate_batch(named, beam_size=BEAM, max_batch_size=AT_A_TIME, **ends)
        found += [[IDS[name] for name in result.hypotheses[0]] for result in results]
    return found


def ours(model: Transformer, batches: list[list[list[int]]], subwords: int = STEPS - 1) -> list[list[int]]:
    """Our translations with the given number of subwords, which takes one step more."""
    found = []
    for batch in batches:
        source, mask = pad([np.array(ids, np.int32) for ids in batch])
        with ending_after(model, subwords):
            found += beam_search(model, source, mask, beam=BEAM, length_penalty=1.0)
    return found


def ours_in_bf16(model: Transformer, batches: list[list[list[int]]], subwords: int = STEPS - 1) -> list[list[int]]:
    """Our translations with products in bf16, as in training."""
    with torch.autocast("cpu", torch.bfloat16):
        return ours(model, batches, subwords)


def compare(folder: Path) -> None:
    """Compare the outputs, time all ways and print the ratios to the first."""
    vars(heads.translation.beam_search)["length_limit"] = lambda _: STEPS + 2
    batches, model = batches_of(folder / "test.en.gz"), random_model()
    with tempfile.TemporaryDirectory() as place:
        save(model, Path(place))
        kinds = [kind for kind in COMPUTE_TYPES if kind in ctranslate2.get_supported_compute_types("cpu")]
        translators = {kind: ctranslate2.Translator(place, compute_type=kind, **ONE_THREAD) for kind in kinds}
    ways: dict[str, Callable[..., list[list[int]]]] = {
        f"CTranslate2, {kind}": partial(theirs, translator, batches) for kind, translator in translators.items()
    }
    mine = {"ours, float32": partial(ours, model, batches), "ours, bfloat16": partial(ours_in_bf16, model, batches)}
    found = {name: way() for name, way in ways.items()} | {name: way(STEPS) for name, way in mine.items()}
    ways |= mine
    rate = dict.fromkeys(ways, 0.0)
    for _ in range(TURNS):
        for name, way in ways.items():
            started = time.process_time()
            way()
            rate[name] = max(rate[name], sum(map(len, batches)) / (time.process_time() - started))
    first, *_ = ways
    print("way", "sentences a CPU second", "speed relative to the first", "outputs as the first's", sep="\t")
    for name in ways:
        same = sum(one == other for one, other in zip(found[name], found[first], strict=True))
        print(name, f"{rate[name]:.1f}", f"{rate[name] / rate[first]:.2f}", f"{same} of {len(found[name])}", sep="\t")
