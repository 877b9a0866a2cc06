"""Any figure drawn from the folders of made-up runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heads.base.names import TRANSLATION
from heads.base.runs import run_of
from heads.cli.figure import FIGURES
from heads.config.trainings import HardConcrete
from heads.figures.needs import FROM_SETTINGS, NEEDS
from heads.tables.reading import load_reference, load_runs

OF_TRANSLATORS = [name for name in FIGURES if TRANSLATION in NEEDS[name].tasks]


def draw(name: str, runs: Sequence[Path]) -> Figure:
    """The figure, as its command draws it."""
    others: list[Any] = [load_reference(file) for file in NEEDS[name].reference]
    others += [HardConcrete()] if name in FROM_SETTINGS else []
    return FIGURES[name](load_runs(NEEDS[name], runs), *others, run_of(runs[0])[0])


def panels_of(figure: Figure) -> list[Axes]:
    """The panels that are seen, each of which must show something or say why not."""
    seen = [axes for axes in figure.axes if axes.get_visible() and (axes.axison or axes.texts)]
    assert seen
    assert all(axes.has_data() or axes.texts for axes in seen)
    return seen
