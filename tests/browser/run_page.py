"""A page with the timeline of a committed run and nothing else, opened from the disk."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from generator.publish.assets import CSS, join
from tests.browser.packed import TEMPLATES, data_of, write_page
from tests.browser.timelines import open_figure

PAGE = """<!doctype html><html lang="en" class="js"><head><meta charset="utf-8"><title>{run}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="book.css">
<script src="book.js" defer></script></head><body{others}><div class="wrap"><main><h1>{run}</h1>
<figure id="made"><div class="figbar"><h2 class="ttl">{run}</h2><span data-mode></span>
<span class="sp"></span></div>
<trace-timeline run="{run}" mode="{mode}" src="{run}.js"></trace-timeline></figure></main></div></body></html>
"""


def open_run(
    page: Page,
    folder: Path,
    run_id: str,
    fragment: str = "",
    mode: str = "isolated",
    others: tuple[str, ...] = (),
) -> None:
    """Go to the run's timeline, which is `timeline` in the page from then on; nothing moves on its own.

    `others`: runs that it can be compared with.
    """
    html = folder / f"{run_id}-{mode}.html"
    if not (folder / "book.css").exists():
        write_page(folder)
        (folder / "book.css").write_bytes(join([TEMPLATES], "css", CSS))
    for data in (folder / f"{r}.js" for r in (run_id, *others)):
        if not data.exists():
            data.write_text(data_of(data.stem), encoding="utf-8")
    listed = "&amp;".join(f"{r}={r}.js" for r in others)
    with_others = f' data-runs="{listed}"' if others else ""
    html.write_text(PAGE.format(run=run_id, mode=mode, others=with_others), encoding="utf-8")
    # Only the part after the # would change: no new page.
    page.goto("about:blank")
    page.goto(f"file://{html}{fragment}")
    open_figure(page)
    page.evaluate("timeline.stage.focus()")
