"""Any figure drawn from the folders of made-up runs, or from frames made by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heads.base.modules import named_function
from heads.base.names import TRANSLATION
from heads.base.runs import run_of
from heads.config.trainings import HardConcrete
from heads.figures.style import styled
from heads.tables.catalogue import FIGURES
from heads.tables.reading import Frames, load_reference, load_runs

OF_TRANSLATORS = [name for name in FIGURES if TRANSLATION in FIGURES[name].need.tasks]


def draw(name: str, read: Sequence[Path] | Frames, experiment: str = "x", shape: HardConcrete | None = None) -> Figure:
    """The figure in the project's style, as its command draws it, to be read back but not to be rendered."""
    figure = FIGURES[name]
    others: list[Any] = [load_reference(file) for file in figure.need.reference]
    others += [shape or HardConcrete()] if figure.gates else []
    with styled():
        function: Callable[..., Figure] = named_function(figure.function)
        if isinstance(read, dict):
            return function(read, *others, experiment)
        return function(load_runs(figure.need, read), *others, run_of(read[0])[0])


def lines_of(axes: Axes) -> dict[str, list[list[float]]]:
    """The points of each line by its label."""
    return {str(line.get_label()): np.asarray(line.get_xydata(), float).tolist() for line in axes.lines}


def panels_of(figure: Figure) -> list[Axes]:
    """The panels that are seen, each of which must show something or say why not."""
    seen = [axes for axes in figure.axes if axes.get_visible() and (axes.axison or axes.texts)]
    assert seen
    assert all(axes.has_data() or axes.texts for axes in seen)
    return seen
