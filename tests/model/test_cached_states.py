"""Cached states equal those of a pass from the bottom, for any gates in any order, with fewer layers run."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from heads.analysis.ablation import gates_without
from heads.model.cached_states import CachedStates
from heads.model.head_removal import module_name
from heads.model.shape import full_heads
from heads.model.sublayers import Pass, SelfAttention
from heads.model.transformer import Transformer
from heads.text.packed import pack

SOURCE = torch.tensor([[7, 8, 9, 4, 2], [5, 6, 2, 0, 0]])
MASK = SOURCE != 0
TARGET = torch.tensor([[1, 9, 6, 4], [1, 5, 0, 0]])
LAYERS = 3
MASKED = [
    {("enc_self", 1, 0)},
    set(),
    {("enc_self", 2, 2), ("dec_enc", 0, 1)},
    {("enc_self", 0, 1), ("enc_self", 2, 0)},
    {("dec_enc", 1, 2)},
    {("enc_self", 1, 0)},
]
"""Masked heads of successive passes over the same batch."""
READ = [3, 2, 1, 3, 0, 2]
"""Number of layers that each pass runs: those above the lowest one that was changed or has not been run."""
DECODED = [3, 3, 3, 3, 2, 3]
"""The same for the decoder, which sees a changed encoder in every layer."""


@pytest.fixture
def model(tiny_model: Callable[..., Transformer]) -> Transformer:
    return tiny_model(live_heads=full_heads(layers=LAYERS, heads=3))


@pytest.mark.parametrize("room", [None, 0])
@torch.inference_mode()
def test_states_are_those_of_a_pass_from_the_bottom(model: Transformer, room: int | None) -> None:
    cached = CachedStates(model) if room is None else CachedStates(model, room)
    other = SOURCE.flip(0).clone()
    for masked in MASKED:
        gates = gates_without(model, masked)
        for number, source in ((0, SOURCE), (1, other)):
            mask, target = source != 0, TARGET[[number, 1 - number]]
            memory = cached.encode(number, source, mask, gates)
            assert torch.equal(memory, model.encode(source, mask, gates))
            states = cached.decode(number, target, memory, mask, gates)
            assert torch.equal(states, model.decode(target, memory, mask, gates))
    assert torch.equal(cached.encode(0, SOURCE, MASK), model.encode(SOURCE, MASK))


@torch.inference_mode()
def test_states_without_padding_are_those_of_a_pass_from_the_bottom(model: Transformer) -> None:
    draw = np.random.default_rng(3)
    sides = [
        [draw.integers(4, 11, length).astype(np.int32) for length in lengths] for lengths in ((4, 1, 6), (2, 5, 3))
    ]
    batch, cached = pack(*sides), CachedStates(model)
    for masked in MASKED:
        gates = gates_without(model, masked)
        memory = cached.encode(0, batch.source, batch.source_spans, gates)
        assert torch.equal(memory, model.encode(batch.source, batch.source_spans, gates))
        states = cached.decode(0, batch.target_input, memory, batch.source_spans, gates, spans=batch.target_spans)
        assert torch.equal(states, model.packed(batch, gates))


@torch.inference_mode()
def test_no_layer_below_the_first_masked_one_is_gone_through_twice(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[int] = []
    forward = SelfAttention.forward

    def counted(part: SelfAttention, states: torch.Tensor, seen: Pass) -> torch.Tensor:
        gone.append(part.index)
        return forward(part, states, seen)

    monkeypatch.setattr(SelfAttention, "forward", counted)
    cached, counts, decoded = CachedStates(model), [], []
    for masked in MASKED:
        gates = gates_without(model, masked)
        gone.clear()
        memory = cached.encode(0, SOURCE, MASK, gates)
        counts.append(len(gone))
        cached.decode(0, TARGET, memory, MASK, gates)
        decoded.append(len(gone) - counts[-1])
    assert (counts, decoded) == (READ, DECODED)


@torch.inference_mode()
def test_what_there_is_no_room_for_is_not_kept(model: Transformer) -> None:
    size = model.encode(SOURCE, MASK).nbytes
    cached = CachedStates(model, room=(LAYERS + 1) * size + size // 2)
    for number in range(3):
        cached.encode(number, SOURCE, MASK)
    assert {key: len(states) for key, states in cached.kept.items()} == {("enc", 0): LAYERS + 1}
    assert cached.room == size // 2


@pytest.mark.parametrize("place", [("enc_self", 1), ("enc_ffn", 2), ("dec_self", 0), ("dec_enc", 2), ("dec_ffn", 1)])
@torch.inference_mode()
def test_with_other_weights_in_one_sub_layer_states_are_those_of_a_pass_from_the_bottom(
    model: Transformer, place: tuple[str, int]
) -> None:
    cached = CachedStates(model)
    whole = cached.decode(0, TARGET, cached.encode(0, SOURCE, MASK), MASK)
    own = [weight for name, weight in model.named_parameters() if name.startswith(f"{module_name(*place)}.")]
    for factor in (2.0, 0.5):
        for weight in own:
            weight.mul_(factor)
        changed = place if factor == 2 else None
        memory = cached.encode(0, SOURCE, MASK, changed=changed)
        found = cached.decode(0, TARGET, memory, MASK, changed=changed)
        assert torch.equal(found, model(SOURCE, MASK, TARGET))
        assert torch.equal(found, whole) == (changed is None)
