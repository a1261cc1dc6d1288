"""The interactive timeline by mouse and by keyboard, on the pages of the small book."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import reconstruct
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import ask, provide
from tests.browser.timelines import FRAME, SMALL, bare_page, box_of, open_figure, open_synthetic, state, until
from tests.committed import calibration_of, ids_with_steps, run

FIGURE = "#timeline-isolated trace-timeline"
#: Any instant is this near to where it should be, ns.
NEAR = 1000


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader, site: Path) -> Page:
    """The page of a pipeline of two ranks and three micro-batches, its reconstructed figure in focus."""
    reader.page.goto(f"file://{site}/runs/pipe/index.html")
    open_figure(reader.page, FIGURE)
    reader.page.evaluate("timeline.scrollIntoView()")
    reader.page.evaluate("timeline.stage.focus()")
    return reader.page


def view(page: Page) -> tuple[float, float]:
    found = page.evaluate("[timeline.state.from, timeline.state.to]")
    return found[0], found[1]


def whole(page: Page) -> tuple[float, float]:
    return 0, page.evaluate("timeline.model.stepNs")


def chosen(page: Page) -> Any:
    return state(page, "selected")


def look(page: Page, start: float, end: float) -> None:
    """Show a part of the step, given in shares of it."""
    page.evaluate(
        "([a, b]) => timeline.look(a * timeline.model.stepNs, b * timeline.model.stepNs)", [start, end]
    )
    page.evaluate(FRAME)


# ---- it takes the picture's place


def test_it_takes_the_place_of_the_picture_once_the_data_are_there(reader: Reader, address: str) -> None:
    page = reader.page
    page.goto(address + "runs/pipe/index.html")
    figure = page.locator("#timeline-isolated")
    open_figure(page, FIGURE)
    expect(figure.locator("canvas").first).to_be_visible()
    expect(figure.locator("svg.fig-svg").first).to_be_hidden()
    expect(figure.get_by_role("application")).to_have_accessible_name(re.compile("pipe, step 0, 2 ranks"))


def test_data_are_fetched_only_when_a_figure_comes_near(reader: Reader, site: Path) -> None:
    page = reader.page
    page.set_viewport_size({"width": 1280, "height": 200})
    page.goto(f"file://{site}/runs/pipe/index.html")
    fetched = "() => document.querySelectorAll('head script[src*=\"data.\"]').length"
    page.evaluate("document.querySelector('#timeline-isolated').style.marginTop = '2000px'")
    page.wait_for_timeout(100)
    before = page.evaluate("document.querySelector('#timeline-isolated trace-timeline').started")
    page.evaluate("document.querySelector('#timeline-isolated').scrollIntoView()")
    until(page, "() => document.querySelector('#timeline-isolated trace-timeline').started")
    assert not before
    # Two figures of one run share its data.
    assert page.evaluate(fetched) == 1


def test_a_picture_whose_data_are_damaged_stays_and_says_so(
    browser: Browser, site: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    data = next((copy / "runs/pipe").glob("data.*.js"))
    data.write_text('Shardbook.register("pipe", "H4sIAAAA");\n', encoding="utf-8")
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{copy}/runs/pipe/index.html")
        open_figure(reader.page, FIGURE)
        figure = reader.page.locator("#timeline-isolated")
        expect(figure.locator(".notice")).to_contain_text("damaged")
        expect(figure.locator("svg.fig-svg").first).to_be_visible()
        expect(figure.get_by_role("application")).to_have_count(0)


def test_a_picture_without_its_data_stays_and_says_so(browser: Browser, site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    next((copy / "runs/pipe").glob("data.*.js")).unlink()
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{copy}/runs/pipe/index.html")
        open_figure(reader.page, FIGURE)
        expect(reader.page.locator("#timeline-isolated .notice")).to_contain_text("could not be loaded")
        expect(reader.page.locator("#timeline-isolated svg.fig-svg").first).to_be_visible()


def test_print_has_the_picture(page: Page) -> None:
    page.emulate_media(media="print")
    expect(page.locator("#timeline-isolated svg.fig-svg").first).to_be_visible()
    expect(page.locator("#timeline-isolated canvas").first).to_be_hidden()


# ---- keys and buttons

MOVES = [
    ("w", "Zoom in", lambda a, b, end: (b - a) == pytest.approx(end / 4)),
    ("+", "Zoom in", lambda a, b, end: (b - a) == pytest.approx(end / 4)),
    ("s", "Zoom out", lambda a, b, end: (a, b) == (0, end)),
    ("0", "Show the whole step", lambda a, b, end: (a, b) == (0, end)),
    ("f", "Fit the selection, or the whole step", lambda a, b, end: (a, b) == (0, end)),
    ("a", None, lambda a, b, end: a == pytest.approx(end * 0.15)),
    ("ArrowLeft", None, lambda a, b, end: a == pytest.approx(end * 0.15)),
    ("d", None, lambda a, b, end: a == pytest.approx(end * 0.35)),
    ("ArrowRight", None, lambda a, b, end: a == pytest.approx(end * 0.35)),
    ("Home", None, lambda a, b, end: (a, b) == (0, end / 2)),
    ("End", None, lambda a, b, end: (a, b) == (end / 2, end)),
]


@pytest.mark.parametrize(("key", "button", "moved"), MOVES, ids=[m[0] for m in MOVES])
def test_keys_and_buttons_move_the_view(page: Page, key: str, button: str | None, moved: Any) -> None:
    end = whole(page)[1]
    look(page, 0.25, 0.75)
    page.keyboard.press(key)
    assert moved(*view(page), end)
    if button:
        look(page, 0.25, 0.75)
        page.locator("#timeline-isolated").get_by_role("button", name=button, exact=True).click()
        assert moved(*view(page), end)


def test_keys_do_nothing_outside_of_a_figure(page: Page) -> None:
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("w")
    assert view(page) == whole(page)
    page.locator("a.wm").focus()
    page.keyboard.press("w")
    assert view(page) == whole(page)


def test_keys_of_the_browser_stay_the_browsers(page: Page) -> None:
    page.keyboard.press("Alt+d")
    assert view(page) == whole(page)


def test_events_of_a_lane_are_stepped_through_in_order(page: Page) -> None:
    page.keyboard.press(".")
    seen = []
    for _ in range(4):
        at = chosen(page)
        seen.append(page.evaluate("(s) => timeline.span(s).from", at))
        assert (at["rank"], at["lane"]) == (0, "phase")
        page.locator("#timeline-isolated").get_by_role("button", name="Next event on the lane").click()
    assert seen == sorted(set(seen))
    last = chosen(page)
    page.keyboard.press(",")
    page.keyboard.press(".")
    assert chosen(page) == last


def test_an_event_out_of_view_is_brought_into_it(page: Page) -> None:
    look(page, 0, 0.05)
    page.keyboard.press(".")
    for _ in range(3):
        page.keyboard.press(".")
    span = page.evaluate("timeline.span(timeline.state.selected)")
    start, end = view(page)
    assert start < span["to"]
    assert end > span["from"]


def test_up_and_down_go_from_lane_to_lane_and_from_rank_to_rank(page: Page) -> None:
    lanes = []
    for _ in range(7):
        page.keyboard.press("ArrowDown")
        at = chosen(page)
        lanes.append((at["rank"], at["lane"]))
    assert lanes[0] == (0, "phase")
    assert (0, "comm") in lanes
    assert (1, "phase") in lanes
    assert len(dict.fromkeys(lanes)) > 3
    page.keyboard.press("ArrowUp")
    assert chosen(page)["rank"] <= 1


def test_f_fits_what_is_selected_and_then_the_whole_step(page: Page) -> None:
    page.keyboard.press(".")
    page.keyboard.press(".")
    span = page.evaluate("timeline.span(timeline.state.selected)")
    page.keyboard.press("f")
    start, end = view(page)
    assert start <= span["from"] < span["to"] <= end
    assert end - start < 1.5 * (span["to"] - span["from"])
    page.keyboard.press("f")
    assert view(page) == whole(page)


def test_escape_lets_go_and_says_so(page: Page) -> None:
    page.keyboard.press(".")
    live = page.locator("#timeline-isolated [aria-live]")
    expect(live).to_contain_text("rank 0")
    page.keyboard.press("Escape")
    assert chosen(page) is None
    expect(live).to_have_text("Nothing is selected.")
    expect(page.locator("#timeline-isolated .tl-details")).to_be_empty()


def test_marks_are_set_and_removed_and_never_more_than_two(page: Page) -> None:
    page.keyboard.press(".")
    page.keyboard.press("m")
    first = state(page, "marks")
    assert first == [page.evaluate("timeline.span(timeline.state.selected).from")]
    page.keyboard.press("m")
    assert state(page, "marks") == []
    for _ in range(3):
        page.keyboard.press("m")
        page.keyboard.press(".")
    marks = state(page, "marks")
    assert len(marks) == 2
    assert marks[0] != first[0]


def test_the_list_of_keys_opens_has_every_command_and_gives_focus_back(page: Page) -> None:
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="What can be done here")
    labels = page.evaluate("[...timeline.commands.values()].filter((c) => c.key).map((c) => c.label)")
    assert len(labels) > 12
    for label in labels:
        expect(dialog.locator("dd", has_text=label).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.activeElement === timeline.stage")


# ---- mouse


def test_a_click_selects_an_event_and_a_click_on_the_ground_a_gap(page: Page) -> None:
    x, y = box_of(page, 1, "phase", 2)
    page.mouse.click(x, y)
    at = chosen(page)
    assert (at["rank"], at["lane"]) == (1, "phase")
    gap = page.evaluate(
        """() => {
          const g = timeline.geometry(), lane = timeline.lanes[1].phase, box = g.box(1, "phase");
          for (let i = 0; i + 1 < lane.n; i++) {
            if (g.x(lane.start[i + 1]) - g.x(lane.end[i]) < 20) continue;
            const at = timeline.canvas.getBoundingClientRect();
            return [at.left + (g.x(lane.end[i]) + g.x(lane.start[i + 1])) / 2, at.top + box.y + 5,
              lane.end[i]];
          }
        }"""
    )
    page.mouse.click(gap[0], gap[1])
    assert chosen(page)["gap"]["from"] == gap[2]
    expect(page.locator("#timeline-isolated .tl-details")).to_contain_text("idle")


def test_dragging_pans_and_does_not_select(page: Page) -> None:
    look(page, 0.25, 0.75)
    end = whole(page)[1]
    x, y = box_of(page, 0, "phase", 2)
    plot = page.evaluate("timeline.geometry().plot")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - plot / 10, y, steps=4)
    page.mouse.up()
    assert view(page)[0] == pytest.approx(end * 0.3, abs=NEAR)
    assert chosen(page) is None


def test_dragging_over_the_axis_zooms_to_what_was_dragged_over(page: Page) -> None:
    end = whole(page)[1]
    at = page.evaluate("(() => { const b = timeline.canvas.getBoundingClientRect(), g = timeline.geometry(); "
                       "return [b.left + g.left, b.top + 8, g.plot]; })()")  # fmt: skip
    page.mouse.move(at[0] + at[2] * 0.5, at[1])
    page.mouse.down()
    page.mouse.move(at[0] + at[2] * 0.25, at[1], steps=4)
    page.mouse.up()
    assert view(page) == pytest.approx((end * 0.25, end * 0.5), abs=end / at[2])


def test_a_double_click_zooms_on_an_event(page: Page) -> None:
    x, y = box_of(page, 0, "phase", 1)
    page.mouse.dblclick(x, y)
    span = page.evaluate("timeline.span(timeline.state.selected)")
    start, end = view(page)
    assert start <= span["from"] < span["to"] <= end < whole(page)[1]


def test_a_plain_wheel_is_the_pages_and_with_ctrl_it_zooms_at_the_pointer(page: Page) -> None:
    x, y = map(round, box_of(page, 0, "phase", 1))
    page.mouse.move(x, y)
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 120)
    until(page, "(before) => scrollY > before", before)
    assert view(page) == whole(page)
    page.evaluate("(y) => scrollTo(0, y)", before)
    under = page.evaluate(
        "(x) => timeline.geometry().ns(x - timeline.canvas.getBoundingClientRect().left)", x
    )
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    until(page, "timeline.state.to - timeline.state.from < 0.8 * timeline.model.stepNs")
    page.evaluate(FRAME)
    now = page.evaluate("(x) => timeline.geometry().ns(x - timeline.canvas.getBoundingClientRect().left)", x)
    assert now == pytest.approx(under, rel=1e-6)


def test_the_wheel_with_shift_and_sideways_pans(page: Page) -> None:
    x, y = box_of(page, 0, "phase", 1)
    page.mouse.move(x, y)
    look(page, 0.25, 0.5)
    start = view(page)[0]
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 50)
    page.keyboard.up("Shift")
    until(page, "(start) => timeline.state.from > start", start)
    start = view(page)[0]
    page.mouse.wheel(-30, 0)
    until(page, "(start) => timeline.state.from < start", start)


def test_what_is_pointed_at_is_named_beside_the_mouse(page: Page) -> None:
    page.mouse.move(*box_of(page, 0, "phase", 1))
    tip = page.locator("#timeline-isolated .tl-tip")
    expect(tip).to_contain_text("forward")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


# ---- what is said of a selection


def test_the_panel_has_a_calls_members_and_facts(page: Page) -> None:
    comm = page.evaluate("timeline.model.ranks[1].comm.kind.indexOf(9)")
    page.evaluate("(index) => timeline.choose({ rank: 1, lane: 'comm', index })", comm)
    panel = page.locator("#timeline-isolated .tl-details")
    for word in (
        "send, rank 0 → 1",
        "sends",
        "receives",
        "bandwidth",
        "bytes",
        "message",
        "reconstructed",
        "row",
    ):
        expect(panel).to_contain_text(word)
    assert panel.locator("tbody tr").count() == 2
    expect(page.locator("#timeline-isolated [aria-live]")).to_contain_text("on rank 1")


def test_names_from_a_trace_are_text(reader: Reader, site: Path) -> None:
    page = reader.page
    page.goto(f"file://{site}/pair/index.html")
    open_figure(page)
    page.evaluate("timeline.choose({ call: 0 })")
    expect(page.locator(".tl-details")).to_contain_text("<script>pwned = 1</script>")
    assert page.evaluate("typeof pwned") == "undefined"


@pytest.mark.parametrize("run_id", ids_with_steps())
def test_shares_and_peaks_are_those_of_the_metrics(browser: Browser, tmp_path: Path, run_id: str) -> None:
    from tests.browser.packed import write_page

    timeline = reconstruct(run(run_id), mode="isolated", calibration=calibration_of(run_id))
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{write_page(tmp_path)}")
        provide(reader.page, run_id)
        found = ask(
            reader.page,
            "Shardbook.facts.of(Shardbook.lanes.model(await Shardbook.columns.of(a), 'isolated'))",
            run_id,
        )
    for rank, facts in enumerate(found["ranks"]):
        assert facts["exposed"] == METRICS["exposed_comm"](timeline, rank=rank)
        if timeline.stages > 1:
            share = facts["bubble"] / found["span"]
            assert share == pytest.approx(METRICS["bubble_fraction"](timeline, rank=rank), abs=1e-12)
        if len(timeline.ranks[rank].memory.time_ns):
            assert facts["peak"] == METRICS["peak_memory"](timeline, rank=rank)


# ---- modes and links


def test_modes_change_the_step_the_label_and_keep_what_is_selected(page: Page) -> None:
    figure = page.locator("#timeline-isolated")
    page.keyboard.press(".")
    page.keyboard.press(".")
    row = page.evaluate("timeline.model.ranks[0].phase.row[timeline.state.selected.index]")
    expect(figure.locator(".figbar .tag")).to_have_text("reconstructed")
    figure.get_by_role("button", name="recorded").click()
    expect(figure.get_by_role("button", name="recorded")).to_have_attribute("aria-pressed", "true")
    expect(figure.get_by_role("button", name="one device each")).to_have_attribute("aria-pressed", "false")
    expect(figure.locator(".figbar .tag")).to_have_text("recorded")
    assert page.evaluate("timeline.model.mode") == "recorded"
    assert page.evaluate("timeline.model.ranks[0].phase.row[timeline.state.selected.index]") == row
    assert view(page) == whole(page)


def test_a_view_is_a_link(page: Page, browser: Browser) -> None:
    look(page, 0.2, 0.6)
    page.keyboard.press(".")
    page.keyboard.press("m")
    page.locator("#timeline-isolated").get_by_role("button", name="recorded").click()
    until(page, "location.hash.includes('mode=')")
    address = page.url
    assert re.fullmatch(r"[\w.=;%/:~-]+#[\w.=;%-]+", address)
    kept = page.evaluate("timeline.state")
    with reader_of(browser, viewport={"width": 1280, "height": 900}) as other:
        other.page.goto(address)
        open_figure(other.page, FIGURE)
        until(other.page, "timeline.state.mode === 'recorded'")
        now = other.page.evaluate("timeline.state")
        for field in ("mode", "selected", "marks"):
            assert now[field] == kept[field], field
        assert (now["from"], now["to"]) == pytest.approx((kept["from"], kept["to"]), abs=1)
        assert other.page.evaluate("timeline.getBoundingClientRect().top < innerHeight")
        assert not other.complaints


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("from=5;to=2", ["from", "to"]),
        ("from=x;to=9", ["from"]),
        ("from=0;to=999999999999", ["to"]),
        ("sel=phase.0.99999", ["sel"]),
        ("sel=nonsense", ["sel"]),
        ("marks=1.x", ["marks"]),
        ("colour=red", ["colour"]),
        ("find=%E0%A4%A", ["find"]),
        ("fold=0;tracks=memory", []),
    ],
)
def test_what_a_link_says_wrongly_is_left_out_and_told(
    reader: Reader, site: Path, text: str, named: list[str]
) -> None:
    page = reader.page
    page.goto(f"file://{site}/runs/pipe/index.html#t=timeline-isolated;{text}")
    open_figure(page, FIGURE)
    notice = page.locator("#timeline-isolated .notice")
    for name in named:
        expect(notice).to_contain_text(f"“{name}”")
    if not named:
        expect(notice).to_have_count(0)
    assert view(page) == whole(page)


def test_every_link_that_is_printed_can_be_read_again(reader: Reader, site: Path) -> None:
    reader.page.goto(f"file://{site}/index.html")
    found = reader.page.evaluate(
        """() => {
          const { link } = Shardbook, from = link.start();
          const states = [
            { from: 5, to: 7000 }, { mode: "recorded", whatIf: "rank2=1200,free=send" }, { marks: [3, 99] },
            { selected: { call: 3 } }, { selected: { gap: { rank: 1, from: 0, to: 8 } } },
              { query: "all-reduce; é=#" },
            { selected: { rank: 2, lane: "layer", index: 11 } }, { filters: { phase: "backward",
              layer: "3" } },
            { collapsed: [0, 2], groupBy: "stage", tracks: [], overlays: ["bubble", "critical-path"] },
            { area: { from: 1, to: 9, ranks: [0, 3] }, follow: 2, compare: ["ddp", "fsdp"] },
          ];
          return states.map((s) => {
            const text = link.print("f", { ...from, ...s }, from), read = link.parse(text);
            return [/^[\\w.=;%-]+$/.test(text), read.id, read.problems.length, JSON.stringify(read.state),
              JSON.stringify(s)];
          });
        }"""
    )
    assert len(found) == 10
    for safe, name, problems, read, state_ in found:
        assert safe
        assert (name, problems) == ("f", 0)
        assert sorted(read) == sorted(state_)


# ---- the map of the whole step


def test_the_map_is_dragged_and_moved_by_keys(page: Page) -> None:
    end = whole(page)[1]
    look(page, 0.25, 0.5)
    slider = page.locator("#timeline-isolated").get_by_role("slider")
    box = slider.bounding_box()
    assert box
    left, plot = page.evaluate("[timeline.geometry().left, timeline.geometry().plot]")

    def at(share: float) -> tuple[float, float]:
        return box["x"] + left + plot * share, box["y"] + 20

    page.mouse.move(*at(0.4))
    page.mouse.down()
    page.mouse.move(*at(0.6), steps=3)
    page.mouse.up()
    assert view(page) == pytest.approx((end * 0.45, end * 0.7), abs=end / plot)
    page.mouse.move(*at(0.7))
    page.mouse.down()
    page.mouse.move(*at(0.9), steps=3)
    page.mouse.up()
    assert view(page) == pytest.approx((end * 0.45, end * 0.9), abs=end / plot)
    page.mouse.click(*at(0.1))
    assert view(page)[0] == 0
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert view(page)[0] == pytest.approx(end * 0.045, abs=end / plot)
    length = view(page)[1] - view(page)[0]
    page.keyboard.press("ArrowUp")
    assert view(page)[1] - view(page)[0] < length
    page.keyboard.press("End")
    assert view(page)[1] == end
    expect(slider).to_have_attribute("aria-valuetext", re.compile("of "))


# ---- sizes, themes, motion


def test_the_canvas_follows_the_window_and_the_screens_pixels(browser: Browser, site: Path) -> None:
    with reader_of(browser, viewport={"width": 1280, "height": 900}, device_scale_factor=2) as reader:
        page = reader.page
        page.goto(f"file://{site}/runs/pipe/index.html")
        open_figure(page, FIGURE)
        for width in (1280, 900, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(FRAME)
            until(page, "timeline.canvas.width === 2 * timeline.stage.clientWidth")
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_change_of_theme_is_drawn_at_once(page: Page) -> None:
    look(page, 0, 1)
    colour = """() => {
      const g = timeline.geometry(), box = g.box(0, "phase"), span = timeline.span({ rank: 0, lane: "phase",
        index: 1 });
      const x = Math.round((g.x(span.from) + g.x(span.to)) / 2) - 6;
      const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
      const context = pixel.getContext("2d", { willReadFrequently: true });
      context.drawImage(timeline.canvas, -x * g.dpr, -(box.y + 3) * g.dpr);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    light = page.evaluate(colour)
    page.get_by_role("button", name=re.compile("theme", re.IGNORECASE)).click()
    page.get_by_role("button", name=re.compile("theme", re.IGNORECASE)).click()
    page.evaluate(FRAME)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(colour) != light
    token = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--f').trim()")
    assert page.evaluate(colour) == [int(token[i : i + 2], 16) for i in (1, 3, 5)]


def test_a_phone_has_no_gutters_and_opens_with_a_part_that_pans(browser: Browser, site: Path) -> None:
    with reader_of(browser, viewport={"width": 390, "height": 800}, has_touch=True) as reader:
        page = reader.page
        page.goto(f"file://{site}/runs/pipe/index.html")
        open_figure(page, FIGURE)
        assert page.evaluate("[timeline.geometry().left, timeline.geometry().layout.above]") == [0, True]
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        bar = page.locator("#timeline-isolated .tl-bar button").first.bounding_box()
        assert bar
        assert min(bar["width"], bar["height"]) >= 28


def test_a_zoom_glides_unless_motion_is_unwanted(browser: Browser, site: Path) -> None:
    for motion, at_once in (("no-preference", False), ("reduce", True)):
        with reader_of(browser, reduced_motion=motion) as reader:
            page = reader.page
            page.goto(f"file://{site}/runs/pipe/index.html")
            open_figure(page, FIGURE)
            shown = page.evaluate(
                "timeline.look(0, timeline.model.stepNs / 2), timeline.shown.to === timeline.state.to"
            )
            assert shown is at_once
            until(page, "timeline.shown.to === timeline.state.to && !timeline.gliding")


def test_fingers_pan_and_pinch(browser: Browser, site: Path) -> None:
    with reader_of(browser, viewport={"width": 390, "height": 800}, has_touch=True) as reader:
        page = reader.page
        page.goto(f"file://{site}/runs/pipe/index.html")
        open_figure(page, FIGURE)
        page.evaluate("timeline.scrollIntoView()")
        look(page, 0.25, 0.5)
        end = whole(page)[1]
        top = page.evaluate("timeline.canvas.getBoundingClientRect().top") + 60
        session = page.context.new_cdp_session(page)

        def touch(kind: str, *xs: float) -> None:
            points = [{"x": x, "y": top, "id": i} for i, x in enumerate(xs)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", 200)
        for x in range(190, 90, -10):
            touch("touchMove", x)
        touch("touchEnd")
        until(page, "(x) => timeline.state.from > x", end * 0.28)
        before = view(page)
        touch("touchStart", 150, 250)
        for by in range(10, 70, 10):
            touch("touchMove", 150 - by, 250 + by)
        touch("touchEnd")
        until(
            page,
            "(length) => timeline.state.to - timeline.state.from < length",
            0.6 * (before[1] - before[0]),
        )
        start, stop = view(page)
        assert (start + stop) / 2 == pytest.approx(sum(before) / 2, abs=0.1 * (before[1] - before[0]))


# ---- parts, and everybody


def test_a_part_adds_a_command_that_has_a_button_a_key_and_a_line_in_the_list(
    reader: Reader, tmp_path: Path
) -> None:
    page = reader.page
    bare_page(page, tmp_path)
    page.evaluate(
        """() => {
          window.drawn = 0;
          Shardbook.timeline.overlays.push(() => drawn++);
          Shardbook.timeline.parts.push({ name: "test", attach(element) {
            element.commands.set("wave", { label: "Wave", key: "v", icon: "M3 3h10",
              run: () => element.update({ query: "waved" }) });
            element.keys.set("x", { label: "Vanish", run: () => element.update({ query: "" }) });
            element.addEventListener("trace-change", (e) => (window.changed = e.detail));
          } });
        }"""
    )
    open_synthetic(page, SMALL)
    page.evaluate("timeline.stage.focus()")
    assert page.evaluate("drawn") > 0
    page.keyboard.press("v")
    assert state(page, "query") == "waved"
    assert page.evaluate("changed") == ["query"]
    page.keyboard.press("x")
    assert state(page, "query") == ""
    page.get_by_role("button", name="Wave").click()
    assert state(page, "query") == "waved"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Wave")
    expect(page.get_by_role("dialog")).to_contain_text("Vanish")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser: Browser, site: Path, theme: str, width: int) -> None:
    with reader_of(
        browser, viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
    ) as reader:
        page = reader.page
        page.goto(f"file://{site}/runs/pipe/index.html")
        open_figure(page, FIGURE)
        page.evaluate("timeline.choose({ call: 0 })")
        page.evaluate("timeline.look(0, timeline.model.stepNs / 2, false)")
        page.evaluate("timeline.commands.get('help').run()")
        page.evaluate(FRAME)
        found = Axe().run(page)
        assert not found.violations_count, found.generate_report()
        page.keyboard.press("Escape")
        found = Axe().run(page)
        assert not found.violations_count, found.generate_report()
