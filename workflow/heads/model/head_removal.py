"""Physical removal of heads and hidden units: the model computes the same function with smaller matrices."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from heads.base.files import UserError, read_tsv, write_tsv
from heads.base.names import ATTENTIONS, FEEDFORWARDS, GATED_SCOPES, HEAD, WITH_GATES
from heads.base.runs import Run
from heads.model.distances import tables_of
from heads.model.encoder import Encoder
from heads.model.shape import Head, ModelShape

Model = TypeVar("Model", bound=Encoder)
OpenHeads = Mapping[str, Sequence[Sequence[bool]]]
"""Whether to keep each live head of a model, by kind of attention and layer, or each unit of a feed-forward stack."""

OPEN_COLUMNS = (*HEAD, "open")
TOLERANCE = 1e-9
"""Largest difference in float64 between the outputs of the pruned and the masked model: rounding only."""

STACKS = {"enc": "encoder", "dec": "decoder"}
MODULES = {"self": "self_attention", "enc": "cross_attention", "ffn": "feedforward"}
MAPS: tuple[tuple[Sequence[str], str], ...] = ((("inner", "factor"), "outer"), (("query", "key", "value"), "output"))
"""The linear maps that lose rows, and the one that loses columns, of a feed-forward network and of an attention."""

MARKS = {"0": False, "1": True}
WAY_OUT = "delete the table and run its stage again."


def pruned_shape(shape: ModelShape, open_heads: OpenHeads) -> ModelShape:
    """The shape after removal of the closed heads; kinds of attention not in `open_heads` keep all their heads."""
    live = {
        kind: tuple(
            tuple(head for head, stays in zip(layer, open_heads[kind][index], strict=True) if stays)
            if kind in open_heads
            else layer
            for index, layer in enumerate(shape.live_heads[kind])
        )
        for kind in ATTENTIONS
    }
    units = {
        stack: tuple(map(sum, open_heads[stack])) if stack in open_heads else shape.units(stack)
        for stack in FEEDFORWARDS
        if not open_heads.keys().isdisjoint(FEEDFORWARDS)
    }
    return replace(shape, live_heads=live, live_units=units or shape.live_units)


def prune(model: Model, open_heads: OpenHeads) -> Model:
    """A new model without the closed heads, equal to `model` with their gates at zero (and all others at one)."""
    shape = model.shape
    smaller = type(model)(pruned_shape(shape, open_heads))
    weights = dict(model.state_dict())
    for kind in open_heads:
        for layer, stays in enumerate(open_heads[kind]):
            columns = torch.tensor([bool(stay) for stay in stays], dtype=torch.bool)
            if kind in ATTENTIONS:
                columns = columns.repeat_interleave(shape.head_width)
            inner, outer = MAPS[kind in ATTENTIONS]
            prefix = module_name(kind, layer)
            for part in inner:
                for name in (f"{prefix}.{part}.weight", f"{prefix}.{part}.bias"):
                    if name in weights:
                        weights[name] = weights[name][columns]
            weights[f"{prefix}.{outer}.weight"] = weights[f"{prefix}.{outer}.weight"][:, columns]
    smaller.to(next(model.parameters())).load_state_dict(weights | _distances(weights, shape, smaller.shape))
    return smaller.train(model.training)


def _distances(weights: Mapping[str, Any], before: ModelShape, after: ModelShape) -> dict[str, Any]:
    """Biases of distances without the columns of heads that are gone: from a layer, or, if shared, from all layers."""
    left = tables_of(after)
    return {name: weights[name][:, [old.index(head) for head in left[name]]] for name, old in tables_of(before).items()}


def head_rows(shape: ModelShape) -> list[dict[str, Any]]:
    """One row for each head of the original model, with 1 in the column `open` if it is still there."""
    live = {*shape.heads()}
    return [
        {"attention": kind, "layer": layer, "head": head, "open": int((kind, layer, head) in live)}
        for kind, layer, head in shape.all_heads()
    ]


def write_heads(path: Path, shape: ModelShape) -> None:
    """Write `heads.tsv`, the `head_rows` of a shape."""
    write_tsv(path, head_rows(shape), OPEN_COLUMNS)


@torch.no_grad()
def check_equal(model: Encoder, smaller: Encoder, open_heads: OpenHeads) -> None:
    """Raise ArithmeticError if outputs of the pruned and the masked model differ on random subwords in float64."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(model.shape.source_subwords, (3, 11), generator=generator)
    target = torch.randint(model.shape.target_subwords, (3, 7), generator=generator)
    mask = torch.arange(11) < torch.tensor([[11], [8], [5]])
    gates = {k: [torch.tensor(layer, dtype=torch.float64) for layer in v] for k, v in open_heads.items()}
    expected = model.double()(source, mask, target, gates)
    difference = float((smaller.double()(source, mask, target) - expected).abs().max())
    model.float()
    smaller.float()
    if not difference <= TOLERANCE:
        raise ArithmeticError(f"the outputs of the pruned and the masked model differ by {difference}")


