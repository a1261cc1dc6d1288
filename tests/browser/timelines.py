"""Timelines in a browser: made-up ones on a bare page, and those of a site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from generator.publish.assets import CSS, join
from tests.browser.packed import TEMPLATES, write_page

SYNTHETIC = Path(__file__).parent / "synthetic.js"
#: 1,000,000 events on 64 lanes: 16 ranks with four lanes each.
MILLION = {"ranks": 16, "microbatches": 64, "layers": 24, "operations": 19, "calls": 12}
SMALL = {"ranks": 4, "microbatches": 4, "layers": 2, "operations": 60, "calls": 2}
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def bare_page(page: Page, folder: Path) -> None:
    """Go to a page that has the book's script and style, and nothing else but a place for a timeline."""
    path = write_page(folder)
    (folder / "book.css").write_bytes(join([TEMPLATES], "css", CSS))
    with path.open("a", encoding="utf-8") as file:
        file.write(
            '<link rel="stylesheet" href="book.css"><body><figure id="made"><div class="figbar">'
            '<h2 class="ttl">Made up</h2><span data-mode></span></div>'
            '<trace-timeline run="synthetic" mode="isolated"></trace-timeline></figure>'
        )
    page.goto(f"file://{path}")
    page.add_script_tag(path=SYNTHETIC)
    page.evaluate("document.documentElement.classList.add('js')")


def open_synthetic(page: Page, size: dict[str, int], width: int = 0) -> None:
    """Show a made-up model on a bare page, in a figure of some width (0: as wide as the page)."""
    page.evaluate(
        """([size, width]) => {
          if (width) document.querySelector("figure").style.width = `${width}px`;
          window.timeline = document.querySelector("trace-timeline");
          window.model = syntheticModel(size);
          timeline.open(() => model);
        }""",
        [size, width],
    )
    page.evaluate(FRAME)


def open_figure(page: Page, selector: str = "trace-timeline") -> None:
    """Wait until a figure of a site is interactive; it is `timeline` in the page from then on."""
    page.evaluate("(selector) => (window.timeline = document.querySelector(selector)).load()", selector)
    page.evaluate(FRAME)


def until(page: Page, condition: str, argument: Any = None) -> None:
    """Wait until something holds; the site's policy forbids to ask for it in the page itself."""
    for _ in range(300):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"never: {condition}")


def state(page: Page, field: str) -> Any:
    return page.evaluate("(field) => timeline.state[field]", field)


def box_of(page: Page, rank: int, lane: str, index: int) -> tuple[float, float]:
    """The middle of an event in the window, px."""
    found: list[float] = page.evaluate(
        """([rank, lane, index]) => {
          const g = timeline.geometry(), span = timeline.span({ rank, lane, index }), box = g.box(rank, lane);
          const at = timeline.canvas.getBoundingClientRect();
          return [at.left + (g.x(Math.max(span.from, g.from)) + g.x(Math.min(span.to, g.to))) / 2,
            at.top + box.y + box.h / 2];
        }""",
        [rank, lane, index],
    )
    return found[0], found[1]
