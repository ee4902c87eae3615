"""A real browser for tests of pages: Debian's Chromium, without a network.

A test fails if its page logs an error or requests anything but itself.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # containers have none
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
LOCAL = ("file:", "blob:", "data:")
TIMEOUT = 60_000  # milliseconds; generous for a busy machine

Opens = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Skip without a browser, but fail in CI."""
    path = next(filter(None, map(which, NAMES)), None)
    if path is None:
        missing = f"no browser found (none of {', '.join(NAMES)}); on Debian: apt-get install chromium"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Opens]:
    """`open_page(html, **context)` opens a text as a file, offline; problems fail the test at its end."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def open_html(html: str, **options: Any) -> Page:
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(chromium.new_context(offline=True, **options))
        return _open(contexts[-1], path.as_uri(), problems, LOCAL)

    yield open_html
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Opens]:
    """`visit(url, **context)` opens a page that may request only its own server.

    Problems that start with one of `expected` do not fail the test.
    """
    problems: list[str] = []
    contexts: list[BrowserContext] = []
    ignored: list[str] = []

    def open_url(url: str, *, expected: tuple[str, ...] = (), **options: Any) -> Page:
        contexts.append(chromium.new_context(**options))
        ignored.extend(expected)
        return _open(contexts[-1], url, problems, (*LOCAL, url))

    yield open_url
    for context in contexts:
        context.close()
    assert [problem for problem in problems if not problem.startswith(tuple(ignored))] == []


def _open(context: BrowserContext, url: str, problems: list[str], allowed: tuple[str, ...]) -> Page:
    page = context.new_page()
    page.set_default_timeout(TIMEOUT)
    watch(page, problems, allowed)
    page.goto(url)
    return page


def watch(page: Page, problems: list[str], allowed: tuple[str, ...] = LOCAL) -> None:
    """Record errors, dialogs and requests to other addresses."""
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda message: message.type == "log" or problems.append(f"{message.type}: {message.text}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda sent: sent.url.startswith(allowed) or problems.append(f"request: {sent.url}"))
