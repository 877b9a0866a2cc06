"""A removed head equals a masked one, and heads are listed by the numbers that they had in the full model."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heads.base.columns import GATE_COLUMNS
from heads.base.files import UserError, write_tsv
from heads.base.names import ATTENTIONS, SCOPES
from heads.model.equal_units import with_equal_units
from heads.model.head_removal import (
    OPEN_COLUMNS,
    head_rows,
    module_name,
    open_heads_of,
    prune,
    pruned_shape,
    read_open_heads,
)
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.batches import Batch

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

LAYERS, HEADS = 2, 3
Masks = dict[str, list[list[bool]]]


def masks(scope: str) -> st.SearchStrategy[Masks]:
    """Which heads stay, for each kind of attention of a scope; a layer may lose all or none."""
    layer = st.lists(st.booleans(), min_size=HEADS, max_size=HEADS)
    return st.fixed_dictionaries({kind: st.lists(layer, min_size=LAYERS, max_size=LAYERS) for kind in SCOPES[scope]})


@pytest.mark.parametrize("norm", ["pre", "post"])
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(open_heads=st.one_of(masks("enc_self"), masks("all")))
def test_a_model_with_heads_removed_equals_the_one_with_them_masked(
    tiny_model: Callable[..., Transformer], tiny_batch: Batch, norm: str, open_heads: Masks
) -> None:
    model, batch = tiny_model(pre_norm=norm == "pre").float(), tiny_batch
    smaller = prune(model, open_heads).double()
    model.double()
    gates = {kind: [torch.tensor(layer).double() for layer in layers] for kind, layers in open_heads.items()}
    masked = model(batch.source, batch.source_mask, batch.target_input, gates)
    removed = smaller(batch.source, batch.source_mask, batch.target_input)
    torch.testing.assert_close(removed, masked, rtol=1e-10, atol=1e-10)
    gone = sum(not stays for layers in open_heads.values() for layer in layers for stays in layer)
    weights_of_a_head = 4 * 10 * 2  # query, key, value and output, each width x head width
    sizes = [sum(p.numel() for p in m.parameters()) for m in (model, smaller)]
    assert sizes[0] - sizes[1] == gone * weights_of_a_head


UNITS = 7


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_with_units_and_heads_removed_equals_the_one_with_them_masked(
    tiny_model: Callable[..., Transformer], tiny_batch: Batch, norm: str
) -> None:
    model, batch = tiny_model(pre_norm=norm == "pre", feedforward=UNITS).float(), tiny_batch
    stays = [[unit not in gone for unit in range(UNITS)] for gone in ([], range(UNITS), [0, 5, 6], [1])]
    closed = {"enc_ffn": stays[:2], "dec_ffn": stays[2:], "enc_self": [[True, False, True], [False] * 3]}
    smaller = prune(model, closed).double()
    assert smaller.shape.live_units == {"enc_ffn": (7, 0), "dec_ffn": (4, 6)}
    assert smaller.state_dict()["encoder.1.feedforward.inner.weight"].shape == (0, 10)
    gates = {kind: [torch.tensor(layer).double() for layer in layers] for kind, layers in closed.items()}
    masked = model.double()(batch.source, batch.source_mask, batch.target_input, gates)
    removed = smaller(batch.source, batch.source_mask, batch.target_input)
    torch.testing.assert_close(removed, masked, rtol=1e-10, atol=1e-10)
    again = prune(smaller.float(), {"dec_ffn": [[True, False, True, True], [False] * 6]})
    assert again.shape.live_units == {"enc_ffn": (7, 0), "dec_ffn": (3, 0)}


@pytest.mark.parametrize(
    ("in_both", "units"),
    [(False, {"enc_ffn": (5, 5), "dec_ffn": (6, 6)}), (True, dict.fromkeys(("enc_ffn", "dec_ffn"), (6, 6)))],
)
def test_with_as_many_units_in_each_layer_a_model_computes_the_same(
    tiny_model: Callable[..., Transformer], tiny_batch: Batch, *, in_both: bool, units: dict[str, tuple[int, ...]]
) -> None:
    model = tiny_model(feedforward=UNITS).float()
    gone = (range(UNITS), [0, 6], [2], [1, 3])
    stays = [[unit not in lost for unit in range(UNITS)] for lost in gone]
    smaller = prune(model, {"enc_ffn": stays[:2], "dec_ffn": stays[2:]})
    equal = with_equal_units(smaller, in_both=in_both)
    assert equal.shape.live_units == units
    given = tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input
    torch.testing.assert_close(equal.double()(*given), smaller.double()(*given), rtol=1e-12, atol=1e-12)
    assert with_equal_units(model, in_both=in_both) is model


def test_heads_keep_their_first_numbers_after_two_prunings_in_a_row(tiny_model: Callable[..., Transformer]) -> None:
    once = prune(tiny_model(), {"dec_enc": [[False, True, True], [True, True, False]]})
    twice = prune(once, {"dec_enc": [[True, False], [False, True]], "enc_self": [[True] * 3, [False] * 3]})
    assert dict(twice.shape.live_heads) == {
        "enc_self": ((0, 1, 2), ()),
        "dec_self": ((0, 1, 2), (0, 1, 2)),
        "dec_enc": ((1,), (1,)),
    }
    assert twice.shape.original_heads == HEADS


def test_pruning_leaves_the_given_model_as_it_was(tiny_model: Callable[..., Transformer]) -> None:
    model = tiny_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    smaller = prune(model, {"enc_self": [[False, True, False], [True, True, True]]})
    for value in smaller.parameters():
        value.data.zero_()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [[True, True], [True] * 4])
def test_a_mask_with_another_number_of_heads_is_refused(
    tiny_model: Callable[..., Transformer], wrong: list[bool]
) -> None:
    with pytest.raises(ValueError, match=r"shorter|longer|heads"):
        prune(tiny_model(), {"enc_self": [[True] * 3, wrong]})


def test_a_table_of_heads_closes_what_it_marks_by_the_first_numbers(tiny_shape: Callable[..., ModelShape]) -> None:
    shape = tiny_shape(live_heads={"enc_self": ((0, 2), (1,)), "dec_self": ((), (0, 1)), "dec_enc": ((2,), (0, 1, 2))})
    closed = [("enc_self", 0, 2), ("dec_enc", 1, 0), ("dec_enc", 1, 1)]
    rows = [
        {"attention": kind, "layer": str(layer), "head": str(head), "open": str(int((kind, layer, head) not in closed))}
        for kind in ATTENTIONS
        for layer in range(LAYERS)
        for head in shape.live_heads[kind][layer]
    ]
    left = pruned_shape(shape, open_heads_of(rows, shape))
    assert dict(left.live_heads) == {"enc_self": ((0,), (1,)), "dec_self": ((), (0, 1)), "dec_enc": ((2,), (2,))}


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_an_attention_module_is_found_by_its_name(tiny_model: Callable[..., Transformer], kind: str) -> None:
    model = tiny_model()
    layer = (model.encoder if kind == "enc_self" else model.decoder)[1]
    expected = layer.cross_attention if kind == "dec_enc" else layer.self_attention
    assert model.get_submodule(module_name(kind, 1)) is expected


def table(kinds: tuple[str, ...] = ATTENTIONS) -> list[dict[str, str]]:
    """Rows for all heads of the given kinds of attention; every other head is open."""
    heads = [(kind, layer, head) for kind in kinds for layer in range(LAYERS) for head in range(HEADS)]
    return [
        {"attention": kind, "layer": str(layer), "head": str(head), "open": str(number % 2)}
        for number, (kind, layer, head) in enumerate(heads)
    ]


@pytest.mark.parametrize("run", ["gates/all/lam-0.2", "gates/enc_self/keep-3", "selected/all/lrp-9", "elsewhere"])
def test_a_table_of_heads_that_lost_its_end_is_named_or_as_it_was(
    tiny_shape: Callable[..., ModelShape], tmp_path: Path, run: str
) -> None:
    path = tmp_path / run / "seed-1/heads.tsv"
    kinds = ("enc_self",) if "enc_self" in run or run == "elsewhere" else ATTENTIONS
    columns = GATE_COLUMNS if "gates" in run else OPEN_COLUMNS
    write_tsv(path, [{**dict.fromkeys(columns, "0.25"), **row} for row in table(kinds)], columns)
    whole = path.read_bytes()
    expected = read_open_heads(path, tiny_shape())
    assert sum(sum(map(sum, layers)) for layers in expected.values()) == 18 - len(kinds) * 3
    errors = 0
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        try:
            found = read_open_heads(path, tiny_shape())
        except UserError as told:
            error = str(told)
        else:
            assert found == expected, whole[:end]
            continue
        assert str(path) in error and "\n" not in error
        errors += 1
    assert errors >= len(whole) - len("\t0.25\n")  # the last column is not read


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "the rows name no attention, which is not a scope"),
        (table()[:12], "the rows name dec_self and enc_self, which is not a scope"),
        ([*table(), table()[4]], "row 19 names head 1 of enc_self layer 1 again"),
        ([*table(), {**table()[0], "layer": "2", "open": "1"}], "keeps head 0 of enc_self layer 2"),
        ([*table()[:-1], {**table()[-1], "open": "yes"}], "row 18 is damaged"),
        ([{**row, "layer": "one"} for row in table()], "row 1 is damaged"),
        ([row for row in table() if row["layer"] + row["head"] != "12"], "no row names head 2 of dec_enc layer 1"),
        ([*table(), {**table()[0], "attention": "dec_dec"}], "dec_dec"),
    ],
)
def test_a_table_without_one_row_for_every_head_is_refused(
    tiny_shape: Callable[..., ModelShape], rows: list[dict[str, str]], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        open_heads_of(rows, tiny_shape())


def test_the_table_of_a_pruned_model_is_read_with_its_own_shape_and_with_the_full_one(
    tiny_shape: Callable[..., ModelShape],
) -> None:
    live = {"enc_self": ((0, 2), (1,)), "dec_self": ((), (0, 1)), "dec_enc": ((2,), (0, 1, 2))}
    shape = tiny_shape(live_heads=live)
    rows = [{name: str(value) for name, value in row.items()} for row in head_rows(shape)]
    assert all(all(map(all, layers)) for layers in open_heads_of(rows, shape).values())
    assert dict(pruned_shape(tiny_shape(), open_heads_of(rows, tiny_shape())).live_heads) == live


LIVE = {"enc_self": ((0, 2), ()), "dec_self": ((), (1,)), "dec_enc": ((2,), (0, 1))}
LIVE_HEADS = (
    ("enc_self", 0, 0), ("enc_self", 0, 2), ("dec_self", 1, 1), ("dec_enc", 0, 2), ("dec_enc", 1, 0), ("dec_enc", 1, 1),
)  # fmt: skip


def test_live_heads_come_by_attention_layer_and_their_first_number_whatever_order_is_asked_for(
    tiny_shape: Callable[..., ModelShape],
) -> None:
    shape = tiny_shape(live_heads={kind: LIVE[kind] for kind in ("dec_enc", "enc_self", "dec_self")})
    assert shape.heads() == LIVE_HEADS
    assert shape.heads(("dec_enc", "enc_self")) == LIVE_HEADS[:2] + LIVE_HEADS[3:]
    assert shape.heads(["dec_self"]) == LIVE_HEADS[2:3]
    assert shape.heads(()) == ()


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 3)])
def test_a_whole_model_has_every_head_of_every_layer(
    tiny_shape: Callable[..., ModelShape], layers: int, heads: int
) -> None:
    shape = tiny_shape(live_heads=full_heads(layers=layers, heads=heads))
    assert {shape.layers(kind) for kind in shape.live_heads} == {layers} and len(shape.heads()) == 3 * layers * heads
    assert shape.heads()[-1] == ("dec_enc", layers - 1, heads - 1)
