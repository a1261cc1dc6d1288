"""The tracks below a rank's lanes: what they show, at most and at any instant, and how they come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.metrics import METRICS
from generator.timeline.metrics.lanes import PIPELINE_WORK
from generator.timeline.spans import Timeline
from tests.browser.conftest import reader_of
from tests.browser.packed import ask, provide, write_page
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME, state
from tests.committed import ids_with_steps, manifest, timeline

RUNS = ids_with_steps()
NUMBERED = [r for r in RUNS if manifest(r).microbatches > 1]
SHOWN = ("pp-1f1b", "ddp", "fsdp", "3d")
#: How many instants of a step are asked for.
INSTANTS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with reader_of(browser, viewport={"width": 1280, "height": 1400}, reduced_motion="reduce") as found:
        yield found.page
        assert not found.complaints


@pytest.fixture(scope="module")
def data(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = write_page(tmp_path_factory.mktemp("data"))
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{path}")
        yield reader.page
        assert not reader.complaints


def said(data: Page, run_id: str, track: str, instants: list[int]) -> list[list[list[list[str]]]]:
    """What a track says of each rank at each instant: names and values."""
    provide(data, run_id)
    code = """(async () => {
      const model = Shardbook.lanes.model(await Shardbook.columns.of(a), "isolated");
      return model.ranks.map((_, r) => c.map((t) => Shardbook.timeline.tracks[b].say(model, r, t)));
    })()"""
    found: list[list[list[list[str]]]] = ask(data, code, run_id, track, instants)
    return found


def at_most(data: Page, run_id: str, track: str) -> list[str]:
    provide(data, run_id)
    code = """(async () => {
      const model = Shardbook.lanes.model(await Shardbook.columns.of(a), "isolated");
      return model.ranks.map((_, r) => Shardbook.timeline.tracks[b].most(model, r));
    })()"""
    found: list[str] = ask(data, code, run_id, track)
    return found


def written(data: Page, values: list[int]) -> list[str]:
    """Bytes as the page writes them."""
    found: list[str] = ask(data, "a.map(Shardbook.scale.bytes)", values)
    return found


def instants(of: Timeline) -> list[int]:
    return [of.step_ns * k // INSTANTS + 7 for k in range(INSTANTS)]


def in_flight(of: Timeline, rank: int, at: int) -> int:
    """Bytes of the calls that have all their members and are not complete."""
    return sum(c.bytes for c in of.calls for m in c.members if m.rank == rank and m.begin_ns <= at < m.end_ns)


@pytest.mark.parametrize("run_id", SHOWN)
def test_bytes_in_flight_are_those_of_the_calls_under_way(data: Page, run_id: str) -> None:
    of = timeline(run_id)
    when = instants(of)
    found = said(data, run_id, "bytes", when)
    for rank, lane in enumerate(of.ranks):
        values = written(data, [in_flight(of, lane.rank, at) for at in when])
        assert found[rank] == [[["bytes in flight", value]] for value in values]
    begins = [[m.begin_ns for c in of.calls for m in c.members if m.rank == r.rank] for r in of.ranks]
    most = [max(in_flight(of, r.rank, at) for at in begins[i]) for i, r in enumerate(of.ranks)]
    assert at_most(data, run_id, "bytes") == written(data, most)


@pytest.mark.parametrize("run_id", NUMBERED)
def test_micro_batches_in_flight_are_at_most_what_the_metric_says(data: Page, run_id: str) -> None:
    of = timeline(run_id)
    most = [METRICS["in_flight"](of, rank=r.rank) for r in of.ranks]
    assert at_most(data, run_id, "microbatches") == [str(m) for m in most]


@pytest.mark.parametrize("run_id", ["pp-1f1b", "3d"])
def test_micro_batches_are_held_from_forward_to_the_end_of_backward(data: Page, run_id: str) -> None:
    of = timeline(run_id)
    when = instants(of)
    found = said(data, run_id, "microbatches", when)
    for rank, lane in enumerate(of.ranks):
        spans = lane.computation
        work = np.isin(spans.activity, PIPELINE_WORK)
        for k, at in enumerate(when):
            held = set(spans.microbatch[work & (spans.start_ns <= at)].tolist())
            held &= set(spans.microbatch[work & (spans.end_ns > at)].tolist())
            assert found[rank][k] == [["micro-batches", str(len(held))]]


@pytest.mark.parametrize("run_id", SHOWN)
def test_memory_is_said_by_category(data: Page, run_id: str) -> None:
    of = timeline(run_id)
    when = instants(of)
    found = said(data, run_id, "memory", when)
    for rank, lane in enumerate(of.ranks):
        for k, at in enumerate(when):
            row = lane.memory.bytes[max(0, int(np.searchsorted(lane.memory.time_ns, at, side="right")) - 1)]
            held = [(name, int(n)) for name, n in zip(MEMORY_CATEGORIES, row, strict=True) if n]
            values = written(data, [n for _, n in held])
            assert found[rank][k] == [[name, value] for (name, _), value in zip(held, values, strict=True)]


def press(page: Page, key: str) -> None:
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press(key)
    page.evaluate(FRAME)


TRACKS = [
    ("memory", "y", "memory"),
    ("bytes in flight", "b", "bytes"),
    ("micro-batches", "i", "microbatches"),
]


@pytest.mark.parametrize(("words", "key", "name"), TRACKS)
def test_a_track_comes_and_goes_by_key_and_by_menu(
    page: Page, folder: Path, words: str, key: str, name: str
) -> None:
    open_run(page, folder, "pp-1f1b")
    rows = "timeline.geometry().layout.ranks.every((r) => r.lanes.some((l) => l.track && l.name === NAME))"
    shown = rows.replace("NAME", f"'{name}'")
    was = page.evaluate(shown)
    assert was == (name == "memory")
    height = page.evaluate("timeline.canvas.clientHeight")
    press(page, key)
    assert page.evaluate(shown) != was
    assert (page.evaluate("timeline.canvas.clientHeight") > height) != was
    menu = page.locator(".tl-menu summary")
    menu.focus()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name=words, exact=True)
    expect(button).to_have_attribute("aria-pressed", str(not was).lower())
    button.click()
    assert page.evaluate(shown) == was
    expect(button).to_have_attribute("aria-pressed", str(was).lower())


def test_the_menu_closes_when_the_reader_goes_on(page: Page, folder: Path) -> None:
    open_run(page, folder, "pp-1f1b")
    page.locator(".tl-menu summary").click()
    expect(page.locator(".tl-menu")).to_have_attribute("open", "")
    page.locator(".tl-stage").click(position={"x": 300, "y": 60})
    expect(page.locator(".tl-menu")).not_to_have_attribute("open", "")


def test_a_run_offers_only_tracks_that_it_has(page: Page, folder: Path) -> None:
    open_run(page, folder, "single")
    page.locator(".tl-menu summary").click()
    offered = page.locator(".tl-menu .tl-word").all_inner_texts()
    assert "memory" in offered
    assert "bytes in flight" not in offered
    assert "micro-batches" not in offered


@pytest.mark.parametrize("name", ["memory", "bytes", "microbatches"])
def test_the_tip_over_a_track_says_its_exact_value(page: Page, folder: Path, name: str) -> None:
    open_run(page, folder, "pp-1f1b", f"#t=made;tracks={name}")
    for part in (0.3, 0.31, 0.7):
        x, y, wanted = page.evaluate(
            """([name, part]) => {
              const g = timeline.geometry(), box = g.box(1, name), x = Math.round(g.left + part * g.plot);
              const said = Shardbook.timeline.tracks[name].say(timeline.model, 1, g.ns(x));
              const at = timeline.canvas.getBoundingClientRect();
              return [at.left + x, at.top + box.y + box.h / 2, said.map((v) => v.join(" "))];
            }""",
            [name, part],
        )
        page.mouse.move(x, y)
        page.evaluate(FRAME)
        expect(page.locator(".tl-tip")).to_be_visible()
        text = page.locator(".tl-tip").inner_text()
        assert wanted
        assert all(words in text for words in wanted)
    page.mouse.move(2, 2)
    expect(page.locator(".tl-tip")).to_be_hidden()


def test_the_details_of_a_selection_say_what_the_tracks_show_at_its_begin(page: Page, folder: Path) -> None:
    open_run(page, folder, "pp-1f1b", "#t=made;tracks=bytes.microbatches")
    for _ in range(3):
        press(page, ".")
    chosen = state(page, "selected")
    start = page.evaluate("timeline.span(timeline.state.selected).from")
    of = timeline("pp-1f1b")
    (flying,) = written(page, [in_flight(of, chosen["rank"], round(start))])
    details = page.locator(".tl-facts")
    assert details.locator("dt", has_text="bytes in flight").locator("+ dd").inner_text() == flying
    assert details.locator("dt", has_text="micro-batches").locator("+ dd").inner_text().isdigit()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_track_is_as_high_as_its_value(browser: Browser, folder: Path, theme: str) -> None:
    """At 4 micro-batches of at most 4 the whole height has colour; at none, nothing has."""
    with reader_of(browser, viewport={"width": 1280, "height": 1400}, color_scheme=theme) as reader:
        page = reader.page
        open_run(page, folder, "pp-1f1b", "#t=made;tracks=microbatches")
        painted = """(part) => {
          const g = timeline.geometry(), { y, h } = g.box(0, "microbatches"), { dpr } = g;
          timeline.draw();
          const x = Math.round((g.left + part * g.plot) * dpr);
          const { data } = timeline.context.getImageData(x, 0, 1, timeline.canvas.height);
          const hex = (v) => v.toString(16).padStart(2, "0"), { ground } = timeline.colours;
          const pixel = (yy) => [...data.slice(4 * Math.round(yy * dpr), 4 * Math.round(yy * dpr) + 3)];
          return [y + 2, y + h - 2].map((yy) => "#" + pixel(yy).map(hex).join("") !== ground);
        }"""
        assert page.evaluate(painted, 0.3) == [True, True]
        assert page.evaluate(painted, 0.999) == [False, False]
