"""Search compared with loops without a cache: greedy by argmax, beams as lists, and all possible translations."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

import heads.model.sublayer_cache
import heads.model.transformer
import heads.translation.beam_search
from few_heads import RECURRENT
from heads.base.names import ATTENTIONS
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.translation.beam_search import (
    beam_search,
    greedy,
    largest,
    length_limit,
)
from slow_ones import slow_but

Build = Callable[..., Transformer]
LENGTHS = (4, 2, 3)


@pytest.fixture
def sources() -> tuple[Tensor, Tensor]:
    """Three sentences, padded with a meaningful subword, and their mask."""
    generator = torch.Generator().manual_seed(21)
    ids = torch.randint(4, 13, (3, 4), generator=generator)
    return ids, torch.arange(4) < torch.tensor(LENGTHS)[:, None]


@torch.no_grad()
def log_probs(model: Transformer, source: Tensor, prefix: list[int]) -> list[float]:
    """Log-probabilities of the subword after `prefix`, from a whole forward pass for one sentence."""
    states = model(source[None], torch.ones(1, len(source), dtype=torch.bool), torch.tensor([[BOS, *prefix]]))
    values: list[float] = model.projection(states[0, -1]).log_softmax(-1).tolist()
    return values


def naive_greedy(model: Transformer, source: Tensor, limit: int) -> list[int]:
    """The likeliest subword at each step; the last one allowed is EOS."""
    prefix: list[int] = []
    while len(prefix) < limit - 1:
        scores = log_probs(model, source, prefix)
        token = max((i for i in range(len(scores)) if i not in (PAD, BOS, UNK)), key=scores.__getitem__)
        if token == EOS:
            break
        prefix.append(token)
    return prefix


def slow_beam(model: Transformer, source: Tensor, limit: int, beam: int, alpha: float, offset: int) -> list[int]:
    """Beam search on lists, never stopped early. EOS among the `beam` best finishes, the best others live on."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for step in range(1, limit + 1):
        candidates = []
        for score, prefix in live:
            for token, value in enumerate(log_probs(model, source, prefix)):
                if token not in (PAD, BOS, UNK) and (step < limit or token == EOS):
                    candidates.append((score + value, [*prefix, token]))
        candidates.sort(reverse=True)
        divisor = ((offset + step) / (offset + 1)) ** alpha
        finished += [(score / divisor, p[:-1]) for score, p in candidates[:beam] if p[-1] == EOS]
        live = [(score, p) for score, p in candidates if p[-1] != EOS][:beam]
    return max(finished)[1]


@pytest.mark.parametrize("changes", [{}, RECURRENT], ids=["attention", "recurrent"])
def test_greedy_search_equals_taking_the_likeliest_subword_without_a_cache(
    talker: Build, sources: tuple[Tensor, Tensor], changes: dict[str, Any]
) -> None:
    ids, mask = sources
    endings = set()
    for seed in range(8):
        model = talker(eos=1.0, seed=seed, **changes)
        results = greedy(model, ids, mask)
        for row, result in enumerate(results):
            limit = length_limit(LENGTHS[row])
            assert result == naive_greedy(model, ids[row][mask[row]], limit)
            endings.add("cut" if len(result) == limit - 1 else "short" if len(result) < 2 else "long")
    assert endings == {"cut", "short", "long"}


