"""Runs under one time axis, by mouse and by keyboard, and what differs between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Reader, reader_of
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME, open_figure, state
from tests.committed import timeline

RUN, OTHERS = "fsdp", ("ddp", "pp-1f1b", "single")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 2400}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader, runs: Path) -> Page:
    open_run(reader.page, runs, RUN, others=OTHERS)
    return reader.page


def panel(page: Page) -> Locator:
    return page.locator("details.tl-panel", has_text="Compare with")


def choice(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Run")


def compare(page: Page, *wanted: str) -> None:
    """Choose runs, and wait until they are there."""
    if not choice(page).is_visible():
        panel(page).locator("summary").click()
    for run in wanted:
        choice(page).select_option(run)
        page.locator(f"#{run} trace-timeline.live").wait_for()
    page.evaluate(FRAME)


def views(page: Page) -> list[Any]:
    """From where to where each timeline shows, and in which mode."""
    found: list[Any] = page.evaluate(
        "[...document.querySelectorAll('trace-timeline')].map(({ state, shown }) => "
        "[state.from, state.to, shown.from, shown.to, state.mode])"
    )
    return found


def alike(page: Page, count: int) -> tuple[float, float]:
    """All timelines show the same; what it is."""
    found = views(page)
    assert len(found) == count
    assert all(one == found[0] for one in found)
    assert found[0][:2] == found[0][2:4]
    return found[0][0], found[0][1]


def step_ns(run: str, mode: str = "isolated") -> int:
    return timeline(run, mode).step_ns


def test_runs_stand_under_one_axis_as_long_as_the_longest(page: Page) -> None:
    compare(page, "ddp")
    assert alike(page, 2) == (0, max(step_ns(RUN), step_ns("ddp")))
    compare(page, "single")
    assert alike(page, 3) == (0, max(step_ns(RUN), step_ns("ddp"), step_ns("single")))
    expect(page.get_by_role("heading", level=3)).to_have_text(["ddp", "single"])
    lefts = page.evaluate("[...document.querySelectorAll('trace-timeline')].map((e) => e.geometry().x(1e6))")
    assert len(set(lefts)) == 1
    assert state(page, "compare") == ["ddp", "single"]
    expect(choice(page)).to_have_value("")


def test_zooming_and_moving_one_moves_all(page: Page) -> None:
    compare(page, "ddp", "pp-1f1b")
    _, whole = alike(page, 3)
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press("w")
    page.evaluate(FRAME)
    start, end = alike(page, 3)
    assert end - start == pytest.approx(whole / 2)
    other = page.locator("#ddp .tl-stage")
    other.focus()
    page.keyboard.press("d")
    page.evaluate(FRAME)
    moved, _ = alike(page, 3)
    assert moved > start
    box = other.bounding_box()
    assert box
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    page.mouse.up()
    page.evaluate(FRAME)
    assert alike(page, 3)[0] > moved
    page.keyboard.press("0")
    page.evaluate(FRAME)
    assert alike(page, 3) == (0, whole)


def test_by_keyboard_a_run_is_chosen_and_taken_away(page: Page) -> None:
    page.keyboard.press("r")
    page.keyboard.press("Tab")
    expect(choice(page)).to_be_focused()
    page.keyboard.press("d")
    page.locator("#ddp trace-timeline.live").wait_for()
    assert state(page, "compare") == ["ddp"]
    page.locator("#ddp").get_by_role("button", name="Remove").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#ddp")).to_have_count(0)
    page.evaluate(FRAME)
    assert alike(page, 1) == (0, step_ns(RUN))


def test_modes_go_together_and_a_part_stays_the_same_part(page: Page) -> None:
    compare(page, "ddp")
    page.get_by_role("button", name="recorded").first.click()
    page.evaluate(FRAME)
    assert alike(page, 2) == (0, max(step_ns(RUN, "recorded"), step_ns("ddp", "recorded")))
    assert [view[4] for view in views(page)] == ["recorded"] * 2
    page.evaluate("timeline.look(2e7, 5e7)")
    page.get_by_role("button", name="one device each").first.click()
    page.evaluate(FRAME)
    assert alike(page, 2) == (2e7, 5e7)


def test_what_differs_is_named(page: Page) -> None:
    compare(page, "ddp", "single")
    rows = panel(page).locator("tr")
    head, own, ddp, single = (rows.nth(i).locator("th, td").all_inner_texts() for i in range(4))
    assert head == ["run", "Step time", "Exposed communication", "Bubble", "Peak memory", "Payload", "Calls"]
    assert own[0] == RUN
    assert "(" not in "".join(own)
    assert ddp[0] == "ddp"
    assert ddp[3] == "–"
    assert all(re.search(r"\d\u2009\w+ \((\+|−)[\d.]+\u2009\w+\)$", ddp[i]) for i in (1, 2, 4, 5))
    gathers = sum(call.op == "all_gather" for call in timeline(RUN).calls)
    assert f"{gathers} all_gather" in own[6]
    assert ddp[6] == f"{len(timeline('ddp').calls)} all_reduce"
    assert single[5:] == ["–", "–"]


def test_a_link_shows_the_same_runs_and_part(reader: Reader, runs: Path, page: Page) -> None:
    compare(page, "single", "ddp")
    end = step_ns("single")
    assert end > step_ns(RUN)
    page.evaluate("(end) => timeline.look(end - 5e7, end)", end)
    page.wait_for_url(re.compile(r"with=single\.ddp"))
    fragment = page.evaluate("location.hash")
    assert fragment.startswith("#t=made;")
    open_run(page, runs, RUN, fragment, others=OTHERS)
    page.locator("#single trace-timeline.live").wait_for()
    page.locator("#ddp trace-timeline.live").wait_for()
    page.evaluate(FRAME)
    assert alike(page, 3) == (end - 5e7, end)
    assert panel(page).get_attribute("open") is not None
    assert page.locator(".notice:visible").count() == 0


def test_choosing_in_another_run_leaves_the_address_to_the_first(page: Page) -> None:
    compare(page, "ddp")
    page.wait_for_url(re.compile("with=ddp"))
    page.locator("#ddp .tl-stage").focus()
    page.keyboard.press(".")
    page.evaluate(FRAME)
    assert page.evaluate("document.querySelector('#ddp trace-timeline').state.selected.lane") == "phase"
    page.wait_for_timeout(400)
    assert page.evaluate("location.hash").startswith("#t=made;")
    assert state(page, "selected") is None


def test_a_what_if_is_compared_too(page: Page) -> None:
    compare(page, "ddp")
    page.evaluate("timeline.update({ whatIf: 'backward=4000' })")
    page.evaluate(FRAME)
    longest = page.evaluate("timeline.model.stepNs")
    assert longest > step_ns("ddp")
    assert alike(page, 2) == (0, longest)


def test_the_pages_of_a_book_offer_its_runs(reader: Reader, site: Path) -> None:
    page = reader.page
    page.goto(f"file://{site}/read-a-step/index.html")
    offered = page.evaluate("[...new URLSearchParams(document.body.dataset.runs)]")
    # A run whose name cannot stand in a link is not offered.
    assert [run for run, _ in offered] == ["alone", "pipe"]
    assert all((site / "read-a-step" / path).is_file() for _, path in offered)
    open_figure(page)
    compare(page, "pipe")
    assert [view[4] for view in views(page)] == ["isolated"] * 2


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_it_fits(browser: Browser, runs: Path, theme: str, width: int) -> None:
    size = {"width": width, "height": 2400}
    with reader_of(browser, viewport=size, color_scheme=theme, reduced_motion="reduce") as reader:
        page = reader.page
        open_run(page, runs, RUN, "#t=made;with=ddp.pp-1f1b", others=OTHERS)
        page.locator("#pp-1f1b trace-timeline.live").wait_for()
        page.evaluate(FRAME)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        alike(page, 3)
