"""Translations from drafts: the result is that of greedy search, and an unchanged draft costs a single pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import heads.translation.drafts
from heads.analysis.ablation import gates_without, kept_alone, masked_alone
from heads.config.analyses import TranslateSettings
from heads.model.shape import SSRU
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.text.batches import Pairs
from heads.text.packed import pack
from heads.text.vocabulary import Tokens
from heads.translation.beam_search import length_limit
from heads.translation.drafts import Drafted, said_again
from heads.translation.scoring import every_pair, search_pairs
from slow_ones import slow_but

CPU = torch.device("cpu")


@pytest.fixture
def pairs(tmp_path: Path) -> Pairs:
    """Thirty sentences of one to six subwords."""
    draw = np.random.default_rng(8)
    lengths = draw.integers(1, 7, 30)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    save_file({"ids": draw.integers(4, 13, offsets[-1]).astype(np.int32), "offsets": offsets}, tmp_path / "source")
    return every_pair(Tokens(tmp_path / "source"))


def searched(model: Transformer, pairs: Pairs, limit: int, gates: Gates | None) -> dict[int, list[int]]:
    """Greedy search step by step, independent of the batches."""
    return search_pairs(
        model, pairs, TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=300, sentences=limit), CPU, gates
    )


def stood(model: Transformer, pairs: Pairs, drafts: list[list[int]]) -> list[bool]:
    """Whether each of these drafts of all sentences is found to be the translation."""
    batch = pack([pairs.source[number] for number in range(30)], [np.array(ids, np.int32) for ids in drafts])
    with torch.inference_mode():
        kept: list[bool] = said_again(model, batch, model.packed(batch)).tolist()
    return kept


@pytest.mark.parametrize(("tokens", "limit"), slow_but([(40, 0)], [(1, 13), (40, 0), (1000, 0)]))
def test_what_drafts_give_is_greedy_search_under_every_mask(
    talker: Callable[..., Transformer], pairs: Pairs, monkeypatch: pytest.MonkeyPatch, tokens: int, limit: int
) -> None:
    """Some drafts are accepted and some rejected, some end by themselves and some at their limit."""
    monkeypatch.setattr(heads.translation.drafts, "VERIFIED_TOKENS", tokens)
    model, stood = talker(eos=1.0, seed=2), set()
    drafted = Drafted(
        model, pairs, TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=50, sentences=limit), CPU
    )
    plain = drafted(None)
    assert plain == searched(model, pairs, limit, None)
    assert len(plain) == (limit or 30)
    for masked in [*masked_alone(model.shape).values(), *kept_alone(model.shape).values(), set()]:
        gates = gates_without(model, masked)
        expected = searched(model, pairs, limit, gates)
        assert drafted(gates) == expected
        for number, ids in expected.items():
            cut = len(ids) == length_limit(int(pairs.source.lengths[number]) + 1) - 1
            stood.add((cut, ids == plain[number]))
    assert stood == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize(
    "changes",
    [
        {"first_subword": 6, "pre_norm": False},
        {"positions": "learned", "max_positions": 17},
        {"positions": "distances", "distance_buckets": 8, "farthest_distance": 5, "rms_norm": True},
        {"decoder_past": SSRU, "live_heads": {"enc_self": ((0, 1, 2), (1,)), "dec_self": (), "dec_enc": ((2,), (0,))}},
    ],
    ids=["first subword", "learnt positions", "distances", "recurrent"],
)
def test_drafts_of_imported_models_are_greedy_search_too(
    talker: Callable[..., Transformer], pairs: Pairs, changes: dict[str, Any]
) -> None:
    model, stood = talker(eos=1.0, seed=2, **changes), set()
    drafted = Drafted(model, pairs, TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=50), CPU)
    plain = drafted(None)
    alone = [*masked_alone(model.shape).values()]
    for masked in [*alone[:: 1 + len(alone) // 9], set(model.shape.heads())]:
        expected = searched(model, pairs, 0, gates := gates_without(model, masked))
        assert drafted(gates) == expected
        stood |= {ids == plain[number] for number, ids in expected.items()}
    assert stood == {False, True}


def test_a_draft_as_long_as_its_limit_falls_by_its_last_subword_too(
    talker: Callable[..., Transformer], pairs: Pairs
) -> None:
    model = talker(eos=-50.0, seed=2)
    said = [ids for _, ids in sorted(searched(model, pairs, 0, None).items())]
    assert [len(ids) for ids in said] == [length_limit(int(length) + 1) - 1 for length in pairs.source.lengths]

    assert all(stood(model, pairs, said))
    others = [[*ids[:-1], 4 + (ids[-1] == 4)] for ids in said]
    assert not any(stood(model, pairs, others)), "another last subword"
    assert not any(stood(model, pairs, [ids[:-1] for ids in said])), "an end instead of the last subword"


def test_a_draft_falls_by_its_first_subword_and_by_its_last_and_an_empty_one_stands_where_nothing_is_said(
    talker: Callable[..., Transformer], pairs: Pairs
) -> None:
    model = talker(eos=3.0, seed=2)
    said = [ids for _, ids in sorted(searched(model, pairs, 0, None).items())]
    assert {0, 1, 2} < {len(ids) for ids in said}
    assert all(stood(model, pairs, said))
    first, last = ([4 + (ids[place] == 4) if ids else 4 for ids in said] for place in (0, -1))
    assert not any(stood(model, pairs, [[one, *ids[1:]] for one, ids in zip(first, said, strict=True)]))
    assert not any(stood(model, pairs, [[*ids[:-1], one] for one, ids in zip(last, said, strict=True)]))
    cut = [len(ids) == length_limit(int(n) + 1) - 1 for ids, n in zip(said, pairs.source.lengths, strict=True)]
    assert stood(model, pairs, [[*ids, 4] for ids in said]) == cut, "a subword instead of the end, but for the limit"
    assert stood(model, pairs, [[]] * 30) == [not ids for ids in said]


def test_sentences_that_stay_are_not_searched_again_nor_read_again(
    talker: Callable[..., Transformer], pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = talker(eos=1.0, seed=2)
    steps: list[int] = []
    read: list[int] = []
    monkeypatch.setattr(model, "decode_next", _counted(model.decode_next, steps))
    monkeypatch.setattr(model, "encode", _counted(model.encode, read))
    drafted = Drafted(model, pairs, TranslateSettings(beam=1, length_penalty=0.0, batch_tokens=50), CPU)
    plain = drafted(gates_without(model, ()))
    for masked in (set(), {("dec_self", 0, 0)}, {("dec_enc", 1, 2)}):
        steps.clear()
        read.clear()
        changed = [n for n, ids in drafted(gates_without(model, masked)).items() if ids != plain[n]]
        assert sum(steps) <= sum(length_limit(7) for _ in changed)
        assert bool(steps) == bool(changed)
        assert len(changed) < 30
        assert sum(read) <= len(changed) + 30 * (masked == set()), "the states of the encoder are known by then"


def _counted(function: Callable[..., object], counts: list[int]) -> Callable[..., object]:
    """The same function, which also records how many sentences it is given."""

    def counting(ids: torch.Tensor, *words: object) -> object:
        counts.append(len(ids))
        return function(ids, *words)

    return counting