@pytest.mark.parametrize(("alpha", "how"), [(0.0, {}), (0.6, {}), (1.7, {}), (1.0, {"length_offset": 0})])
@pytest.mark.parametrize("seed", slow_but([2], [1, 2, 3]))
def test_a_beam_that_holds_everything_finds_the_best_of_all_translations(
    talker: Build,
    sources: tuple[Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
    alpha: float,
    how: dict[str, Any],
    seed: int,
) -> None:
    monkeypatch.setattr(heads.translation.beam_search, "length_limit", lambda _: 4)
    (ids, mask), model = sources, talker(eos=0.5, seed=seed, subwords=6)
    expected = []
    for row in range(3):
        scored: dict[tuple[int, ...], float] = {}
        for tokens in [t for n in range(4) for t in product((4, 5), repeat=n)]:
            steps = [log_probs(model, ids[row][mask[row]], list(tokens[:i])) for i in range(len(tokens) + 1)]
            total = sum(step[token] for step, token in zip(steps, (*tokens, EOS), strict=True))
            scored[tokens] = total / ((len(tokens) + 1) if how else ((5 + len(tokens) + 1) / 6)) ** alpha
        expected.append(list(max(scored.items(), key=lambda item: item[1])[0]))
    assert beam_search(model, ids, mask, beam=16, length_penalty=alpha, **how) == expected


@pytest.mark.parametrize("beam", slow_but([2], [1, 2, 3]))
@pytest.mark.parametrize(("alpha", "offset"), [(0.0, 5), (0.9, 5), (4.0, 5), (1.0, 0)])
@pytest.mark.parametrize(
    ("staying", "changes"),
    [(0.0, {}), (0.5, {}), (1.0, {}), (0.5, RECURRENT)],
    ids=["leaving", "later", "staying", "recurrent"],
)
def test_a_narrow_beam_equals_lists_of_hypotheses_that_are_never_stopped_early(
    talker: Build,
    sources: tuple[Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
    beam: int,
    alpha: float,
    offset: int,
    staying: float,
    changes: dict[str, Any],
) -> None:
    """Whether finished sentences leave at once, later, or with the last; each has its own limit.

    A beam of one is greedy, whatever the penalty: no longer hypothesis continues after EOS.
    """
    monkeypatch.setattr(heads.translation.beam_search, "STAYING", staying)
    monkeypatch.setattr(heads.translation.beam_search, "length_limit", lambda length: length + 2)
    ids, mask = sources
    for seed in range(6):
        model = talker(eos=1.5, seed=seed, **changes)
        limits = [(ids[row][mask[row]], LENGTHS[row] + 2) for row in range(3)]
        expected = [slow_beam(model, *each, beam, alpha, offset) for each in limits]
        if beam == 1:
            expected = [naive_greedy(model, *each) for each in limits]
        assert beam_search(model, ids, mask, beam=beam, length_penalty=alpha, length_offset=offset) == expected


@pytest.mark.parametrize("beam", [1, 3])
def test_other_sentences_and_padding_change_no_translation(
    talker: Build, sources: tuple[Tensor, Tensor], beam: int
) -> None:
    ids, mask = sources
    for seed in range(6):
        model = talker(eos=0.0, seed=seed)
        together = beam_search(model, ids, mask, beam=beam, length_penalty=0.6)
        for row in range(3):
            alone = ids[row][mask[row]][None]
            assert beam_search(model, alone, alone > 0, beam=beam, length_penalty=0.6) == [together[row]]


def test_gates_reach_the_search(talker: Build, sources: tuple[Tensor, Tensor]) -> None:
    (ids, mask), model = sources, talker(eos=1.0)
    gates = {kind: [torch.tensor([1.0, 0.0, 0.0]).double()] * 2 for kind in ATTENTIONS}
    gated = beam_search(model, ids, mask, beam=2, length_penalty=0.6, gates=gates)
    assert gated != beam_search(model, ids, mask, beam=2, length_penalty=0.6)
    for stack, kinds in ((model.encoder, ("self",)), (model.decoder, ("self", "cross"))):
        for layer in stack:
            for kind in kinds:
                output = layer.get_submodule(f"{kind}_attention.output")
                output.get_parameter("weight").data[:, 2:] = 0.0
    assert gated == beam_search(model, ids, mask, beam=2, length_penalty=0.6)


@torch.no_grad()
@pytest.mark.parametrize("room", slow_but([2], [1, 2, 8]))
@pytest.mark.parametrize("changes", [{}, RECURRENT], ids=["attention", "recurrent"])
def test_hypotheses_that_change_their_places_and_sentences_that_leave_keep_their_past(
    tiny_model: Build,
    sources: tuple[Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
    room: int,
    changes: dict[str, Any],
) -> None:
    """Every step equals a whole forward pass over each hypothesis, whose subwords and parents are random."""
    for module in (heads.model.transformer, heads.model.sublayer_cache):
        monkeypatch.setattr(module, "ROOM", room)
    (ids, mask), model = sources, tiny_model(**changes)
    generator = torch.Generator().manual_seed(4)
    cache = model.start_cache(model.encode(ids, mask), mask, 4)
    sentences, histories = [0, 1, 2], torch.full((3, 4, 0), BOS)
    for leave in (None, None, [2, 0], None, None, [1], None, None):
        newest = torch.randint(4, 11, histories.shape[:2], generator=generator)
        histories = torch.cat([histories, newest[:, :, None]], 2)
        logits = model.decode_next(newest, cache)
        for row, sentence in enumerate(sentences):
            source = ids[sentence][mask[sentence]].expand(4, -1)
            states = model(source, torch.ones_like(source, dtype=torch.bool), histories[row])
            torch.testing.assert_close(logits[row], model.projection(states[:, -1]))
        parents = torch.randint(0, 4, histories.shape[:2], generator=generator)
        histories = histories.gather(1, parents[:, :, None].expand_as(histories))
        cache.reorder(parents)
        if leave is not None:
            cache.keep(torch.tensor(leave))
            sentences, histories = [sentences[row] for row in leave], histories[leave]


def test_a_past_that_nobody_has_any_more_is_forgotten(
    tiny_model: Build, sources: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all continue from one, a step leaves one key of its four, besides those since the last time."""
    for module in (heads.model.transformer, heads.model.sublayer_cache):
        monkeypatch.setattr(module, "ROOM", 2)
    (ids, mask), model = sources, tiny_model()
    cache = model.start_cache(model.encode(ids, mask), mask, 4)
    sizes = []
    for _ in range(6):
        model.decode_next(torch.full((3, 4), 5), cache)
        cache.reorder(torch.full((3, 4), 2))
        sizes.append(cache.seen.shape[2])
    assert sizes == [4, 8, 2 + 4, 2 + 8, 4 + 4, 4 + 8]


@pytest.mark.parametrize("chunk", [2, 5, 100])
@pytest.mark.parametrize("number", [1, 3, 8])
def test_the_largest_scores_and_their_places_are_those_of_a_whole_sort(
    monkeypatch: pytest.MonkeyPatch, chunk: int, number: int
) -> None:
    """No two scores in a row are equal; the incomplete chunks at the ends of rows hold some of the largest."""
    monkeypatch.setattr(heads.translation.beam_search, "CHUNK", chunk)
    generator = torch.Generator().manual_seed(3)
    scores = torch.stack([torch.randperm(43, generator=generator) for _ in range(50)]).double()
    assert (scores[:, 42:] > 40).any()
    order = scores.argsort(1, descending=True)[:, :number]
    values, places = largest(scores, number)
    assert places.tolist() == order.tolist()
    assert values.tolist() == scores.gather(1, order).tolist()