def module_name(kind: str, layer: int) -> str:
    """The name of an attention or a feed-forward network inside a model."""
    stack, _, part = kind.partition("_")
    return f"{STACKS[stack]}.{layer}.{MODULES[part]}"


def open_without(shape: ModelShape, closed: Collection[Head]) -> dict[str, list[list[bool]]]:
    """Whether to keep each live head of a shape, which are all but these."""
    return {
        kind: [[(kind, layer, head) not in closed for head in heads] for layer, heads in enumerate(layers)]
        for kind, layers in shape.live_heads.items()
    }


def open_heads_of(rows: Iterable[Mapping[str, str]], shape: ModelShape) -> dict[str, list[list[bool]]]:
    """Whether to keep each live head of `shape`, from rows of `heads.tsv`; kinds of attention not in them stay.

    Where rows are of hidden units, they say the same of each unit of a feed-forward stack. Rows of heads that were
    removed before are allowed if they are closed.
    Raises UserError unless the table has exactly the kinds of a scope and one row for each of their live heads.
    """
    stays: dict[Head, bool] = {}
    for number, row in enumerate(rows, 1):
        try:
            head, is_open = (row["attention"], int(row["layer"]), int(row["head"])), MARKS[row["open"]]
        except (LookupError, TypeError, ValueError):
            raise UserError(f"row {number} is damaged: {WAY_OUT}") from None
        if head in stays:
            raise UserError(f"row {number} names {_words(head)} again: {WAY_OUT}")
        stays[head] = is_open
    kinds = {kind for kind, _, _ in stays}
    if kinds not in [{*shape.kinds_in(scope)} for scope in GATED_SCOPES]:
        raise UserError(
            f"the rows name {' and '.join(sorted(kinds)) or 'no attention'}, which is not a scope: {WAY_OUT}"
        )
    live = {*shape.heads_and_units(kinds)}
    if missing := live - stays.keys():
        raise UserError(f"no row names {_words(min(missing))}: {WAY_OUT}")
    if strange := {head for head in stays.keys() - live if stays[head]}:
        raise UserError(f"a row keeps {_words(min(strange))}, which the model does not have: {WAY_OUT}")
    return {
        kind: [[stays.get((kind, layer, one), True) for one in each] for layer, each in enumerate(shape.members(kind))]
        for kind in (*ATTENTIONS, *(stack for stack in FEEDFORWARDS if stack in kinds))
    }


def read_open_heads(table: Path, shape: ModelShape) -> dict[str, list[list[bool]]]:
    """`open_heads_of` for a file, which must name all kinds of attention that its run needs; errors name the file."""
    try:
        rows = read_tsv(table)
        open_heads = open_heads_of(rows, shape)
    except UserError as error:
        raise UserError(f"{table}: {error}") from error
    run = run_at(table.parent)
    expected = () if run is None else shape.kinds_in(run.scope or "all") if run.kind in WITH_GATES else shape.kinds
    if missing := {*expected} - {row["attention"] for row in rows}:
        raise UserError(f"{table}: no row names {' and '.join(sorted(missing))}: {WAY_OUT}")
    return open_heads


def run_at(folder: Path) -> Run | None:
    """The run that a folder holds, from the end of its path; None for a baseline or any other folder."""
    try:
        run = Run.parse("/".join(folder.resolve().parts[-4:]))
    except ValueError:
        return None
    return run if run.scope in GATED_SCOPES else None


def _words(head: Head) -> str:
    return f"{'unit' if head[0] in FEEDFORWARDS else 'head'} {head[2]} of {head[0]} layer {head[1]}"
