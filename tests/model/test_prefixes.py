"""Cached encoder states equal those of a pass from the bottom, for any gates in any order, with fewer layers run."""

from collections.abc import Callable

import pytest
import torch

from heads.analysis.ablation import gates_without
from heads.model.prefixes import Prefixes
from heads.model.shape import full_heads
from heads.model.sublayers import Pass, SelfAttention
from heads.model.transformer import Transformer

SOURCE = torch.tensor([[7, 8, 9, 4, 2], [5, 6, 2, 0, 0]])
MASK = SOURCE != 0
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


@pytest.fixture
def model(tiny_model: Callable[..., Transformer]) -> Transformer:
    return tiny_model(live_heads=full_heads(layers=LAYERS, heads=3))


@pytest.mark.parametrize("room", [None, 0])
@torch.inference_mode()
def test_states_are_those_of_a_pass_from_the_bottom(model: Transformer, room: int | None) -> None:
    prefixes = Prefixes(model) if room is None else Prefixes(model, room)
    other = SOURCE.flip(0).clone()
    for masked in MASKED:
        gates = gates_without(model, masked)
        for number, source in ((0, SOURCE), (1, other)):
            found = prefixes.encode(number, source, source != 0, gates)
            assert torch.equal(found, model.encode(source, source != 0, gates))
    assert torch.equal(prefixes.encode(0, SOURCE, MASK), model.encode(SOURCE, MASK))


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
    prefixes, counts = Prefixes(model), []
    for masked in MASKED:
        gone.clear()
        prefixes.encode(0, SOURCE, MASK, gates_without(model, masked))
        counts.append(len(gone))
    assert counts == READ


@torch.inference_mode()
def test_what_there_is_no_room_for_is_not_kept(model: Transformer) -> None:
    size = model.encode(SOURCE, MASK).nbytes
    prefixes = Prefixes(model, room=(LAYERS + 1) * size + size // 2)
    for number in range(3):
        prefixes.encode(number, SOURCE, MASK)
    assert {number: len(states) for number, states in prefixes.kept.items()} == {0: LAYERS + 1}
    assert prefixes.room == size // 2
