"""The page and a browser without a network, for all tests that open the page."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from explored_page import CHROMIUM, WIDE, Explored, Opened, data_of, explored


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    return explored(tmp_path_factory.mktemp("explored") / "results")


@pytest.fixture(scope="session")
def data(made: Explored) -> dict[str, dict[str, Any]]:
    """The data on the page by experiment, in the page's order."""
    return {one["name"]: one for one in data_of(made.page)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Without a sandbox, because root may not use one.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(made: Explored, browser: Browser) -> Iterator[Opened]:
    """A function that opens the page at an address, offline; at the end, any error or network request is a failure."""
    wrong: list[str] = []
    contexts = []

    def open_page(address: str = "", size: tuple[int, int] = WIDE, scheme: Any = "light") -> Page:
        viewport: Any = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
        page.on("request", lambda asked: None if asked.url.startswith(start) else wrong.append(asked.url))
        page.goto(f"{start}{address}")
        return page

    start = made.page.resolve().as_uri()
    yield open_page
    for context in contexts:
        context.close()
    assert not wrong
