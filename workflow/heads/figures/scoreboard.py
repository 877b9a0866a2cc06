"""The scoreboard as a figure: for each claim, the paper's number and a coloured cell for each experiment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from textwrap import wrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from heads.base.bootstrap import SIGNIFICANT
from heads.base.names import OURS
from heads.figures.style import FULL_WIDTH
from heads.tables.claims import experiments_of, scoreboard_table
from heads.tables.curves import NOT_SETTLED
from heads.tables.labels import MINUS
from heads.tables.reading import Frames
from heads.tables.verdicts import TOO_FEW, TOO_WEAK


@dataclass(frozen=True)
class Look:
    """How a verdict is shown: its cell colour, sign, meaning and text colour."""

    colour: str
    sign: str
    meaning: str
    ink: str = "#000000"


LOOKS = {
    "yes": Look("#0072B2", "✓", "the claim holds here", "#FFFFFF"),
    "no": Look("#E69F00", "✗", "it does not"),
    "unclear": Look("#F6E7B4", "?", f"unclear: the interval contains the limit, or p is not below {SIGNIFICANT}"),
    TOO_FEW: Look("#B5D9F0", "(✓)", "too few heads to tell: chance alone would meet it more than 1 time in 20"),
    TOO_WEAK: Look("#DCC6E0", "∅", "model too weak to tell: it has little to lose"),
    NOT_SETTLED: Look("#D4D4D4", "…", "not settled: training had not levelled off"),
    "": Look("#FFFFFF", MINUS, "not measured"),
}
"""By verdict, in legend order. Lightness and sign distinguish them without colour."""

OTHERWISE = Look("#FFFFFF", "*", "of these another reading of relevance says otherwise: its sums, absolute, or z⁺")
"""The mark beside a verdict that depends on how relevance is read."""

CONDITIONS = {"above": ">", "at least": "≥", "at most": "≤", "all": "all"}

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>What the papers claim, and what was found</title>
<style>
body {{font: 14px sans-serif; margin: 1em}} table {{border-collapse: collapse}} ul {{list-style: none; padding: 0}}
th, td {{padding: 3px 6px; border: 1px solid #FFFFFF; text-align: left; white-space: nowrap}}
th {{position: sticky; top: 0; background: #FFFFFF; vertical-align: bottom; white-space: normal}}
td:first-child {{white-space: normal; min-width: 18em}} li {{margin: 2px}} li span {{padding: 2px 6px}}
.topic td {{border-top: 1px solid #C8C8C8; padding-top: 10px; font-weight: bold}}
{colours}</style>
<h1>What the papers claim, and what was found</h1>
<ul>{legend}</ul>
<table>
{lines}
</table>
</html>
"""
"""The page around legend and rows."""

ROW, TOPIC_WIDTH, NAME_WIDTH, NUMBER_WIDTH = 0.132, 1.12, 2.72, 0.56
"""Row height and column widths in inches; NUMBER_WIDTH is for the paper's number and for the condition."""
CELL_WIDTH, LETTER, MARGIN = 0.72, 0.054, 0.07
"""In inches: the least width of a cell, the width of a letter of small text, and the margin at the sides."""
TOPIC_LETTERS, HEADER_LETTERS = 20, 14
SMALL: dict[str, Any] = {"fontsize": 6.5, "va": "center_baseline"}
RULE = "#C8C8C8"


def scoreboard(frames: Frames, *papers_and_names: Any) -> Figure:
    """The table of `heads.tables.claims` at a glance, and the number of claims with each verdict.

    One page, which grows in width with the experiments. papers_and_names: the papers' claims, then the names of all
    experiments.
    """
    *papers, names = papers_and_names
    seeds = frames["model.json"].groupby("experiment")["seed"].nunique()
    return drawn(scoreboard_table(frames, *papers), seeds, names)


def drawn(board: pd.DataFrame, seeds: Mapping[str, int], names: str = "") -> Figure:
    """Draw a scoreboard. seeds: the number of seeds of each experiment."""
    sheet = Sheet(board, seeds)
    figure = plt.figure(figsize=(sheet.width, sheet.height))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, sheet.width)
    axes.set_ylim(sheet.height, 0)
    of = f"experiment “{names}”" if len(sheet.experiments) == 1 else "each experiment"
    title = f"What the papers claim, and what was found in {of}"
    figure.suptitle(title, x=MARGIN / sheet.width, y=1 - 0.09 / sheet.height, ha="left", va="top")
    sheet.draw(axes)
    return figure


