"""What only imported models have: attention with biases, other activations and positions, tied matrices, depths."""

import copy
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from few_heads import RECURRENT, assert_steps_are_those_at_once
from heads.base.files import UserError, read_json, write_json
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.encoder import sinusoids
from heads.model.feedforward import FeedForward
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import check_equal, head_rows, prune
from heads.model.shape import ModelShape, shape_of
from heads.model.transformer import Transformer
from heads.text.batches import Batch

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

Build = Callable[..., Transformer]
HEADS = (0, 1, 2)
IMPORTED: dict[str, Any] = {
    "pre_norm": False,
    "source_subwords": 13,
    "target_subwords": 13,
    "live_heads": {"enc_self": (HEADS,) * 3, "dec_self": (HEADS,) * 2, "dec_enc": (HEADS,) * 2},
    "attention_biases": True,
    "activation": "silu",
    "positions": "halves",
    "norm_epsilon": 1e-3,
    "tied_projection": True,
    "shared_embedding": True,
}
OPEN = {
    "enc_self": [[True, False, True], [False] * 3, [False, False, True]],
    "dec_self": [[False] * 3, [True, True, False]],
    "dec_enc": [[False, True, True], [False] * 3],
}


@pytest.mark.parametrize(("pre_norm", "norms"), [(False, 3 * 2 + 2 * 3), (True, 3 * 2 + 2 * 3 + 2)])
def test_every_norm_has_the_epsilon_of_the_shape(tiny_model: Build, pre_norm: bool, norms: int) -> None:  # noqa: FBT001
    model = tiny_model(**IMPORTED | {"pre_norm": pre_norm})
    found = [module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert found == [IMPORTED["norm_epsilon"]] * norms


def test_files_of_models_that_are_trained_here_tell_nothing_of_what_only_imported_ones_have(
    tiny_shape: Callable[..., ModelShape], tiny_model: Build
) -> None:
    told = set(tiny_shape().as_dict())
    assert told == {field.name for field in fields(ModelShape)} - {
        *("attention_biases", "activation", "positions", "scaled_embedding", "norm_epsilon"),
        *("tied_projection", "shared_embedding", "labels", "token_types", "max_positions", "embedding_norm"),
        *("decoder_past", "first_position", "start_subword", "first_subword", "fixed_bias", "pooling"),
        *("nameless_subwords", "live_units", "rms_norm", "gated_units", "feedforward_biases", "distance_buckets"),
        *("farthest_distance", "distances_by_layer", "starts_with_padding", "scaled_products"),
    }
    names = set(tiny_model().state_dict())
    assert {"source_embedding.subwords.weight", "target_embedding.subwords.weight", "projection.weight"} < names
    assert not [name for name in names if "attention" in name and name.endswith("bias")]


CHANGES = [
    *({key: value} for key, value in IMPORTED.items()),
    *({"scaled_embedding": False}, RECURRENT, {"live_units": {"enc_ffn": (4, 0), "dec_ffn": (3, 7)}}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_each_of_these_changes_is_told_and_comes_back(
    tiny_shape: Callable[..., ModelShape], change: dict[str, Any]
) -> None:
    shape = tiny_shape(target_subwords=13)
    changed = replace(shape, **change)
    assert ModelShape.from_dict(json.loads(json.dumps(changed.as_dict()))) == changed
    assert changed == shape or changed.as_dict() != shape.as_dict()
    assert changed.kinds == tuple(kind for kind, layers in changed.live_heads.items() if layers)


@pytest.mark.parametrize("change", [{"activation": "tanh"}, {"positions": "learnt"}, {"shared_embedding": True}])
def test_a_file_that_tells_of_what_is_not_known_is_damaged(
    tiny_model: Build, tmp_path: Path, change: dict[str, Any]
) -> None:
    save_folder(tiny_model(), tmp_path, {}, {})
    facts = {key: value for key, value in read_json(tmp_path / "model.json").items() if key != "sha256"}
    facts["shape"] |= change
    write_json(tmp_path / "model.json", facts)
    with pytest.raises(UserError, match="does not hold a model"):
        shape_of(tmp_path)
    tensors, notes = load_tensors(tmp_path / "model.safetensors")
    save_tensors(tmp_path / "model.safetensors", tensors, {"shape": notes["shape"] | change})
    with pytest.raises(UserError, match="does not hold a model"):
        load_folder(tmp_path)


@pytest.mark.parametrize("open_heads", [OPEN, {"enc_self": OPEN["enc_self"]}])
def test_heads_are_removed_with_their_biases_and_a_layer_without_heads_still_adds_its_own(
    tiny_model: Build, tiny_batch: Batch, open_heads: dict[str, list[list[bool]]]
) -> None:
    model = tiny_model(**IMPORTED)
    smaller = prune(model, open_heads)
    check_equal(model, smaller, open_heads)
    gone = sum(not stays for layers in open_heads.values() for layer in layers for stays in layer)
    sizes = [sum(p.numel() for p in m.parameters()) for m in (model, smaller)]
    assert sizes[0] - sizes[1] == gone * (4 * 10 * 2 + 3 * 2)
    before = smaller.double()(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    smaller.get_parameter("encoder.1.self_attention.output.bias").data += 1.5 * torch.arange(10)
    after = smaller(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    assert float((after - before).abs().max()) > 1e-3


def test_depths_of_encoder_and_decoder_may_differ(tiny_model: Build) -> None:
    shape = tiny_model(**IMPORTED).shape
    assert [shape.layers(kind) for kind in ("enc_self", "dec_self", "dec_enc")] == [3, 2, 2]
    rows = head_rows(prune(tiny_model(**IMPORTED), OPEN).shape)
    assert [row["open"] for row in rows if row["attention"] == "enc_self"] == [1, 0, 1, 0, 0, 0, 0, 0, 1]
    assert len(rows) == 9 + 6 + 6


def test_decoding_step_by_step_gives_what_all_at_once_gives(tiny_model: Build, tiny_batch: Batch) -> None:
    for model in (tiny_model(**IMPORTED), prune(tiny_model(**IMPORTED), OPEN).double()):
        assert_steps_are_those_at_once(model, tiny_batch)


@pytest.mark.parametrize("width", [2, 6, 7, 10])
@pytest.mark.parametrize("layout", ["interleaved", "halves", "tensor2tensor"])
def test_positions_are_sines_and_cosines_by_the_formula_also_from_the_middle_on(layout: str, width: int) -> None:
    """Of p / 10000^(2i / D), in tensor2tensor of p / 10000^(2i / (D - 2)); an odd width lacks the last cosine."""
    signals, waves = sinusoids(5, width, 2, layout=layout), -(-width // 2)
    for place, i in itertools.product(range(5), range(waves)):
        angle = (place + 2) / 10_000 ** (2 * i / (max(width - 2, 1) if layout == "tensor2tensor" else width))
        sine, cosine = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, waves + i)
        assert float(signals[place, sine]) == pytest.approx(math.sin(angle), abs=1e-12)
        assert cosine >= width or float(signals[place, cosine]) == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", lambda x: max(x, 0.0)),
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
        ("gelu_tanh", lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2),
    ],
)
def test_an_activation_is_what_its_name_says(name: str, expected: Callable[[float], float]) -> None:
    part, sums = FeedForward(6, 7, 0.0, name), torch.linspace(-3, 3, 8, dtype=torch.float64)
    found = part.activate(sums)
    assert found.tolist() == pytest.approx([expected(float(x)) for x in sums], abs=1e-9)


def test_without_scaling_an_embedding_is_its_matrix_and_the_position(tiny_model: Build) -> None:
    embedding = tiny_model(scaled_embedding=False).target_embedding
    expected = embedding.subwords.weight[7] + sinusoids(1, 10, 1)[0]
    torch.testing.assert_close(embedding(torch.tensor([[4, 7]]))[0, 1], expected)


def test_tied_matrices_are_one_that_is_saved_once_and_stays_one(tiny_model: Build, tmp_path: Path) -> None:
    model = tiny_model(**IMPORTED).float()
    save_folder(model, tmp_path, {}, {})
    saved, _ = load_tensors(tmp_path / "model.safetensors")
    assert [name for name, value in saved.items() if value.shape == (13, 10)] == ["source_embedding.subwords.weight"]
    models: tuple[Transformer, ...] = (
        load_folder(tmp_path),
        copy.deepcopy(model),
        copy.deepcopy(model).double(),
        prune(model, OPEN),
    )
    for one in models:
        parts = (one.source_embedding.subwords.weight, one.target_embedding.subwords.weight, one.projection.weight)
        assert len({part.data_ptr() for part in parts}) == 1
        assert torch.equal(parts[0].float(), model.projection.weight)
    assert sum(parameter.shape == (13, 10) for parameter in model.parameters()) == 1


def test_a_tied_matrix_learns_from_all_that_is_made_with_it(tiny_model: Build, tiny_batch: Batch) -> None:
    tied = tiny_model(**IMPORTED)
    apart = tiny_model(**{**IMPORTED, "tied_projection": False, "shared_embedding": False})
    matrix = tied.projection.weight
    names = ("source_embedding.subwords.weight", "target_embedding.subwords.weight", "projection.weight")
    apart.load_state_dict({**tied.state_dict(), **dict.fromkeys(names, matrix)})
    for model in (tied, apart):
        states = model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
        model.projection(states).square().sum().backward()
    gradients = [apart.get_parameter(name).grad for name in names]
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)
    torch.testing.assert_close(tied.get_parameter(names[0]).grad, sum(g for g in gradients if g is not None))


def test_a_text_with_more_subwords_than_positions_were_learnt_is_one_sentence(
    tiny_model: Build, tiny_batch: Batch
) -> None:
    for positions, fits in ((5, True), (4, False)):
        model = tiny_model(positions="learned", max_positions=positions)
        if fits:
            model.encode(tiny_batch.source, tiny_batch.source_mask)
            continue
        with pytest.raises(UserError, match="a text has 5 subwords, but this model has learnt 4 positions"):
            model.encode(tiny_batch.source, tiny_batch.source_mask)


def test_a_start_without_a_row_of_its_own_learns_through_the_row_of_the_end_and_a_fixed_bias_not_at_all(
    tiny_model: Build, tiny_batch: Batch
) -> None:
    model = tiny_model(start_subword=2, fixed_bias=True)
    states = model(tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    model.projection(states).square().sum().backward()
    gradient = model.target_embedding.subwords.weight.grad
    assert gradient is not None and not gradient[1].any() and gradient[2].any()
    assert model.projection.bias.grad is None and "projection.bias" in model.state_dict()
