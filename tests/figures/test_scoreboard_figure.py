"""The scoreboard as a picture: cells, colours and counts, read back from the page, and no overlapping text."""

from collections import Counter
from itertools import cycle, islice
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Rectangle

from heads.figures import scoreboard as drawing
from heads.figures.scoreboard import LOOKS, figure_of, page_of
from heads.figures.style import styled
from heads.tables.catalogue import TABLES
from heads.tables.claims import STATED
from heads.tables.curves import NOT_SETTLED
from heads.tables.reading import load_reference
from heads.tables.verdicts import TOO_FEW, TOO_WEAK, Finding, holds
from slow_ones import slow_but

VERDICTS = ("yes", "no", "unclear", TOO_FEW, TOO_WEAK, NOT_SETTLED, "")
PAPERS = [load_reference(name) for name in TABLES["scoreboard"].need.reference]
MANY = ("demo", "opensubtitles-en-ru", "wmt-en-de", "anamewithoutanyhyphen")


def board_of(experiments: tuple[str, ...]) -> pd.DataFrame:
    """Every verdict in turn, starting with a different one in each column; numbers of up to four digits, and counts."""
    board = pd.concat(PAPERS, ignore_index=True).rename(columns={"condition": "holds_if"})
    board = board.assign(rule="", metric="bleu")[list(STATED)]
    for number, experiment in enumerate(experiments):
        values = [-10.0 * number - row - 0.253 for row in range(len(board))]
        board[f"ours_{experiment}"] = [row % 49 if row % 5 == 0 else v for row, v in enumerate(values)]
        board[f"of_{experiment}"] = [48.0 if row % 5 == 0 else np.nan for row in range(len(board))]
        board[f"verdict_{experiment}"] = list(islice(cycle(VERDICTS), number, number + len(board)))
        # Often enough to mark each verdict somewhere.
        board[f"other_readings_{experiment}"] = ["absolute: yes" * (row % 7 == 0) for row in range(len(board))]
    return board


def page(monkeypatch: pytest.MonkeyPatch, board: pd.DataFrame, seeds: int = 1) -> Axes:
    """The page of a board."""
    names = [name.removeprefix("ours_") for name in board if name.startswith("ours_")]
    frame = pd.DataFrame([{"experiment": name, "seed": seed} for name in names for seed in range(seeds)])
    monkeypatch.setattr(drawing, "scoreboard_table", lambda frames, *papers: board)
    with styled():
        figure = drawing.scoreboard({"model.json": frame}, *PAPERS, ", ".join(names))
        (axes,) = figure.axes
        return axes


