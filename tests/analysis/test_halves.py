"""What a head does by its biases of distances alone and by its products alone, against slow sums and softmaxes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heads.analysis.attention_weights import attend
from heads.analysis.roles import roles
from heads.base.names import HALVES
from heads.config.analyses import RolesSettings
from heads.model.attention import Trace
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.syntax.words import Arc, Words
from heads.text.special_ids import EOS
from shape_facts import LIKE_T5

Build = Callable[..., Transformer]
Pointed = list[int]
SETTINGS = RolesSettings(bootstrap=100, relations=("nsubj",), min_cases=1, rare_outside_top=5, batch_tokens=20)
BUCKETS = {0: 0, 1: 1, 2: 2, 3: 2}
"""Of distances backwards, by the definition with 4 buckets a side up to distance 5; all further ones have bucket 3."""
T5 = {**LIKE_T5, "starts_with_padding": True, "head_width": 4}
OPEN = {"enc_self": [[True, False, True], [False, True, True]]}
HEADS = [(0, 0), (0, 2), (1, 1), (1, 2)]


def sentence(*subwords: int) -> Words:
    """A sentence of words of one subword each, all of which depend on the last."""
    count = len(subwords)
    arcs = tuple(Arc(word, count - 1, "nsubj") for word in range(count - 1))
    return Words(0, tuple("abcdefghi"[:count]), arcs, np.array(subwords, np.int32), np.eye(count))


SENTENCES = [sentence(5, 9, 4, 11, 7, 6), sentence(8, 4, 12), sentence(4, 10, 6, 5, 9, 7, 8), sentence(12, 5, 5, 4)]


def made(tiny_model: Build, table: Any = None) -> Transformer:
    """A model of four encoder heads, with this table of biases [8, 3] or a random one, and large products."""
    whole = tiny_model(**T5)
    for name, value in whole.named_parameters():
        if "query" in name:
            value.data *= 8
    weight = whole.get_parameter("encoder_distances.weight")
    weight.data[:] = 3 * torch.randn(8, 3, generator=torch.Generator().manual_seed(4)) if table is None else table
    return prune(whole, OPEN).double().eval()


def rows_of(model: Transformer, *, apart: bool = True) -> dict[tuple[int, int, str, str], dict[str, Any]]:
    """Rows by head, role and name."""
    found = roles(
        attend(model, SENTENCES, SETTINGS.batch_tokens, apart=apart), HEADS, np.arange(13), SETTINGS, apart=apart
    )
    return {(row["layer"], row["head"], row["role"], row["name"]): row for row in found}  # type: ignore[misc]


def slow_maps(model: Transformer, words: Words) -> dict[str, list[list[list[float]]]]:
    """Weights of each of HEADS by biases and by products, on a sentence alone, EOS among the keys."""
    ids, trace = torch.tensor([[*words.subwords.tolist(), EOS]]), Trace()
    model.encode(ids, torch.ones_like(ids, dtype=torch.bool), trace=trace)
    found: dict[str, list[list[list[float]]]] = {"by_bias": [], "by_content": []}
    table = model.get_parameter("encoder_distances.weight")
    for layer, head in HEADS:
        place = model.shape.live_heads["enc_self"][layer].index(head)
        column = model.shape.sharing("enc_self").index(head)
        part = model.get_submodule(f"encoder.{layer}.self_attention")
        states = model.get_submodule(f"encoder.{layer}.self_residual").norm(trace[f"enc_self.{layer}.input"])[0]  # type: ignore[operator]
        own = slice(4 * place, 4 * place + 4)
        queries, keys = states @ part.query.weight[own].T, states @ part.key.weight[own].T  # type: ignore[union-attr, index]
        every = range(len(ids[0]))
        distances = [[key - query for key in every] for query in every]
        biases = [[float(table[BUCKETS.get(abs(d), 3) + 4 * (d > 0), column]) for d in row] for row in distances]
        products = [[float(queries[query] @ keys[key]) for key in every] for query in every]
        for half, summands in (("by_bias", biases), ("by_content", products)):
            found[half].append([[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in summands])
    return found


def first_largest(weights: list[float]) -> int:
    """The key with the largest weight; the first of equal ones."""
    return next(key for key, weight in enumerate(weights) if weight >= max(weights) - 1e-12)


@torch.no_grad()
def test_halves_are_the_shares_of_queries_whose_largest_slow_softmax_is_where_the_role_wants_it(
    tiny_model: Build,
) -> None:
    model = made(tiny_model)
    rows, maps = rows_of(model), [slow_maps(model, words) for words in SENTENCES]
    for number, (layer, head) in enumerate(HEADS):
        for half in ("by_bias", "by_content"):
            pointed = [
                [first_largest(weights[: len(words.subwords)]) for weights in found[half][number][:-1]]
                for words, found in zip(SENTENCES, maps, strict=True)
            ]
            for offset in (-2, -1, 0, 1, 2):
                cases = [
                    (target == query + offset, weights[number][query][query + offset])
                    for targets, weights in zip(pointed, (found[half] for found in maps), strict=True)
                    for query, target in enumerate(targets)
                    if 0 <= query + offset < len(targets)
                ]
                row = rows[layer, head, "positional", f"{offset:+d}" if offset else "0"]
                assert row[half] == pytest.approx(sum(hit for hit, _ in cases) / len(cases)), (layer, head, offset)
                if half == "by_bias":
                    assert row["bias_weight"] == pytest.approx(sum(weight for _, weight in cases) / len(cases))
            arcs = [
                (targets[arc.dependent] == arc.head, targets[arc.head] == arc.dependent)
                for words, targets in zip(SENTENCES, pointed, strict=True)
                for arc in words.arcs
            ]
            for way, hits in zip(("dependent-to-head", "head-to-dependent"), zip(*arcs, strict=True), strict=True):
                assert rows[layer, head, "syntactic", f"nsubj {way}"][half] == pytest.approx(sum(hits) / len(hits))
                assert rows[layer, head, "syntactic", f"nsubj {way}"]["bias_weight"] is None
    differing = [row for row in rows.values() if len({row["accuracy"], row["by_bias"], row["by_content"]}) == 3]
    assert len(differing) >= 4, "the three are told apart"
    for words, found in zip(SENTENCES, maps, strict=True):
        ((_, weights),) = attend(model, [words], 99, apart=True)
        size = len(words.subwords)
        for part, half in ((weights[4:8], "by_bias"), (weights[8:], "by_content")):
            np.testing.assert_allclose(part, np.array(found[half])[:, :size, :size], atol=1e-6)


@torch.no_grad()
def test_a_bias_of_one_offset_points_there_however_small_it_is_and_its_weight_tells_how_small(
    tiny_model: Build,
) -> None:
    table = torch.zeros(8, 3)
    table[1, 0], table[5, 1], table[0, 2] = 9.0, 0.01, 0.5
    rows = rows_of(made(tiny_model, table))
    strong, weak, own = rows[0, 0, "positional", "-1"], rows[1, 1, "positional", "+1"], rows[0, 2, "positional", "0"]
    assert [row["by_bias"] for row in (strong, weak, own)] == [1, 1, 1]
    assert strong["bias_weight"] > 0.99 > 0.25 > weak["bias_weight"] and weak["by_content"] < 0.9
    assert rows[1, 1, "positional", "-1"]["by_bias"] < 0.4


@torch.no_grad()
def test_without_biases_content_alone_is_the_whole_head_and_the_real_weights_stay_what_they_are(
    tiny_model: Build,
) -> None:
    rows = rows_of(made(tiny_model, torch.zeros(8, 3)))
    assert all(row["by_content"] == row["accuracy"] for row in rows.values())
    model = made(tiny_model)
    taken, alone = rows_of(model), rows_of(model, apart=False)
    for place, row in alone.items():
        assert [row[half] for half in HALVES] == [None] * 3
        assert {**taken[place], **dict.fromkeys(HALVES)} == row


def weights_in(attended: Any) -> list[NDArray[np.float32]]:
    """The weights of each sentence, in the order of their lengths."""
    return [weights for _, weights in attended]


@torch.no_grad()
def test_padding_changes_neither_half(tiny_model: Build) -> None:
    model = made(tiny_model)
    together, alone = (weights_in(attend(model, SENTENCES, tokens, apart=True)) for tokens in (99, 1))
    assert len(together) == len(alone) == 4
    for one, other in zip(together, alone, strict=True):
        assert len(one) == 12
        np.testing.assert_allclose(one, other, atol=1e-6)
