"""The folder of a model of others that an experiment starts from: its files, and whether it has enough heads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.config.checks import sized
from heads.formats.registry import Format, Heads, format_of


def pretrained_files(name: str, experiment: Mapping[str, Any], task: str) -> list[str]:
    """The files of the folder that a resolved experiment's baseline is taken from.

    Raises UserError if it is none, and if its model has fewer heads than the experiment would keep.
    """
    found, folder = _format_of(name, experiment, task)
    if heads := _heads_of(name, experiment, found, folder):
        sized(f"experiments.{name}", experiment, heads)
    return [str(path) for path in found.files(folder)]


def sized_by_folder(name: str, experiment: Mapping[str, Any], task: str) -> dict[str, Any]:
    """An experiment with numbers of heads in the place of shares, by the model in that folder.

    Raises UserError as `pretrained_files`, and if the folder does not say how many heads there are.
    """
    found, folder = _format_of(name, experiment, task)
    heads = _heads_of(name, experiment, found, folder)
    if not heads:
        raise UserError(
            f"experiments.{name}.sweep has shares of heads, but {folder} does not say how many there are: copy it from "
            "where the model is from, or give numbers of heads."
        )
    return sized(f"experiments.{name}", experiment, heads)


def _heads_of(name: str, experiment: Mapping[str, Any], found: Format, folder: Path) -> Heads:
    """The heads of that model, with those that its decoder is to be given. Raises UserError if it can have none."""
    heads = found.heads(folder)
    if not experiment["baseline"]["decoder"] or not heads:
        return heads
    if "dec_self" in heads or "dec_enc" not in heads:
        raise UserError(
            f"experiments.{name}.baseline.decoder is for a decoder without self-attention, and {folder} has none such: "
            "take it out."
        )
    return {**heads, "dec_self": heads["dec_enc"]}


def _format_of(name: str, experiment: Mapping[str, Any], task: str) -> tuple[Format, Path]:
    try:
        return format_of(experiment["baseline"]["pretrained"], task)
    except UserError as error:
        raise UserError(f"experiments.{name}.baseline.pretrained: {error}") from None
