"""The hard-concrete distribution of a gate (Voita et al., Fig 6), and where an experiment's gates ended up."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from heads.config.trainings import HardConcrete
from heads.figures.style import FULL_WIDTH, first_seed, panel, seed_note
from heads.tables.labels import MINUS
from heads.tables.picking import pruned_by_gates
from heads.tables.reading import Frames

Floats = NDArray[np.float64]

LOG_ALPHAS = (-3.0, -1.0, 0.0, 1.0, 3.0)
FINENESS = 400
MASSES = {"P(0)": "#D55E00", "P(between)": "#DDDDDD", "P(1)": "#0072B2"}
MARGIN = 1.0


def masses(log_alpha: Floats, shape: HardConcrete) -> tuple[Floats, Floats]:
    """P(gate = 0) and P(gate = 1): how likely the stretched variable is below 0 or above 1 (Louizos et al. 2018)."""
    return _below(np.zeros(()), log_alpha, shape), 1 - _below(np.ones(()), log_alpha, shape)


def density(gate: Floats, log_alpha: float, shape: HardConcrete) -> Floats:
    """Density of a gate strictly between 0 and 1; its integral is 1 minus the two masses."""
    inner = (gate - shape.low) / (shape.high - shape.low)
    chance = _below(gate, np.array(log_alpha), shape)
    slope = shape.temperature / (inner * (1 - inner)) / (shape.high - shape.low)
    return np.asarray(slope * chance * (1 - chance))


def _below(gate: Floats, log_alpha: Floats, shape: HardConcrete) -> Floats:
    """P(the stretched variable is below `gate`), a logistic distribution in its logit."""
    logit = np.log((gate - shape.low) / (shape.high - gate))
    return np.asarray(1 / (1 + np.exp(log_alpha - shape.temperature * logit)))


def hard_concrete(frames: Frames, shape: HardConcrete, experiment: str) -> Figure:
    """A gate's density and its masses at 0 and 1 for several log alpha, and where trained gates ended up.

    Temperature and limits are those of the settings. The gates are those of both scopes that `pruned_by_gates` selects;
    with several seeds, the first is drawn and the title says so.
    """
    trained = pruned_by_gates(first_seed(frames["heads.tsv"]))["log_alpha"].to_numpy(float)
    title = f"Hard-concrete gates, experiment “{experiment}”{seed_note(frames['heads.tsv'])}"
    figure = plt.figure(figsize=(FULL_WIDTH, 2.9))
    figure.suptitle(title, x=0.01, ha="left")
    left, right = np.ravel(figure.subfigures(1, 2, width_ratios=[1.35, 1], squeeze=False))
    limits = f"(a) temperature {shape.temperature:g}, from {shape.low:g} to {shape.high:g}".replace("-", MINUS)
    # Above all three axes: as the title of the first, it would push the others aside.
    left.suptitle(limits, x=0.03, ha="left", fontsize=plt.rcParams["axes.titlesize"], fontweight="normal")
    _distributions(left.subplots(1, 3, width_ratios=[1, 3.2, 1]), shape)
    above, below = right.subplots(2, 1, height_ratios=[1, 1.7], sharex=True)
    _ended(above, below, trained, shape)
    return figure


def _distributions(axes: Any, shape: HardConcrete) -> None:
    zero, middle, one = axes
    colours = sns.color_palette("viridis", n_colors=len(LOG_ALPHAS))
    gates = (np.arange(FINENESS) + 0.5) / FINENESS
    ends = masses(np.array(LOG_ALPHAS), shape)
    for each, mass, name in zip((zero, one), ends, ("0", "1"), strict=True):
        each.bar(range(len(LOG_ALPHAS)), mass, color=colours, width=0.85)
        each.set(xticks=[], ylim=(0, 1), xlabel=f"gate = {name}")
        each.grid(visible=False, axis="x")
    for log_alpha, colour in zip(LOG_ALPHAS, colours, strict=True):
        label = f"log α = {log_alpha:g}".replace("-", MINUS)
        middle.plot(gates, density(gates, log_alpha, shape), color=colour, label=label)
    middle.set(xlim=(0, 1), ylim=(0, None), xlabel="0 < gate < 1")
    middle.set_ylabel("density", labelpad=1)
    middle.legend(loc="upper center", fontsize=5.5)
    zero.set_ylabel("probability")


def _ended(above: Axes, below: Axes, trained: Floats, shape: HardConcrete) -> None:
    seen = np.array([*trained, *LOG_ALPHAS, shape.log_alpha_init])
    log_alpha = np.linspace(seen.min() - MARGIN, seen.max() + MARGIN, FINENESS)
    zero, one = masses(log_alpha, shape)
    below.stackplot(log_alpha, zero, 1 - zero - one, one, colors=list(MASSES.values()), labels=list(MASSES))
    above.hist(trained, bins=np.linspace(log_alpha[0], log_alpha[-1], 41).tolist(), color="#444444")
    for each in (above, below):
        each.axvline(shape.log_alpha_init, color="black", linewidth=0.8, linestyle="--", label="initial value")
        each.grid(visible=False)
    above.set_ylabel("gates")
    panel(above, "b", f"where {len(trained)} trained gates ended")
    below.set(xlim=(log_alpha[0], log_alpha[-1]), ylim=(0, 1), xlabel="log α", ylabel="probability")
    below.legend(loc="center left", fontsize=5.5, frameon=True, framealpha=0.8, edgecolor="none")
