"""What if: the panel of a timeline, by mouse and by keyboard, and what it says of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from generator.publish.pack import script
from generator.runs.reader import read_run
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Timeline
from generator.timeline.whatif import replayable, what_if_timeline
from generator.timeline.whatif_text import parse_what_if
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import ask, provide, write_page
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME, state
from tests.committed import calibration_of, run, timeline
from tests.publish.small import write_link
from tests.timeline.synthetic import Issue, Script, Wait, Work, write_run

MEASURED = ("single", "ddp", "tp", "fsdp-nodes", "ep-skewed", "pp-1f1b", "pp-zbv", "cp-ring", "3d")
WHAT_IFS = ("bandwidth=300,latency=4000", "rank0=1700,balance", "forward=500,free")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whatif")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 1400}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader, folder: Path) -> Page:
    open_run(reader.page, folder, "pp-1f1b")
    return reader.page


def panel(page: Page) -> Locator:
    return page.locator("details.tl-panel", has_text="What if")


def control(page: Page, label: str) -> Locator:
    return panel(page).get_by_label(label)


def open_panel(page: Page) -> None:
    panel(page).locator("summary").click()
    page.evaluate(FRAME)


def cells(page: Page) -> list[list[str]]:
    found: list[list[str]] = panel(page).evaluate(
        "(box) => [...box.querySelectorAll('tr')].map((row) => [...row.cells].map((c) => c.textContent))"
    )
    return found


def link(what: str) -> str:
    return f"#t=made;what={quote(what)}"


def step_ns(page: Page) -> int:
    found: int = page.evaluate("timeline.model.stepNs")
    return found


# ---- asking


def test_it_is_closed_until_it_is_asked_for(page: Page) -> None:
    expect(control(page, "bandwidth")).to_be_hidden()
    open_panel(page)
    expect(control(page, "bandwidth")).to_be_visible()
    expect(control(page, "bandwidth")).to_have_value("0")
    expect(panel(page).get_by_role("status")).to_be_empty()


def test_the_timeline_moves_while_a_slider_is_dragged(page: Page) -> None:
    open_panel(page)
    before, box = step_ns(page), control(page, "bandwidth").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=5)
    page.evaluate(FRAME)
    seen = step_ns(page)
    assert seen > before
    assert 300 < int(state(page, "whatIf").removeprefix("bandwidth=")) < 800
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "bandwidth=250"
    assert step_ns(page) > seen
    expect(panel(page).locator("label span").nth(1)).to_have_text("0.25×")


def test_by_keyboard_it_opens_and_a_slider_moves_in_equal_steps_of_the_factor(page: Page) -> None:
    page.keyboard.press("v")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    for _ in range(3):
        page.keyboard.press("Tab")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "bandwidth=2000"
    assert control(page, "bandwidth").get_attribute("aria-valuetext") == "2.00×"
    assert page.evaluate("timeline.live.textContent").startswith("Step time")
    page.keyboard.press("End")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "bandwidth=4000"


def test_what_it_comes_to_stands_beside_recorded_and_reconstructed(page: Page) -> None:
    open_panel(page)
    head, *rows = cells(page)
    assert head == ["label", "Step time", "Exposed communication", "Bubble"]
    assert [row[0] for row in rows] == ["reconstructed", "recorded"]
    control(page, "forward time").fill("1")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "forward=2000"
    rows = cells(page)[1:]
    assert [row[0] for row in rows] == ["reconstructed", "recorded", "what-if"]
    assert all("(+" in cell or "(−" in cell for cell in rows[2][1:])
    shown = page.evaluate("Shardbook.scale.time(timeline.model.stepNs)")
    assert rows[2][1].startswith(f"{shown} (+")
    expect(page.locator(".figbar")).not_to_contain_text("reconstructed")


def test_calls_are_free_asynchronous_or_blocking_and_work_is_shared(page: Page) -> None:
    open_panel(page)
    before = step_ns(page)
    control(page, "send").select_option("free")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "free=send"
    control(page, "send").select_option("asynchronous")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "async=send"
    assert step_ns(page) < before
    control(page, "send").select_option("blocking")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "block=send"
    assert step_ns(page) > before
    control(page, "send").select_option("as recorded")
    control(page, "communication free").check()
    control(page, "work shared evenly").focus()
    page.keyboard.press("Space")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "free,balance"
    control(page, "communication free").uncheck()
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "balance"


def test_reset_and_the_modes_take_it_back(page: Page) -> None:
    before = step_ns(page)
    open_panel(page)
    for name in ("Reset", "one device each"):
        control(page, "layer 3 time").fill("2")
        control(page, "rank 1 time").fill("-1")
        page.evaluate(FRAME)
        assert state(page, "whatIf") == "rank1=500,layer3=4000"
        page.get_by_role("button", name=name).click()
        page.evaluate(FRAME)
        assert state(page, "whatIf") == ""
        assert step_ns(page) == before
        expect(control(page, "layer 3 time")).to_have_value("0")


def test_many_moves_in_one_frame_lay_the_step_out_once(page: Page) -> None:
    open_panel(page)
    count = page.evaluate(
        """() => new Promise((done) => {
          const { source } = timeline, slider = document.querySelector("[name=bandwidth]");
          let count = 0;
          timeline.source = (state) => (count++, source(state));
          for (let i = -20; i < 0; i++) {
            slider.value = i / 10;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
          }
          requestAnimationFrame(() => requestAnimationFrame(() => done(count)));
        })"""
    )
    assert count == 1
    assert state(page, "whatIf") == "bandwidth=933"


def test_the_axis_stays_while_a_step_gets_shorter(page: Page) -> None:
    open_panel(page)
    before = step_ns(page)
    control(page, "backward time").fill("-2")
    page.evaluate(FRAME)
    assert step_ns(page) < before
    assert state(page, "to") == before
    control(page, "backward time").fill("1")
    page.evaluate(FRAME)
    assert state(page, "to") == step_ns(page) > before


# ---- links


def test_a_link_opens_the_panel_and_keeps_what_no_slider_reaches(reader: Reader, folder: Path) -> None:
    page = reader.page
    open_run(page, folder, "pp-1f1b", link("rank2=1500,latency=0,free=send"))
    expect(control(page, "rank 2 time")).to_be_visible()
    assert state(page, "whatIf") == "rank2=1500,latency=0,free=send"
    assert control(page, "rank 2 time").get_attribute("aria-valuetext") == "1.50×"
    assert control(page, "latency").get_attribute("aria-valuetext") == "0.00×"
    expect(control(page, "send")).to_have_value("free=send")
    control(page, "bandwidth").fill("1")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "rank2=1500,latency=0,bandwidth=2000,free=send"
    page.wait_for_url("**/*what=rank2*bandwidth*")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator("figure.live").wait_for()
    assert page.evaluate("document.querySelector('trace-timeline').state.whatIf") == (
        "rank2=1500,latency=0,bandwidth=2000,free=send"
    )
    assert page.locator(".notice:visible").count() == 0


@pytest.mark.parametrize("what", ["nonsense", "rank9=500", "bandwidth=0", "async=send,block=send"])
def test_a_link_that_asks_for_nothing_known_says_so(reader: Reader, folder: Path, what: str) -> None:
    page = reader.page
    open_run(page, folder, "pp-1f1b", link(what) + ";mode=recorded")
    assert state(page, "whatIf") == ""
    assert state(page, "mode") == "recorded"
    expect(page.locator("trace-timeline .notice")).to_contain_text("what")


def crossed() -> list[Script]:
    """Two ranks that start two reductions in opposite order and wait for both at the end."""
    calls = [Issue(name, (0, 1), 1_000_000, bytes=1 << 20, group=name) for name in ("a", "b")]
    waits = [Wait("a"), Wait("b")]
    return [
        [Work(2_000_000), first, Work(2_000_000), second, Work(2_000_000, "backward"), *waits]
        for first, second in (calls, calls[::-1])
    ]


def test_a_step_that_would_hang_is_said_to_and_not_shown(reader: Reader, folder: Path) -> None:
    runs = folder / "crossed"
    runs.mkdir()
    write_run(runs, crossed(), run_id="crossed")
    write_link(runs)
    data = script(read_run(runs / "crossed"), calibration=read_run(runs / "link"))
    (folder / "crossed.js").write_text(data, encoding="utf-8")
    page = reader.page
    open_run(page, folder, "pp-1f1b")  # brings script and style
    open_run(page, folder, "crossed")
    open_panel(page)
    before = step_ns(page)
    control(page, "all reduce").select_option("blocking")
    page.evaluate(FRAME)
    expect(panel(page).get_by_role("status")).to_have_text(
        "It would hang. With all_reduce blocking: Calls of the ranks 0, 1 wait for each other in a circle."
    )
    assert state(page, "whatIf") == ""
    assert step_ns(page) == before
    expect(control(page, "all reduce")).to_have_value("")
    control(page, "rank 0 time").fill("1")
    page.evaluate(FRAME)
    assert state(page, "whatIf") == "rank0=2000"
    expect(panel(page).get_by_role("status")).to_be_empty()


# ---- numbers


def test_sums_are_pythons_metrics(reader: Reader, folder: Path) -> None:
    page = reader.page
    page.goto(f"file://{write_page(folder)}")
    asked = 0
    for run_id in MEASURED:
        provide(page, run_id)
        able = replayable(run(run_id), calibration=calibration_of(run_id))
        for mode in ("isolated", "recorded", *WHAT_IFS):
            recorded = mode in ("isolated", "recorded")
            if run_id == "single" and not recorded and "rank" not in mode:
                continue
            made = timeline(run_id, mode) if recorded else what_if_timeline(able, parse_what_if(mode))
            what = "b" if recorded else "Shardbook.whatif.parse(b)"
            model = f"Shardbook.lanes.model(await Shardbook.columns.of(a), {what})"
            found = ask(
                page,
                f"(async () => {{ const m = {model}, f = Shardbook.facts.of(m);"
                " return [Shardbook.panel.SUMS.map(([, , of]) => of(m)),"
                " f.ranks.map((r) => r.exposed), f.ranks.map((r) => r.bubble)]; })()",
                run_id,
                mode,
            )
            check(found, made)
            asked += 1
    assert asked > 40


def check(found: Any, made: Timeline) -> None:
    (step, exposed, bubble, peak, payload, calls), each_exposed, each_bubble = found
    assert step == made.step_ns
    assert exposed == METRICS["exposed_comm"](made)
    assert peak == METRICS["peak_memory"](made)
    assert payload == METRICS["payload_bytes"](made)
    counts = Counter(call.op for call in made.calls)
    assert calls == ", ".join(f"{n} {op}" for op, n in counts.items())
    ranks = range(len(made.ranks))
    assert each_exposed == [METRICS["exposed_comm"](made, rank=r) for r in ranks]
    if made.stages > 1:
        assert bubble == pytest.approx(METRICS["bubble_fraction"](made), rel=1e-12)
        assert each_bubble == [METRICS["bubble_time"](made, rank=r) for r in ranks]
    else:
        assert bubble == 0


# ---- for everybody


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_it_fits(browser: Browser, folder: Path, theme: str, width: int) -> None:
    size = {"width": width, "height": 1400}
    with reader_of(browser, viewport=size, color_scheme=theme, reduced_motion="reduce") as reader:
        page = reader.page
        open_run(page, folder, "pp-1f1b", link("rank2=1500,block=send"))
        expect(control(page, "rank 2 time")).to_be_visible()
        page.evaluate(FRAME)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        box = control(page, "rank 2 time").bounding_box()
        assert box
        assert box["width"] > 60
        assert box["height"] >= 24
