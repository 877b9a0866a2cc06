"""Gates, penalties and tables of heads of a model without self-attention in its decoder, which has a recurrent unit."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch

from few_heads import RECURRENT
from heads.base.files import UserError, write_tsv
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, HardConcrete, SubsetSettings
from heads.model.head_removal import OPEN_COLUMNS, head_rows, open_heads_of, prune, read_open_heads
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.pruning.gates import Budget, HardConcreteGates, TrainableGates, budgets_of, gate_rows
from heads.pruning.penalty import DrivenPenalty, gates_and_penalty
from heads.pruning.subset_gates import SubsetGates
from heads.text.batches import Batch

Shape = Callable[..., ModelShape]
KINDS = {"all": ["enc_self", "dec_enc"], "enc_self": ["enc_self"]}


def gates_of(target: str, scope: str, shape: ModelShape, hard_concrete: HardConcrete) -> TrainableGates:
    """Gates of a target, before any update."""
    settings = GatesSettings(hard_concrete=hard_concrete, subset=SubsetSettings())
    return gates_and_penalty(Target.parse(target), scope, shape, settings, 10)[0]


@pytest.mark.parametrize(("scope", "target"), [*product(KINDS, ("lam-0.5", "keep-4", "dsp-4")), ("all", "keep-3-2")])
def test_gates_are_on_the_kinds_that_there_are_and_reach_them(
    tiny_shape: Shape, tiny_batch: Batch, hard_concrete: HardConcrete, scope: str, target: str
) -> None:
    torch.manual_seed(1)
    model = Transformer(tiny_shape(**RECURRENT)).eval()
    gates = gates_of(target, scope, model.shape, hard_concrete)
    generator = torch.Generator().manual_seed(2)
    given = (tiny_batch.source, tiny_batch.source_mask, tiny_batch.target_input)
    for each in (gates.sampled(generator), gates.binary(), gates.chances(), gates.logits(), gates.between()):
        assert {kind: [len(layer) for layer in layers] for kind, layers in each.items()} == {
            kind: [3, 3] for kind in KINDS[scope]
        }
    # A sampled gate may be closed, and then hides the gates before it.
    half = {kind: [torch.full_like(layer, 0.5) for layer in drawn] for kind, drawn in gates.sampled(generator).items()}
    layers = [layer.requires_grad_() for drawn in half.values() for layer in drawn]
    felt = torch.autograd.grad(model(*given, half)[0, 0].sum(), layers)
    assert all((gradient != 0).all() for gradient in felt)
    rows = gate_rows(gates, model.shape)
    assert [(row["attention"], row["layer"], row["head"]) for row in rows] == list(model.shape.heads(KINDS[scope]))


def test_one_budget_is_of_both_kinds_and_two_are_of_one_each(tiny_shape: Shape) -> None:
    shape = tiny_shape(**RECURRENT)
    assert budgets_of(Target.parse("keep-7"), "all", shape) == (Budget(("enc_self", "dec_enc"), 7),)
    expected = (Budget(("enc_self",), 3), Budget(("dec_enc",), 2))
    assert budgets_of(Target.parse("keep-3-2"), "all", shape) == expected
    message = "keep-3-1-2 has 3 budgets, which does not fit the scope all: give one number or 2, for enc_self, dec_enc."
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        budgets_of(Target.parse("keep-3-1-2"), "all", shape)
    with pytest.raises(UserError, match="asks for 7 heads of dec_enc, but there are only 6"):
        budgets_of(Target.parse("keep-3-7"), "all", shape)
    with pytest.raises(UserError, match="cannot keep 13 of the 12 heads in scope all"):
        SubsetGates(shape, "all", 13, SubsetSettings(), 10)


def test_a_driven_penalty_costs_each_budget_its_own_kind(tiny_shape: Shape, hard_concrete: HardConcrete) -> None:
    shape = tiny_shape(**RECURRENT)
    gates = HardConcreteGates(shape, "all", hard_concrete, budgets_of(Target.parse("keep-6-0"), "all", shape))
    penalty = DrivenPenalty(gates)
    for done in (0.2, 0.5, 0.9):
        penalty.adjust(gates, done)
    encoder, decoder = penalty.lam.tolist()
    assert encoder < penalty.START < decoder, "no encoder head is too many, and every other one is"
    chances = {kind: float(torch.cat(layers).sum().detach()) for kind, layers in gates.chances().items()}
    assert float(penalty(gates).detach()) == pytest.approx(encoder * chances["enc_self"] + decoder * chances["dec_enc"])


def test_tables_of_heads_tell_of_the_kinds_that_there_are(tiny_shape: Shape, tmp_path: Path) -> None:
    shape = tiny_shape(**RECURRENT)
    cut = {"enc_self": [[True, False, True], [False] * 3], "dec_enc": [[False, True, True], [True] * 3]}
    rows = head_rows(prune(Transformer(shape), cut).shape)
    assert [row["open"] for row in rows] == [1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    as_read = [{key: str(value) for key, value in row.items()} for row in rows]
    assert open_heads_of(as_read, shape) == {**cut, "dec_self": []}
    encoder = [row for row in as_read if row["attention"] == "enc_self"]
    assert open_heads_of(encoder, shape) == {"enc_self": cut["enc_self"], "dec_self": [], "dec_enc": [[True] * 3] * 2}
    for run, kept in (("pruned/all/lam-0.2", rows), ("gates/all/lam-0.2", rows), ("gates/enc_self/lam-0.2", rows[:6])):
        folder = tmp_path / "tiny" / run / "seed-1"
        write_tsv(folder / "heads.tsv", kept, OPEN_COLUMNS)
        assert read_open_heads(folder / "heads.tsv", shape)["enc_self"] == cut["enc_self"]
    write_tsv(tmp_path / "tiny/pruned/all/lam-0.2/seed-1/heads.tsv", rows[:6], OPEN_COLUMNS)
    with pytest.raises(UserError, match="no row names dec_enc: delete"):
        read_open_heads(tmp_path / "tiny/pruned/all/lam-0.2/seed-1/heads.tsv", shape)
    with pytest.raises(UserError, match="the rows name dec_enc, which is not a scope"):
        open_heads_of(as_read[6:], shape)
    whole = tiny_shape()
    with pytest.raises(UserError, match="the rows name dec_enc and enc_self, which is not a scope"):
        open_heads_of(as_read, whole)
