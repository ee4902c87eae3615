"""A real browser for tests of what a person sees: Debian's Chromium, without a network.

A page that prints an error, or asks for anything but itself, fails its test, whatever else the test looks at.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # in a container there is none to be had
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
OWN = ("file:", "blob:", "data:")  # what a page makes of itself

Opens = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Skips where there is no browser, but not in CI: there, a page nobody looked at is a failure."""
    path = next(filter(None, map(which, NAMES)), None)
    if path is None:
        missing = f"no browser to look with (none of {', '.join(NAMES)}); on Debian: apt-get install chromium"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Opens]:
    """`open_page(html, **context)` opens a text as a file, offline; complaints are raised when the test is over."""
    complaints: list[str] = []
    contexts = []

    def opened(html: str, **options: Any) -> Page:
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(chromium.new_context(offline=True, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)  # of a busy machine; nothing here is about time
        watch(page, complaints)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Opens]:
    """`visit(url, **context)` opens a page of a server, which may ask that server and nobody else.

    `expected` are beginnings of complaints that the test is about.
    """
    complaints: list[str] = []
    contexts = []
    excused: list[str] = []

    def opened(url: str, *, expected: tuple[str, ...] = (), **options: Any) -> Page:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        excused.extend(expected)
        watch(page, complaints, (*OWN, url))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [each for each in complaints if not each.startswith(tuple(excused))] == []


def watch(page: Page, complaints: list[str], own: tuple[str, ...] = OWN) -> None:
    """Keep what a page prints as an error or asks for."""
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}") if said.type != "log" else None)
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda asked: None if asked.url.startswith(own) else complaints.append(f"request: {asked.url}"))
