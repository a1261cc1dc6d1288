"""A real Chromium on the site of the small book: from the disk, and under a sub-path over http."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from generator.publish.site import build
from tests.publish.small import make_book

SUB_PATH = "some/where"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the site at SUB_PATH."""
    root = tmp_path_factory.mktemp("www")
    book = make_book(tmp_path_factory.mktemp("book"))
    build(book, root / SUB_PATH, lambda _line: None)
    return root


@pytest.fixture(scope="session")
def site(folder: Path) -> Path:
    return folder / SUB_PATH


@pytest.fixture(scope="session")
def browser(chromium: Path, chromium_arguments: list[str]) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=chromium_arguments)
        yield started
        started.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[str]:
    """The address of the site over http, under a sub-path."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/{SUB_PATH}/"
        http.shutdown()
        thread.join()


@pytest.fixture(params=["file", "http"])
def address(request: pytest.FixtureRequest, site: Path) -> str:
    """Where the site's pages are, with a slash at the end."""
    if request.param == "file":
        return f"file://{quote(str(site.resolve()))}/"
    found: str = request.getfixturevalue("server")
    return found


@dataclass
class Reader:
    """Someone who reads: a page, and everything that went wrong or was asked for on the way."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def fail(self, url: str, why: str) -> None:
        """Note a request that came to nothing; one given up because the reader went on is none."""
        if why != "net::ERR_ABORTED":
            self.complaints.append(f"{url}: {why}")


@contextmanager
def reader_of(browser: Browser, **options: Any) -> Iterator[Reader]:
    context: BrowserContext = browser.new_context(**options)
    found = Reader(context.new_page())
    found.page.on(
        "console", lambda m: found.complaints.append(m.text) if m.type in ("error", "warning") else None
    )
    found.page.on("pageerror", lambda e: found.complaints.append(str(e)))
    found.page.on("request", lambda r: found.requests.append(r.url))
    found.page.on("requestfailed", lambda r: found.fail(r.url, str(r.failure)))
    found.page.on("response", lambda r: found.fail(r.url, str(r.status)) if r.status >= 400 else None)
    yield found
    context.close()


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 900}) as found:
        yield found
        assert not found.complaints
