"""Draw what smaller models lose against how much faster they are, from tables of the scripts that measure both.

Run: PYTHONPATH=workflow python benchmarks/frontier.py frontier.png "CTranslate2=quality.tsv,speed.tsv" with two tables
of `exported.py` or `firefox_engine.py` for a panel, as quality takes a whole test set and speed a few lines in many
turns, or with one of `firefox_ways.py`, in which each way has a line. Loss is that of BLEU against the first model, and
speed the ratio to it, in batches where the table has both; models that are in one table are left out. A folder whose
name ends in `-10-minutes` was fine-tuned for so long; all others were not.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from heads.figures.style import new_figure, panel, save, styled

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
RATIOS = ("ratio_in_batches", "ratio")
LEAST, EACH = 18, 6
"""Area of a dot without training, and what a minute adds."""


def minutes_of(folder: str) -> float:
    """How long a model was fine-tuned, by its folder's name."""
    found = re.search(r"-(\d+)-minutes$", folder)
    return float(found[1]) if found else 0.0


def frontier(points: pd.DataFrame) -> Iterator[int]:
    """The models that no other one beats in speed without losing more, from the fastest on."""
    least = float("inf")
    for row in points.sort_values("speed", ascending=False).itertuples():
        if float(row.lost) < least:
            least = float(row.lost)
            yield int(row.Index)


def draw(axes: Axes, table: pd.DataFrame, colour: str, way: str = "", *, named: bool = True) -> None:
    """The models with their quality and speed, and the frontier as a line.

    way: written beneath the fastest model. named: whether models have their names beside them.
    """
    lost, minutes = table["BLEU"].iloc[0] - table["BLEU"], table["folder"].map(minutes_of)
    points = pd.DataFrame({"speed": table["speed"], "lost": lost, "minutes": minutes})
    best = points.loc[list(frontier(points))]
    axes.plot(best["speed"], best["lost"], color=colour, linewidth=0.9, drawstyle="steps-post", zorder=1)
    trained = minutes > 0
    for rows, face in ((points[~trained], "white"), (points[trained], colour)):
        areas = LEAST + EACH * rows["minutes"]
        axes.scatter(rows["speed"], rows["lost"], s=areas, color=face, edgecolor=colour, zorder=3)
    fastest = points.loc[points["speed"].idxmax()]
    place = (float(fastest["speed"]), float(fastest["lost"]))
    below = (0, -10 if named else -17)
    axes.annotate(way, place, below, textcoords="offset points", fontsize=6, ha="center", color=colour)
    # Names are above the frontier, so those of models that are not on it, or have the same name, are on the other side.
    above = set[str]()
    for row in points.sort_values("speed").itertuples() if named else ():
        words = re.sub(r"-\d+-minutes$", "", str(table["folder"][row.Index]))
        words = words if "/" in words else words.replace("-", " ")  # not the languages of firefox/en-pt
        first = row.Index in best.index and words not in above
        offset, side = ((6, 3), "left") if first or way else ((-6, -10), "right")
        above.add(words)
        place = (float(points["speed"][row.Index]), float(points["lost"][row.Index]))
        axes.annotate(words, place, offset, textcoords="offset points", fontsize=6, ha=side)


def panel_of(axes: Axes, tables: Sequence[pd.DataFrame], colours: Sequence[str]) -> None:
    """A panel from the tables of quality and of speed, or from one of both with a way in each row."""
    if len(tables) == 1:
        # The same models lose about the same in each way, so that one name stands for all of them.
        for number, ((way, own), colour) in enumerate(zip(tables[0].groupby("way", sort=False), colours, strict=False)):
            draw(axes, own.assign(speed=own["ratio"]).reset_index(), colour, str(way), named=number == 0)
    else:
        quality, speed = tables
        speed["speed"] = speed[next(name for name in RATIOS if name in speed)]
        draw(axes, quality[["folder", "BLEU"]].merge(speed[["folder", "speed"]], on="folder"), colours[0])
    axes.margins(0.18)
    axes.invert_yaxis()
    axes.set(xlabel="times as fast as the first model", ylabel="BLEU lost")


def main() -> None:
    """Draw and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="picture to write, .png; a .pdf is written beside it")
    parser.add_argument("panels", nargs="+", metavar="TITLE=QUALITY[,SPEED]")
    arguments = parser.parse_args()
    panels = [text.partition("=") for text in arguments.panels]
    with styled():
        title = "Quality lost against speed gained: hollow untrained, filled fine-tuned, larger for longer"
        figure, axes = new_figure(2.9, title, ncols=len(panels))
        for number, (each, (name, _, tables)) in enumerate(zip(axes[0], panels, strict=True)):
            read = [pd.read_csv(table, sep="\t") for table in tables.split(",")]
            panel_of(each, read, COLOURS[number % len(COLOURS) :] + COLOURS)
            panel(each, "abcdef"[number], name)
        save(figure, arguments.out.with_suffix(".pdf"), arguments.out)


if __name__ == "__main__":
    main()
