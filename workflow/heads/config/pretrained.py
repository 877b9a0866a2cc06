"""The folder of the pretrained model that an experiment starts from: its files, and whether it has enough heads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.config.checks import sized
from heads.formats.registry import Format, Heads, format_of


def pretrained_files(name: str, experiment: Mapping[str, Any], task: str) -> list[str]:
    """The files of the folder that a resolved experiment's baseline is imported from.

    Raises UserError if it is not such a folder, or if its model has fewer heads than the experiment would keep.
    """
    found, folder = _format_of(name, experiment, task)
    if heads := _heads_of(name, experiment, found, folder):
        sized(f"experiments.{name}", experiment, heads)
    return [str(path) for path in found.files(folder)]


def sized_by_folder(name: str, experiment: Mapping[str, Any], task: str) -> dict[str, Any]:
    """An experiment with numbers of heads in place of shares, computed for its pretrained model.

    Raises UserError like `pretrained_files`, and if the folder does not say how many heads there are.
    """
    found, folder = _format_of(name, experiment, task)
    heads = _heads_of(name, experiment, found, folder)
    if not heads:
        raise UserError(
            f"experiments.{name}.sweep has shares of heads, but {folder} does not say how many there are: copy it from "
            "the model's source again, or give numbers of heads."
        )
    return sized(f"experiments.{name}", experiment, heads)


def _heads_of(name: str, experiment: Mapping[str, Any], found: Format, folder: Path) -> Heads:
    """The model's heads, including new decoder self-attention; raise UserError if its decoder cannot have that."""
    heads = found.heads(folder)
    if not experiment["baseline"]["decoder"] or not heads:
        return heads
    if "dec_self" in heads or "dec_enc" not in heads:
        raise UserError(
            f"experiments.{name}.baseline.decoder is for a decoder without self-attention, which {folder} does not "
            "have: take it out."
        )
    return {**heads, "dec_self": heads["dec_enc"]}


def _format_of(name: str, experiment: Mapping[str, Any], task: str) -> tuple[Format, Path]:
    try:
        return format_of(experiment["baseline"]["pretrained"], task)
    except UserError as error:
        raise UserError(f"experiments.{name}.baseline.pretrained: {error}") from None