class Sheet:
    """The layout of the page, in inches from the top left."""

    def __init__(self, board: pd.DataFrame, seeds: Mapping[str, int]) -> None:
        self.board, self.experiments = board, experiments_of(board)
        self.headers = [
            [*wrap(name, HEADER_LETTERS), *([f"{seeds[name]} seeds"] if seeds[name] > 1 else [])]
            for name in self.experiments
        ]
        longest = max(len(line) for header in self.headers for line in header)
        self.cell = max(CELL_WIDTH, longest * LETTER + 0.06)
        cells = self.cell * len(self.experiments)
        beside = 2 * MARGIN + TOPIC_WIDTH + 2 * NUMBER_WIDTH + cells
        self.width = max(FULL_WIDTH, beside + NAME_WIDTH)
        self.cells_from = self.width - MARGIN - cells
        lines = 3 + max(len(header) for header in self.headers) + len(board) + 2.2 * board["study"].nunique()
        self.height = ROW * (lines + len(LOOKS) + 3)

    def draw(self, axes: Axes) -> None:
        """Draw the whole page."""
        top = ROW * (2.5 + max(len(header) for header in self.headers))
        self._headers(axes, top)
        for study, claims in self.board.groupby("study", sort=False):
            axes.text(MARGIN, top + 1.3 * ROW, str(study), fontsize=7.5, fontweight="bold", va="center_baseline")
            top += 2.2 * ROW
            for topic, rows in claims.groupby("topic", sort=False):
                self._topic(axes, top, str(topic), rows)
                top += ROW * len(rows)
        self._counts(axes, top + 1.2 * ROW)

    def _headers(self, axes: Axes, bottom: float) -> None:
        _lines(axes, self.cells_from - 1.5 * NUMBER_WIDTH, bottom, ["paper"])
        _lines(axes, self.cells_from - 0.5 * NUMBER_WIDTH, bottom, ["holds if"])
        for place, header in zip(self._middles(), self.headers, strict=True):
            _lines(axes, place, bottom, header, fontweight="bold")

    def _middles(self) -> Iterator[float]:
        return (self.cells_from + (number + 0.5) * self.cell for number in range(len(self.experiments)))

    def _topic(self, axes: Axes, top: float, topic: str, rows: pd.DataFrame) -> None:
        axes.plot([MARGIN, self.width - MARGIN], [top, top], color=RULE, linewidth=0.6, zorder=1)
        for number, line in enumerate(wrap(topic, TOPIC_LETTERS)):
            axes.text(MARGIN, top + (number + 0.5) * ROW, line, color="#444444", fontstyle="italic", **SMALL)
        for number, row in enumerate(rows.to_dict("records")):
            middle = top + (number + 0.5) * ROW
            axes.text(MARGIN + TOPIC_WIDTH, middle, str(row["name"]), **SMALL)
            number_of, condition = stated_in(row)
            axes.text(self.cells_from - 1.5 * NUMBER_WIDTH, middle, number_of, ha="center", **SMALL)
            axes.text(self.cells_from - 0.5 * NUMBER_WIDTH, middle, condition, ha="center", color="#666666", **SMALL)
            for experiment, place in zip(self.experiments, self._middles(), strict=True):
                self._cell(axes, place, middle, *found_in(row, experiment))

    def _cell(self, axes: Axes, x: float, y: float, look: Look, text: str) -> None:
        corner, size = (x - 0.5 * self.cell + 0.02, y - 0.46 * ROW), (self.cell - 0.04, 0.92 * ROW)
        axes.add_patch(Rectangle(corner, *size, facecolor=look.colour, edgecolor="#FFFFFF", linewidth=0))
        axes.text(corner[0] + 0.12, y, look.sign, ha="center", color=look.ink, **SMALL)
        axes.text(corner[0] + size[0] - 0.05, y, text, ha="right", color=look.ink, **SMALL)

    def _counts(self, axes: Axes, top: float) -> None:
        """Write how many of the papers' claims have each verdict, as a legend, and how many each study has.

        Below them: how many of these verdicts depend on the reading of relevance.
        """
        claims = self.board[self.board["study"] != OURS]
        axes.plot([MARGIN, self.width - MARGIN], [top, top], color="#444444", linewidth=0.8)
        for number, (verdict, look) in enumerate([*LOOKS.items(), ("", OTHERWISE)]):
            middle = top + (number + 0.8) * ROW
            axes.text(MARGIN + TOPIC_WIDTH, middle, look.meaning, **SMALL)
            for experiment, place in zip(self.experiments, self._middles(), strict=True):
                count = (claims[f"verdict_{experiment}"].fillna("") == verdict).sum()
                if look is OTHERWISE:
                    count = (claims[f"other_readings_{experiment}"] != "").sum()
                self._cell(axes, place, middle, look, str(count))
        studies = claims["study"].value_counts(sort=False)
        ours = len(self.board) - len(claims)
        lines = [f"of {len(claims)} claims:"]
        lines += [f"{count} of {str(study).replace(' 2019', '')}" for study, count in studies.items()]
        lines += [f"without {ours} of ours"] if ours else []
        for number, line in enumerate(lines):
            axes.text(MARGIN, top + (number + 0.8) * ROW, line, fontstyle="italic", color="#444444", **SMALL)


