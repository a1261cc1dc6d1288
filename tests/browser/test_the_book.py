"""The book of this repository, all of it, as a browser sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from generator.book import read_book
from generator.publish.site import build
from tests.browser.conftest import reader_of
from tests.publish.html_pages import pages

#: Pages of each sort, and of runs those with most on them; all the others differ in their data only.
LOOKED_AT = (
    "index.html",
    "404.html",
    "definitions/index.html",
    "validation/index.html",
    "runs/index.html",
    "runs/3d/index.html",
    "runs/collectives/index.html",
    "runs/link-2gbit-nodes/index.html",
    "one-f-one-b/index.html",
    "read-a-step/index.html",
)


@pytest.fixture(scope="session")
def book_site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("book-site") / "site"
    build(read_book(repository), out, lambda _line: None)
    return out


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_complains_leaves_the_folder_or_is_wider_than_the_window(
    browser: Browser, book_site: Path, width: int
) -> None:
    address = f"file://{book_site}/"
    wide = []
    with reader_of(browser, viewport={"width": width, "height": 900}) as reader:
        for page in pages(book_site):
            reader.page.goto(f"file://{page}")
            if reader.page.evaluate("document.documentElement.scrollWidth") > width:
                wide.append(page.relative_to(book_site).as_posix())
    assert wide == []
    assert reader.complaints == []
    assert [url for url in reader.requests if not url.startswith((address, "data:"))] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_page_of_each_sort(browser: Browser, book_site: Path, theme: str) -> None:
    problems = []
    with reader_of(browser, color_scheme=theme, bypass_csp=True) as reader:
        for name in LOOKED_AT:
            reader.page.goto(f"file://{book_site}/{name}")
            reader.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(reader.page)
            if found.violations_count:
                problems.append(f"{name}: {found.generate_report()}")
    assert not problems, "\n".join(problems)
