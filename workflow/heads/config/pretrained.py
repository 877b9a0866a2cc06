"""The folder of a model of others that an experiment starts from: its files, and whether it has enough heads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heads.base import bert, marian
from heads.base.files import UserError
from heads.base.names import CLASSIFICATION
from heads.config.checks import sized


def pretrained_files(name: str, experiment: Mapping[str, Any], task: str) -> list[str]:
    """The files of the folder that a resolved experiment's baseline is taken from.

    Raises UserError if it is none, and if its model has fewer heads than the experiment would keep.
    """
    folder, heads = _heads_of(name, experiment, task)
    if heads:
        sized(f"experiments.{name}", experiment, heads)
    return [str(path) for path in (bert if task == CLASSIFICATION else marian).files_of(folder)]


def sized_by_folder(name: str, experiment: Mapping[str, Any], task: str) -> dict[str, Any]:
    """An experiment with numbers of heads in the place of shares, by the model in that folder.

    Raises UserError as `pretrained_files`, and if the folder does not tell how many heads there are.
    """
    folder, heads = _heads_of(name, experiment, task)
    if not heads:
        raise UserError(
            f"experiments.{name}.sweep has shares of heads, but {folder / marian.CONFIG} does not say how many there "
            "are: copy it from where the model is from, or give numbers of heads."
        )
    return sized(f"experiments.{name}", experiment, heads)


def _heads_of(name: str, experiment: Mapping[str, Any], task: str) -> tuple[Path, dict[str, tuple[int, int]]]:
    """The folder, and layers and heads a layer by kind of attention; none where it does not tell."""
    folder, kind = Path(experiment["baseline"]["pretrained"]), bert if task == CLASSIFICATION else marian
    if not folder.is_dir():
        raise UserError(f"experiments.{name}.baseline.pretrained: {kind.not_there(folder)}")
    return folder, kind.heads_of(folder)