def rows_of(axes: Axes) -> list[list[str]]:
    """The texts of each line of the page, from top to bottom and left to right."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for text in axes.texts:
        x, y = text.get_position()
        lines.setdefault(round(float(y), 6), []).append((float(x), text.get_text()))
    return [[word for _, word in sorted(words)] for _, words in sorted(lines.items())]


def test_the_page_has_the_lines_of_the_picture_with_a_colour_for_each_verdict() -> None:
    board = board_of(MANY[:3])
    board.loc[4, "name"] = "a < b & c"
    table = ElementTree.fromstring(
        page_of(board).partition("<table>")[2].partition("</table>")[0].join(("<t>", "</t>"))
    )
    rows = [row for row in table if row.get("class") != "topic"][1:]
    assert [row[0].text for row in rows] == board["name"].tolist()
    colours = {"yes": "0072B2", "no": "E69F00", "unclear": "F6E7B4", "": "FFFFFF"}
    for row, line in zip(rows, board.to_dict("records"), strict=True):
        assert [cell.text or "" for cell in row[1:3]] == [*drawing.stated_in(line)]
        for cell, name in zip(row[3:], MANY[:3], strict=True):
            sign, _, number = str(cell.text).partition(" ")
            verdict = line[f"verdict_{name}"]
            assert sign == LOOKS[verdict].sign + "*" * bool(line[f"other_readings_{name}"])
            assert number == (figure_of(line[f"ours_{name}"], line[f"of_{name}"]) if verdict else "")
            assert cell.get("class") == f"c{colours.get(verdict, LOOKS[verdict].colour[1:])}"
    topics = [row[0].text for row in table if row.get("class") == "topic"]
    assert topics == [
        f"{study}: {topic}" for study, topic in dict.fromkeys(zip(board["study"], board["topic"], strict=True))
    ]


def test_every_claim_stands_with_the_papers_number_its_condition_and_a_cell_an_experiment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = board_of(MANY[:2])
    lines = rows_of(page(monkeypatch, board))
    names = board["name"].tolist()
    found = [line[line.index(name) :] for line in lines for name in line if name in names]
    assert [line[0] for line in found] == names
    signs = dict(zip(VERDICTS, ("✓", "✗", "?", "(✓)", "∅", "…", "−"), strict=True))
    words = {"at least": "≥ ", "at most": "≤ ", "above": "> ", "all": "all"}
    for line, row in zip(found, board.to_dict("records"), strict=True):
        paper = figure_of(row["paper"], row["paper_of"])
        expected = [row["name"], paper, words[row["holds_if"]] + figure_of(row["limit"])]
        for name in MANY[:2]:
            verdict = row[f"verdict_{name}"]
            number = figure_of(row[f"ours_{name}"], row[f"of_{name}"])
            mark = "*" if row[f"other_readings_{name}"] else ""
            expected += [signs[verdict] + mark, number if verdict else ""]
        assert line == expected


def test_numbers_are_written_short() -> None:
    found = [figure_of(*pair) for pair in ((np.nan,), (3.0,), (-2.456,), (2.0, 3.0), (7 / 3, 3.0), (np.nan, 4.0))]
    assert found == ["", "3", "−2.46", "2 of 3", "2.33 of 3", ""]


def cells(axes: Axes) -> list[tuple[float, float, str]]:
    """The middle of each cell, from the left and from the top, and its colour."""
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    found = [(*box.get_xy(), box.get_width(), box.get_height(), to_hex(box.get_facecolor()).upper()) for box in boxes]
    return [(x + width / 2, y + height / 2, colour) for x, y, width, height, colour in found]


def test_the_colour_of_a_cell_is_its_verdict_and_the_last_rows_count_them(monkeypatch: pytest.MonkeyPatch) -> None:
    board = board_of(MANY)
    board[f"verdict_{MANY[2]}"] = ["yes"] * 50 + ["no"] * 16
    axes = page(monkeypatch, board)
    columns = sorted({round(x, 4) for x, _, _ in cells(axes)})
    assert len(columns) == len(MANY)
    for experiment, column in zip(MANY, columns, strict=True):
        colours = [colour for x, _, colour in sorted(cells(axes), key=lambda cell: cell[1]) if round(x, 4) == column]
        verdicts = board[f"verdict_{experiment}"].tolist()
        assert colours == [*(LOOKS[verdict].colour for verdict in [*verdicts, *VERDICTS]), "#FFFFFF"]
    *foot, marked = rows_of(axes)[-len(VERDICTS) - 1 :]
    assert marked[0].startswith("of these another reading of relevance says otherwise")
    assert marked[1:] == ["*", "10"] * len(MANY)
    studies = ["of 64 claims:", "39 of Voita et al.", "15 of Michel et al.", "3 of Garg et al.",
               "7 of Michel et al., BERT", "without 2 of ours"]  # fmt: skip
    for line, words in zip(foot, studies, strict=False):
        line.remove(words)
    assert [line[0] for line in foot] == [LOOKS[verdict].meaning for verdict in VERDICTS]
    for number, experiment in enumerate(MANY):
        count = Counter(board[board["study"] != "ours"][f"verdict_{experiment}"])
        assert [line[2 + 2 * number] for line in foot] == [str(count[verdict]) for verdict in VERDICTS]


def test_every_verdict_has_a_look_that_grey_or_a_sign_tells_from_the_others() -> None:
    assert tuple(LOOKS) == VERDICTS
    assert len({look.sign for look in LOOKS.values()}) == len({look.colour for look in LOOKS.values()}) == len(LOOKS)
    grey = {name: np.dot(to_rgb(look.colour), (0.299, 0.587, 0.114)) for name, look in LOOKS.items()}
    sure = [grey["yes"], grey["no"], grey["unclear"], grey[""]]
    assert min(np.diff(sure)) > 0.08 and sure == sorted(sure)
    for look in LOOKS.values():
        ink, paper = (np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)) for colour in (look.ink, look.colour))
        assert abs(ink - paper) > 0.5, look


BOARDS = [(MANY[:1], 1), (MANY, 3), (tuple(f"e{n}" for n in range(9)), 1)]


@pytest.mark.parametrize(("experiments", "seeds"), slow_but(BOARDS[1:2], BOARDS))
def test_nothing_is_cut_off_and_no_text_lies_on_another(
    experiments: tuple[str, ...], seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = page(monkeypatch, board_of(experiments), seeds)
    figure = axes.get_figure(root=True)
    assert figure is not None
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for text in [*axes.texts, *figure.texts] if text.get_text()]
    assert len(texts) > 200 and min(float(text.get_fontsize()) for text in texts) >= 6.5
    boxes = np.array([text.get_window_extent(renderer).extents for text in texts])
    low, high = boxes[:, :2], boxes[:, 2:]
    assert (low >= 0).all() and (high <= figure.get_size_inches() * figure.dpi).all()
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    # Lines of text overlap each other's ascenders by less than a point.
    over = (shared[..., 0] > 0) & (shared[..., 1] > figure.dpi / 72) & ~np.eye(len(texts), dtype=bool)
    assert [(texts[one].get_text(), texts[other].get_text()) for one, other in np.argwhere(over)] == []
    headers = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert ("3 seeds" in headers) == (seeds == 3)


def test_every_condition_of_the_claims_has_a_sign_and_means_what_decides() -> None:
    assert {*pd.concat(PAPERS)["condition"]} == {*drawing.CONDITIONS}
    at_limit = {sign: holds(Finding(1.0, 1.0), condition, 1.0) for condition, sign in drawing.CONDITIONS.items()}
    assert at_limit == {">": "no", "≥": "yes", "≤": "yes", "all": "yes"}
    assert holds(Finding(2.0), next(c for c, sign in drawing.CONDITIONS.items() if sign == "≤"), 1.0) == "no"
