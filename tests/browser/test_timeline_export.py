"""A view as files: as pixels, as shapes, and the step as a trace for Perfetto."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

from generator.timeline.metrics import METRICS
from tests.browser.conftest import Reader, reader_of
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME
from tests.committed import timeline

RUN = "pp-1f1b"
Pixels = npt.NDArray[np.uint8]
#: Of a picture in base64, or of the timeline's canvas: width, and pixels as base64.
DECODE = """async (text) => {
  let source = window.timeline?.canvas;
  if (text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    source = await createImageBitmap(new Blob([bytes]));
  }
  const canvas = new OffscreenCanvas(source.width, source.height), context = canvas.getContext("2d");
  context.drawImage(source, 0, 0);
  const { data } = context.getImageData(0, 0, source.width, source.height);
  let out = "";
  for (let i = 0; i < data.length; i += 4096) out += String.fromCharCode(...data.subarray(i, i + 4096));
  return [source.width, btoa(out)];
}"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 1000}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader, folder: Path) -> Page:
    open_run(reader.page, folder, RUN)
    return reader.page


def panel(page: Page) -> Locator:
    return page.locator("details.tl-panel", has_text="Save as")


def save(page: Page, kind: str, key: str = "") -> tuple[str, bytes]:
    """Name and content of what is saved by a click, or with the button in focus by a key."""
    if panel(page).get_attribute("open") is None:
        panel(page).locator("summary").click()
    button = panel(page).get_by_role("button", name=kind, exact=True)
    with page.expect_download() as waiting:
        if key:
            button.focus()
            page.keyboard.press(key)
        else:
            button.click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def pixels(page: Page, picture: bytes = b"") -> Pixels:
    """Of a PNG, or of the timeline as it is drawn: rows, columns, red green blue alpha."""
    width, text = page.evaluate(DECODE, base64.b64encode(picture).decode())
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, width, 4)


def difference(one: Pixels, other: Pixels) -> float:
    """The mean over pixels and colours, of 255."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


# ---- pixels


@pytest.mark.parametrize("key", ["", "Enter"])
def test_a_png_is_what_is_seen(page: Page, key: str) -> None:
    page.evaluate("timeline.look(5e7, 1.5e8)")
    page.evaluate(FRAME)
    name, content = save(page, "png", key)
    assert name == "pp-1f1b-isolated.png"
    saved = pixels(page, content)
    assert saved.shape[1] == 1200
    assert np.array_equal(saved, pixels(page))
    assert saved[..., 3].min() == 255
    ground = page.evaluate("timeline.colours.ground")
    assert "#" + bytes(saved[-1, 0, :3]).hex() == ground


# ---- shapes


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_svg_looks_like_the_view(browser: Browser, folder: Path, theme: str) -> None:
    with reader_of(
        browser, viewport={"width": 1280, "height": 1000}, color_scheme=theme, reduced_motion="reduce"
    ) as reader:
        page = reader.page
        open_run(page, folder, RUN)
        page.evaluate("timeline.look(5e7, 1.5e8)")
        page.keyboard.press(".")
        page.evaluate("timeline.update({ marks: [7e7, 9e7] })")
        page.evaluate(FRAME)
        name, content = save(page, "svg")
        assert name == "pp-1f1b-isolated.svg"
        picture = pixels(page)
        (folder / name).write_bytes(content)
        page.set_viewport_size({"width": picture.shape[1], "height": picture.shape[0]})
        page.goto(f"file://{folder / name}")
        drawn = pixels(page, page.screenshot())
        # Hatches and textures are plainer, edges lie where they are and not on whole pixels.
        assert difference(picture, drawn) < 5
        assert difference(picture, np.broadcast_to(picture[-1, 0], picture.shape)) > 20
        assert not reader.complaints


def test_an_svg_has_words_as_words_and_marks_in_place(page: Page) -> None:
    page.evaluate("timeline.look(0, 1e8)")
    page.evaluate(FRAME)
    root = ElementTree.fromstring(save(page, "svg", "Enter")[1])
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"rank 0", "rank 3", "F0", "comm.", "memory"} <= set(words)
    assert all("undefined" not in value for e in root.iter() for value in e.attrib.values())
    left, right, colour = page.evaluate(
        "(() => { const g = timeline.geometry(); return [g.left, g.right, g.colours.marks[0]]; })()"
    )
    lane = timeline(RUN).ranks[0].computation
    begin = min(lane.start_ns[lane.activity == 0])
    at = left + begin / 1e8 * (right - left)
    starts = [
        float(found[1])
        for e in root.iter(f"{SVG}path")
        if e.get("fill") == colour and (found := re.match(r"M([\d.]+)", e.get("d") or ""))
    ]
    assert min(starts) == pytest.approx(at, abs=0.01)
    assert all(left <= x < right for x in starts)


# ---- the trace


@pytest.mark.parametrize(
    ("change", "suffix", "run"),
    [
        ({}, "isolated", "pp-1f1b"),
        ({"mode": "recorded"}, "recorded", "fsdp"),
        ({"whatIf": "backward=2000"}, "what-if", "ddp"),
    ],
)
def test_a_trace_is_the_step_as_shown(
    reader: Reader, folder: Path, change: dict[str, str], suffix: str, run: str
) -> None:
    page = reader.page
    open_run(page, folder, run)
    page.evaluate("(change) => timeline.update(change)", change)
    name, content = save(page, "trace.json")
    assert name == f"{run}-{suffix}.trace.json"
    events = json.loads(content)
    named = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert named["process_name", 1, 0] == "rank 1"
    assert [named["thread_name", 0, tid] for tid in range(4)] == ["phase", "layer", "operation", "comm"]
    spans = by_thread(events)
    assert {pid for pid, _ in spans} == set(range(4))
    for rows in spans.values():
        # Perfetto nests what overlaps: nothing may.
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(rows))
    if suffix != "what-if":
        shown = timeline(run, suffix)
        for phase in ("forward", "backward"):
            ns = sum(round(e["dur"] * 1000) for e in spans[2, 0] if e["cat"] == phase)
            assert ns == METRICS["busy"](shown, rank=2, phase=phase)
        held = [sum(e["args"].values()) for e in events if e["ph"] == "C" and e["pid"] == 1]
        assert max(held) == METRICS["peak_memory"](shown, rank=1)
    moved = [e for e in spans[0, 3] if e["cat"] == "transfer"]
    assert all(e["args"]["bytes"] > 0 and 0 in e["args"]["ranks"] for e in moved)
    assert moved


def by_thread(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    spans = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            assert e["dur"] >= 0
            spans[e["pid"], e["tid"]].append(e)
    return spans


# ---- for everybody


def test_by_keyboard_the_panel_opens_and_closes(page: Page) -> None:
    page.keyboard.press("k")
    assert panel(page).get_attribute("open") is not None
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "png"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert panel(page).get_attribute("open") is None


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser: Browser, folder: Path, width: int) -> None:
    with reader_of(browser, viewport={"width": width, "height": 1000}, reduced_motion="reduce") as reader:
        open_run(reader.page, folder, RUN)
        reader.page.keyboard.press("k")
        found = Axe().run(reader.page)
        assert found.violations_count == 0, found.generate_report()
