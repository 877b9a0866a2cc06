"""Made-up results turned into the page by its own command, with the tables beside it, so that tests can read both."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from fake_labels import write_told
from fake_results import World, write_results
from heads.__main__ import main
from heads.base.files import read_tsv, read_yaml
from heads.config.settings import resolve
from heads.explore.needs import EXPLORED, TABLES
from heads.tables.catalogue import TABLES as ALL_TABLES

ROOT = Path(__file__).parent.parent
SEVERAL, ONE, TOLD = "twice", "once", "told"
"""Experiments of two seeds, of one without trees, and one that classifies, whose sizes differ."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no browser here: apt-get install chromium")
WIDE, NARROW = (1280, 900), (380, 800)
Opened = Callable[..., Page]
"""Opens the page at an address, with a given window size, in light or dark mode."""


@dataclass(frozen=True)
class Explored:
    """The page, the rows of its tables by name, and the folder of all results."""

    page: Path
    tables: dict[str, list[dict[str, str]]]
    results: Path


def gates_of(*experiments: str) -> str:
    """The gates argument of the page: the demo's gate distribution for each experiment."""
    distribution = resolve(read_yaml(ROOT / "config.yaml"))["demo"].written["gates"]["hard_concrete"]
    return json.dumps(dict.fromkeys(experiments, distribution))


def explored(results: Path) -> Explored:
    """Make up three experiments and run every command that leads to the page."""
    runs = write_results(results / SEVERAL, World(layers=2, heads=3, lams=("0.01", "0.1"), seeds=(1, 2)))
    runs += write_results(results / ONE, World(layers=3, heads=2, lams=("0.03",), trees=False))
    runs += write_told(results / TOLD, World(layers=2, heads=4, lams=("0.03", "0.1")))
    tables = {name: results / "tables" / f"table_{name}.tsv" for name in TABLES}
    for name, path in tables.items():
        read = [str(run) for run in runs if ALL_TABLES[name].need.inputs([f"x/{run.relative_to(results)}"])]
        assert main(["table", "--name", name, "--runs", *read, "--out", str(path)]) == 0
    drawn = (f"{SEVERAL}/measures", "dependency_scores", f"{TOLD}/michel_fig1")
    figures = [results / "figures" / f"{name}.png" for name in drawn]
    page = results / "explore.html"
    shown = [str(run) for run in runs if EXPLORED.inputs([f"x/{run.relative_to(results)}"])]
    words = ["--tables", *map(str, tables.values()), "--figures", *map(str, figures)]
    words += ["--gates", gates_of(SEVERAL, ONE, TOLD), "--out", str(page)]
    assert main(["explore", "--runs", *shown, *words]) == 0
    return Explored(page, {name: read_tsv(path) for name, path in tables.items()}, results)


def data_of(page: Path | str) -> list[dict[str, Any]]:
    """The data of every experiment in a page, given as a file or as text."""
    html = page if isinstance(page, str) else page.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found
    experiments: list[dict[str, Any]] = json.loads(found[1])["experiments"]
    return experiments


def head_of(row: dict[str, str]) -> str:
    """The head that a row of a table is about, as squares are named."""
    return f"{row['attention']}.{row['layer']}.{row['head']}"


def told(page: Page, selector: str, attribute: str) -> dict[str, str]:
    """An attribute of every square below an element, by head."""
    squares = page.locator(f"{selector} [data-head]").evaluate_all(
        f"all => all.map(one => [one.dataset.head, one.getAttribute('{attribute}')])"
    )
    return dict(squares)


def lost(page: Page, selector: str) -> list[str]:
    """The heads below an element that are hatched."""
    heads: list[str] = page.locator(f"{selector} .lost").evaluate_all("all => all.map(one => one.dataset.head)")
    return heads


def shades(page: Page, selector: str) -> dict[str, float]:
    """How bright every square below an element is, from 0 to 255, by head."""
    colours = page.locator(f"{selector} [data-head]").evaluate_all(
        "all => all.map(one => [one.dataset.head, getComputedStyle(one).backgroundColor])"
    )
    parts = {head: [int(part) for part in colour[4:-1].split(",")] for head, colour in colours}
    return {head: 0.21 * red + 0.72 * green + 0.07 * blue for head, (red, green, blue) in parts.items()}


def weights_shown(page: Page, head: str) -> Any:
    """The weights of a panel's map, in the order of its cells."""
    cells = page.locator(f'[data-panel="{head}"] rect.cell')
    return np.array(cells.evaluate_all("all => all.map(one => Number(one.dataset.weight))"))
