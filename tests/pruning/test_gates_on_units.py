"""Gates on hidden units: which they are, what they cost, which stay, and the model without those that closed."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heads.base.columns import GATE_COLUMNS
from heads.base.files import UserError, read_tsv, write_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, HardConcrete, SubsetSettings
from heads.model.folder import load_model, save_folder
from heads.model.head_removal import module_name, prune, read_open_heads
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.pruning.gates import Budget, HardConcreteGates, budgets_of, gate_rows
from heads.pruning.penalty import DrivenPenalty, gates_and_penalty
from heads.pruning.removal import remove_closed
from heads.text.batches import Batch

Shape = Callable[..., ModelShape]
Model = Callable[..., Transformer]
UNITS = {"enc_ffn": (7, 4), "dec_ffn": (5, 6)}
EVERYTHING = (*ATTENTIONS, *FEEDFORWARDS)


def gates_of(target: str, scope: str, shape: ModelShape, hard_concrete: HardConcrete) -> HardConcreteGates:
    """Gates of a target, each with a logit of its own."""
    settings = GatesSettings(hard_concrete=hard_concrete, subset=SubsetSettings())
    gates, _ = gates_and_penalty(Target.parse(target), scope, shape, settings, 10)
    assert isinstance(gates, HardConcreteGates)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for log_alpha in gates.log_alpha.values():
            log_alpha.copy_(torch.randn(log_alpha.shape, generator=generator))
    return gates


def answered(model: Transformer, batch: Batch, gates: dict[str, list[torch.Tensor]] | None = None) -> torch.Tensor:
    found: torch.Tensor = model(batch.source, batch.source_mask, batch.target_input, gates)
    return found


@pytest.mark.parametrize(("scope", "kinds"), [("feedforward", FEEDFORWARDS), ("everything", EVERYTHING)])
def test_each_scope_has_a_gate_for_every_unit_that_there_is_and_each_gate_reaches_its_unit(
    tiny_model: Model, tiny_batch: Batch, hard_concrete: HardConcrete, scope: str, kinds: tuple[str, ...]
) -> None:
    model = tiny_model(live_units=UNITS, activation="gelu")
    gates = gates_of("lam-0.5", scope, model.shape, hard_concrete)
    generator = torch.Generator().manual_seed(2)
    sizes = {**{kind: [3, 3] for kind in ATTENTIONS}, **{stack: [*units] for stack, units in UNITS.items()}}
    for each in (gates.sampled(generator), gates.binary(), gates.chances(), gates.logits(), gates.between()):
        assert {kind: [*map(len, layers)] for kind, layers in each.items()} == {kind: sizes[kind] for kind in kinds}
    half = {kind: [torch.full((size,), 0.5).double() for size in sizes[kind]] for kind in kinds}
    for (stack, layer), unit in itertools.product(((s, n) for s in FEEDFORWARDS for n in (0, 1)), (0, 2)):
        closed = {kind: [value.clone() for value in layers] for kind, layers in half.items()}
        closed[stack][layer][unit] = 0.0
        without = tiny_model(live_units=UNITS, activation="gelu")
        with torch.no_grad():
            without.get_parameter(f"{module_name(stack, layer)}.outer.weight")[:, unit] = 0.0
        assert torch.allclose(answered(model, tiny_batch, closed), answered(without, tiny_batch, half), atol=1e-12)
        assert not torch.allclose(answered(model, tiny_batch, closed), answered(model, tiny_batch, half), atol=1e-6)


@pytest.mark.parametrize("gated", [False, True])
def test_an_open_unit_costs_as_much_of_an_open_head_as_it_has_of_its_weights(
    tiny_model: Model, hard_concrete: HardConcrete, *, gated: bool
) -> None:
    model, lam = tiny_model(live_units=UNITS, gated_units=gated), 0.3
    sizes = {name: weights.numel() for name, weights in model.encoder[0].named_parameters() if "weight" in name}
    of_head = sum(size for name, size in sizes.items() if name.startswith("self_attention.")) / 3
    of_unit = sum(size for name, size in sizes.items() if name.startswith("feedforward.")) / 7
    settings = GatesSettings(hard_concrete=hard_concrete)
    for scope in ("feedforward", "everything"):
        _, penalty = gates_and_penalty(Target.of_penalty(lam), scope, model.shape, settings, 10)
        gates = gates_of("lam-0.3", scope, model.shape, hard_concrete)
        chances = {kind: float(torch.cat(layers).sum().detach()) for kind, layers in gates.chances().items()}
        heads = sum(chance for kind, chance in chances.items() if kind in ATTENTIONS)
        units = sum(chance for kind, chance in chances.items() if kind in FEEDFORWARDS)
        assert float(penalty(gates).detach()) == pytest.approx(lam * (heads + units * of_unit / of_head), rel=1e-6)
        counts = {name: float(value) for name, value in gates.counts().items()}
        expected = {"expected_open_units": pytest.approx(units, rel=1e-6)}
        assert counts == (expected | {"expected_open_heads": pytest.approx(heads)} if heads else expected)


def test_heads_and_units_have_a_number_each_and_exactly_so_many_stay_the_likeliest(
    tiny_shape: Shape, hard_concrete: HardConcrete
) -> None:
    shape = tiny_shape(live_units=UNITS)
    assert budgets_of(Target.parse("keep-9-8"), "everything", shape) == (Budget(ATTENTIONS, 9), Budget(FEEDFORWARDS, 8))
    assert budgets_of(Target.parse("keep-8"), "feedforward", shape) == (Budget(FEEDFORWARDS, 8),)
    assert budgets_of(Target.parse("keep-3-5"), "feedforward", shape) == (
        Budget(("enc_ffn",), 3),
        Budget(("dec_ffn",), 5),
    )
    gates = gates_of("keep-9-8", "everything", shape, hard_concrete)
    for kinds, number in ((ATTENTIONS, 9), (FEEDFORWARDS, 8)):
        logits, stays = (
            torch.cat([layer.detach() for kind in kinds for layer in values[kind]])
            for values in (gates.logits(), gates.binary())
        )
        assert stays.sum() == number and logits[stays == 1].min() > logits[stays == 0].max()
    for target, scope, message in (
        ("keep-9", "everything", "give two numbers, of heads and of hidden units."),
        ("keep-1-2-3", "feedforward", "give one number or 2, for enc_ffn, dec_ffn."),
        (
            "keep-23",
            "feedforward",
            "keep-23 asks for 23 units of enc_ffn and dec_ffn, but there are only 22: lower it.",
        ),
        ("dsp-4", "everything", "dsp-4 chooses heads alone"),
    ):
        with pytest.raises(UserError, match=message):
            gates_of(target, scope, shape, hard_concrete)


def test_a_driven_penalty_costs_units_by_a_lambda_of_their_own(tiny_shape: Shape, hard_concrete: HardConcrete) -> None:
    shape = tiny_shape(live_units=UNITS)
    gates = gates_of("keep-18-0", "everything", shape, hard_concrete)
    penalty = DrivenPenalty(gates)
    for done in (0.2, 0.5, 0.9):
        penalty.adjust(gates, done)
    heads, units = penalty.lam.tolist()
    assert heads < penalty.START < units, "no head is too many, and every unit is"
    open_heads, open_units = (float(gates.expected_open(kinds).detach()) for kinds in (ATTENTIONS, FEEDFORWARDS))
    assert float(penalty(gates).detach()) == pytest.approx(heads * open_heads + units * open_units / 4, rel=1e-6)


@pytest.mark.parametrize("scope", ["feedforward", "everything"])
def test_the_model_without_closed_units_is_that_with_their_gates_at_zero(
    tiny_model: Model, tiny_batch: Batch, hard_concrete: HardConcrete, tmp_path: Path, scope: str
) -> None:
    model = tiny_model(live_units=UNITS)
    gates = gates_of("lam-0.5", scope, model.shape, hard_concrete)
    start, out = (tmp_path / f"tiny/{kind}/{scope}/lam-0.5/seed-1" for kind in ("gates", "pruned"))
    save_folder(model, start, {"updates": 1, "total_updates": 1, "dev_loss": 0.5}, {})
    rows = gate_rows(gates, model.shape)
    write_tsv(start / "heads.tsv", rows, GATE_COLUMNS)
    assert len(rows) == 22 + 18 * (scope == "everything")
    remove_closed(start, start / "heads.tsv", out, out / "heads.tsv")
    smaller, zeros = load_model(out).double(), {k: [one.double() for one in v] for k, v in gates.binary().items()}
    assert (
        smaller.shape.live_units
        == {stack: tuple(int(one.sum()) for one in zeros[stack]) for stack in FEEDFORWARDS}
        != UNITS
    )
    assert isinstance(smaller, Transformer)
    assert torch.allclose(answered(smaller, tiny_batch), answered(model, tiny_batch, zeros), atol=1e-5)
    assert {row["attention"] for row in read_tsv(out / "heads.tsv")} == {*ATTENTIONS}
    # A table that lost rows of its units is refused, not read as one of heads alone.
    for left in (rows[:-1], [row for row in rows if row["attention"] != "dec_ffn"], rows[: -22 or None]):
        write_tsv(start / "heads.tsv", left, GATE_COLUMNS)
        with pytest.raises(UserError, match=r"no row names|not a scope"):
            read_open_heads(start / "heads.tsv", model.shape)


def test_units_are_removed_like_columns_of_the_second_map(tiny_model: Model) -> None:
    model = tiny_model()
    keep = [[True, False, True, True, False, True, True], [True] * 7]
    smaller = prune(model, {"enc_ffn": keep, "dec_ffn": [[True] * 7] * 2})
    for name in ("inner.weight", "inner.bias"):
        kept = smaller.get_parameter(f"encoder.0.feedforward.{name}")
        assert torch.equal(kept, model.get_parameter(f"encoder.0.feedforward.{name}")[[0, 2, 3, 5, 6]])
    outer = model.get_parameter("encoder.0.feedforward.outer.weight")[:, [0, 2, 3, 5, 6]]
    assert torch.equal(smaller.get_parameter("encoder.0.feedforward.outer.weight"), outer)
