"""A page with nothing but the book's script, and the data of runs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from generator.publish.assets import assets
from generator.publish.pack import script
from generator.runs.run import I64
from tests.committed import calibration_of, run

TEMPLATES = Path(__file__).parent.parent.parent / "templates"
#: Numbers as they are, not as decimals: a double a time.
SENT = """
function sent(values) {
  const bytes = new Uint8Array(Float64Array.from(values).buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
}
"""


def write_page(folder: Path) -> Path:
    """A page that has loaded the book's script as the site has it, and allows any other."""
    made = assets([TEMPLATES])
    (folder / "book.js").write_bytes(made.files[made.urls["book.js"]] + SENT.encode())
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><title>data</title><script src="book.js"></script>',
        encoding="utf-8",
    )
    return page


def provide(page: Page, run_id: str) -> None:
    """Load the data of a run into the page, unless they are there."""
    if not page.evaluate("(id) => Shardbook.columns.has(id)", run_id):
        page.add_script_tag(content=data_of(run_id))


def data_of(run_id: str) -> str:
    return script(run(run_id), calibration=calibration_of(run_id))


def whole(text: str) -> I64:
    """Numbers that the page has sent; they are whole."""
    values = np.frombuffer(base64.b64decode(text), np.float64)
    found: I64 = values.astype(np.int64)
    assert np.array_equal(values, found)
    return found


def ask(page: Page, code: str, *arguments: Any) -> Any:
    """What an expression gives of the arguments `a`, `b` …; an error of the page is given as its text."""
    names = ", ".join("abcdef"[: len(arguments)])
    body = f"async ([{names}]) => {{ try {{ return await {code}; }} catch (e) {{ return `${{e}}`; }} }}"
    return page.evaluate(body, list(arguments))