def stated_in(row: Mapping[str, Any]) -> tuple[str, str]:
    """The paper's number of a claim, and the condition under which the claim holds."""
    return figure_of(row["paper"], row["paper_of"]), f"{CONDITIONS[row['holds_if']]} {figure_of(row['limit'])}".strip()


def found_in(row: Mapping[str, Any], experiment: str) -> tuple[Look, str]:
    """How the verdict of a claim in an experiment is shown, and our number."""
    look = LOOKS[row[f"verdict_{experiment}"] or ""]
    found = figure_of(row[f"ours_{experiment}"], row[f"of_{experiment}"]) if row[f"verdict_{experiment}"] else ""
    return replace(look, sign=look.sign + OTHERWISE.sign) if row[f"other_readings_{experiment}"] else look, found


def page_of(board: pd.DataFrame) -> str:
    """A scoreboard as one HTML page that needs no network; the words of a claim are shown under the pointer."""
    experiments = experiments_of(board)
    headers = "".join(f"<th>{escape(name)}</th>" for name in experiments)
    lines = [f"<tr><th>claim</th><th>paper</th><th>holds if</th>{headers}</tr>"]
    for (study, topic), claims in board.groupby(["study", "topic"], sort=False):
        title = escape(f"{study}: {topic}")
        lines.append(f'<tr class="topic"><td colspan="{3 + len(experiments)}">{title}</td></tr>')
        for row in claims.to_dict("records"):
            words = escape(f"{row['claim']}; {row['measure']}; {row['source']}")
            paper, condition = map(escape, stated_in(row))
            name = f'<td title="{words}">{escape(row["name"])}</td><td>{paper}</td><td>{condition}</td>'
            lines.append(f"<tr>{name}{''.join(_cell_of(*found_in(row, one)) for one in experiments)}</tr>")
    looks = [*LOOKS.values(), OTHERWISE]
    legend = "".join(f"<li>{_cell_of(look, look.meaning, 'span')}</li>" for look in looks)
    colours = "".join(f".{_class_of(look)} {{background: {look.colour}; color: {look.ink}}}\n" for look in looks)
    return PAGE.format(legend=legend, colours=colours, lines="\n".join(lines))


def _class_of(look: Look) -> str:
    return f"c{look.colour.removeprefix('#')}"


def _cell_of(look: Look, text: str, tag: str = "td") -> str:
    return f'<{tag} class="{_class_of(look)}">{look.sign} {escape(text)}</{tag}>'


def _lines(axes: Axes, x: float, bottom: float, lines: list[str], **style: Any) -> None:
    for number, line in enumerate(reversed(lines)):
        axes.text(x, bottom - (number + 0.5) * ROW, line, ha="center", **style, **SMALL)


def figure_of(number: float, of: float = np.nan) -> str:
    """A number in a few characters: as an integer or with two decimals, or "3 of 8" for a count."""
    if np.isnan(number):
        return ""
    if not np.isnan(of):
        return f"{number:.3g} of {of:.3g}"
    text = f"{number:.0f}" if float(number).is_integer() else f"{number:.2f}"
    return text.replace("-", MINUS)
