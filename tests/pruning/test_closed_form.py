"""Models cut down in closed form: statistics without padding, and outputs as close as least squares can bring them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.model.attention import Trace
from heads.model.shape import Place
from heads.model.transformer import Transformer
from heads.pruning import closed_form
from heads.pruning.closed_form import (
    Surgeon,
    doing_without,
    gram_matrices,
    output_maps,
    output_of,
    parts_at,
    rungs_of,
    without,
)
from heads.text.batches import Batch, make_batch

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
KINDS = (*ATTENTIONS, *FEEDFORWARDS)


def text(seed: int, sentences: int = 40) -> Batch:
    """Sentences of different lengths, so that most of a batch is padding."""
    drawn = np.random.default_rng(seed)
    lengths = drawn.integers(1, 9, (sentences, 2))
    sides = [
        [drawn.integers(4, most, int(n)).astype(np.int32) for n in lengths[:, side]]
        for side, most in ((0, 13), (1, 11))
    ]
    return make_batch(*sides)


@pytest.fixture(autouse=True)
def _several_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of a tiny Gram matrix is as wide as a whole number of them."""
    monkeypatch.setattr(closed_form, "STRIP", 5)


@pytest.fixture
def model(tiny_model: Callable[..., Transformer]) -> Transformer:
    return tiny_model().eval().float()


@pytest.fixture
def surgeon(model: Transformer) -> Surgeon:
    return Surgeon(model, output_maps(model, gram_matrices(model, [text(0), text(1)], KINDS)))


def inputs_of(model: Transformer, place: Place, batch: Batch) -> Tensor:
    """What the output map of a sub-layer is given at real subwords [N, C]."""
    found: list[Tensor] = []
    output, _ = output_of(parts_at(model, KINDS)[place])
    handle = output.register_forward_pre_hook(lambda _, given: found.append(given[0].detach()))
    model(batch.source, batch.source_mask, batch.target_input)
    handle.remove()
    mask = batch.source_mask if place[0].startswith("enc") else batch.target_mask
    return torch.cat([row[: int(real.sum())] for row, real in zip(found[0], mask, strict=True)])


def test_statistics_are_of_all_sub_layers_and_of_real_subwords_alone(model: Transformer, surgeon: Surgeon) -> None:
    assert list(surgeon.maps) == [
        *((kind, layer) for layer in (0, 1) for kind in ("enc_self", "enc_ffn")),
        *((kind, layer) for layer in (0, 1) for kind in ("dec_self", "dec_enc", "dec_ffn")),
    ]
    for place, what in surgeon.maps.items():
        rows = torch.cat([inputs_of(model, place, text(seed)) for seed in (0, 1)]).double()
        if place[0] in FEEDFORWARDS:
            rows = torch.cat([rows, torch.ones(len(rows), 1)], 1)
        torch.testing.assert_close(what.gram, rows.T @ rows, rtol=1e-5, atol=1e-5 * len(rows))
        assert torch.equal(what.gram, what.gram.T)
        assert (what.groups, what.size) == ((7, 1) if place[0] in FEEDFORWARDS else (3, 2))


def test_heads_are_what_their_trace_says(model: Transformer, surgeon: Surgeon) -> None:
    batch, trace = text(0), Trace()
    model(batch.source, batch.source_mask, batch.target_input, trace=trace)
    heads = trace["dec_enc.1.heads"].transpose(1, 2).flatten(2)[batch.target_mask]
    torch.testing.assert_close(heads, inputs_of(model, ("dec_enc", 1), batch))


@pytest.mark.parametrize(
    ("place", "number"), [(("enc_self", 1), 2), (("dec_enc", 0), 1), (("enc_ffn", 0), 3), (("dec_ffn", 1), 1)]
)
def test_a_cut_sub_layer_gives_what_least_squares_gives_and_is_whole_again_after_it(
    model: Transformer, surgeon: Surgeon, place: Place, number: int
) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    output, _ = output_of(parts_at(model, KINDS)[place])
    rows = torch.cat([inputs_of(model, place, text(seed)) for seed in (0, 1)])
    wanted = output(rows).detach().numpy()
    kept = surgeon.kept(place, number)
    assert len(kept) == number
    size = surgeon.maps[place].size
    used = rows[:, [group * size + i for group in kept for i in range(size)]].numpy()
    if output.bias is not None:
        used = np.hstack([used, np.ones((len(used), 1))])
    expected = used @ np.linalg.lstsq(used, wanted, rcond=None)[0]
    with doing_without(model, surgeon.maps, {place: kept}):
        np.testing.assert_allclose(output(rows).detach().numpy(), expected, atol=1e-3)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_the_smaller_model_computes_what_the_cut_one_computes(model: Transformer, surgeon: Surgeon) -> None:
    batch, place = text(5), ("enc_ffn", 1)
    numbers = {place: 4, ("dec_enc", 1): 2, ("dec_self", 0): 0, ("enc_self", 0): 3}
    kept = {place: surgeon.kept(place, number) for place, number in numbers.items()}
    with doing_without(model, surgeon.maps, kept):
        expected = model(batch.source, batch.source_mask, batch.target_input)
    with pytest.raises(ValueError, match="fewer than 1"):
        surgeon.kept(place, 0)
    assert surgeon.kept(place, 7) == surgeon.kept(place, 8) == [*range(7)]
    smaller = without(model, surgeon.maps, kept)
    assert smaller.shape.live_units == {"enc_ffn": (7, 4), "dec_ffn": (7, 7)}
    assert [len(smaller.shape.heads([kind])) for kind in ATTENTIONS] == [6, 3, 5]
    torch.testing.assert_close(smaller(batch.source, batch.source_mask, batch.target_input), expected)


def test_a_ladder_has_the_loss_of_each_rung_and_a_whole_sub_layer_loses_nothing(
    model: Transformer, surgeon: Surgeon
) -> None:
    batch = text(6)
    whole = model(batch.source, batch.source_mask, batch.target_input).detach()

    @torch.no_grad()
    def loss() -> float:
        return float((model(batch.source, batch.source_mask, batch.target_input) - whole).square().mean())

    ladder = surgeon.ladder(("dec_ffn", 0), [7, 3, 1], loss)
    assert list(ladder) == [7, 3, 1]
    assert ladder[7] == pytest.approx(0, abs=1e-9)
    with doing_without(model, surgeon.maps, {("dec_ffn", 0): surgeon.kept(("dec_ffn", 0), 3)}):
        assert ladder[3] == loss() > ladder[7]


def test_losses_are_measured_with_the_fewest_and_with_up_to_three_eighths(surgeon: Surgeon) -> None:
    assert rungs_of(surgeon.maps["enc_self", 0]) == [0, 1]
    assert rungs_of(surgeon.maps["dec_ffn", 0]) == [1, 2]


@torch.no_grad()
@pytest.mark.parametrize("place", [("enc_self", 0), ("dec_ffn", 0)], ids=str)
def test_the_error_is_what_a_sub_layer_adds_otherwise_over_the_text(
    model: Transformer, surgeon: Surgeon, place: Place
) -> None:
    """The oracle is the sub-layer's own output map, run on what it is given in the text that was read."""
    output, groups = output_of(parts_at(model, KINDS)[place])
    rows = torch.cat([inputs_of(model, place, text(seed)) for seed in (0, 1)])
    whole = output(rows)
    for number in range(1, groups + 1):
        with doing_without(model, surgeon.maps, {place: surgeon.kept(place, number)}):
            moved = float((output(rows) - whole).square().sum())
        assert surgeon.error(place, number) == pytest.approx(moved, rel=1e-3, abs=1e-6)
