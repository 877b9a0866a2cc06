"""How far the answers of a model move, from its whole distributions and from the likeliest answers of each."""

import copy
from collections.abc import Callable

import pytest
import torch

from heads.model.head_removal import module_name
from heads.model.shape import Place
from heads.model.transformer import Transformer
from heads.pruning import ladders
from heads.pruning.ladders import HeldOut
from heads.text.batches import Batch
from heads.text.packed import Packed

PLACES: list[Place] = [("enc_self", 0), ("dec_self", 0), ("dec_enc", 0)]


def chances(model: Transformer, batch: Batch) -> torch.Tensor:
    """The probabilities [N, V] of all real answers."""
    states = model(batch.source, batch.source_mask, batch.target_input)[batch.target_mask]
    found: torch.Tensor = model.projection(states).softmax(-1)
    return found


@torch.no_grad()
@pytest.mark.parametrize("likeliest", [2, 1000])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_all_but_the_likeliest_answers_count_together(
    tiny_model: Callable[..., Transformer],
    tiny_batch: Batch,
    tiny_packed: Packed,
    monkeypatch: pytest.MonkeyPatch,
    likeliest: int,
    place: Place,
) -> None:
    monkeypatch.setattr(ladders, "LIKELIEST", likeliest)
    model = tiny_model().eval()
    before = copy.deepcopy(model)
    held_out = HeldOut(model, [tiny_packed])
    assert held_out.divergence(place) == pytest.approx(0, abs=1e-6)
    model.get_submodule(f"{module_name(*place)}.output").get_parameter("weight").mul_(-4)
    moved = held_out.divergence(place)
    whole, own = chances(before, tiny_batch), chances(copy.deepcopy(model), tiny_batch)
    total = 0.0
    for wanted, found in zip(whole, own, strict=True):
        likely = wanted.argsort(descending=True)[:likeliest].tolist()
        rest = [number for number in range(len(wanted)) if number not in likely]
        for group in (*([number] for number in likely), *([rest] if rest else [])):
            share = float(wanted[group].sum())
            total += share * float((wanted[group].sum() / found[group].sum()).log())
    assert moved == pytest.approx(total / len(whole), rel=1e-6)
    assert moved > 1e-3
