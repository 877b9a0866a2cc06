"""Remove the closed heads of a model trained with gates, and save the smaller model."""

from pathlib import Path

from heads.base.provenance import made_by
from heads.model.folder import load_model, save_folder
from heads.model.head_removal import check_equal, prune, read_open_heads, write_heads
from heads.model.shape import facts_of


def remove_closed(start: Path, gates: Path, out: Path, heads: Path) -> None:
    """Save a model without the heads that its table of gates marks as closed, and a table of all heads.

    Checks that the smaller model computes the same function. Raises UserError for a table of another model.
    """
    model = load_model(start, with_closed=True)
    open_heads = read_open_heads(gates, model.shape)
    smaller = prune(model, open_heads)
    check_equal(model, smaller, open_heads)
    save_folder(smaller, out, facts_of(start), made_by())
    write_heads(heads, smaller.shape)
