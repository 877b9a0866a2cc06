"""The folder of a model of others that an experiment starts from: its files, and whether it has enough heads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heads.base import bert, marian
from heads.base.files import UserError
from heads.base.names import CLASSIFICATION
from heads.config.checks import check_heads


def pretrained_files(name: str, experiment: Mapping[str, Any], task: str) -> list[str]:
    """The files of the folder that a resolved experiment's baseline is taken from.

    Raises UserError if it is none, and if its model has fewer heads than the experiment would keep.
    """
    where, folder = f"experiments.{name}", Path(experiment["baseline"]["pretrained"])
    kind = bert if task == CLASSIFICATION else marian
    if not folder.is_dir():
        raise UserError(f"{where}.baseline.pretrained: {kind.not_there(folder)}")
    if heads := kind.heads_of(folder):
        check_heads(where, experiment, heads)
    return [str(path) for path in kind.files_of(folder)]
