"""Finding, filtering and measuring events of a timeline, by mouse and by keyboard, on committed runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from generator.timeline import intervals
from generator.timeline.intervals import Intervals
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Activity, Call, Timeline
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import ask, provide, write_page
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME, box_of, state
from tests.committed import ids_with_steps, timeline

MS = 1_000_000
RUNS = ids_with_steps()
#: Sums over some area of a run's step, with filters.
SUMS = """(async () => {
  const model = Shardbook.lanes.model(await Shardbook.columns.of(a), b);
  const { times, calls } = Shardbook.measure.sums(model, c, d);
  for (const name in times) if (!times[name]) delete times[name];
  return { times, calls: [...calls].map((call) => model.calls.indexOf(call)).sort((p, q) => p - q) };
})()"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("finding")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 1300}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader, folder: Path) -> Page:
    """DDP on four ranks: eight layers, nine all-reduces in one group, no micro-batches."""
    open_run(reader.page, folder, "ddp")
    return reader.page


def panel(page: Page) -> Locator:
    return page.locator("details", has=page.locator(".tl-find"))


def opened(page: Page) -> Locator:
    """The panel, opened by its key."""
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find")).to_be_focused()
    return panel(page)


def count(page: Page) -> Locator:
    return panel(page).locator("form output")


def rows(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.evaluate(
        "() => [...document.querySelectorAll('.tl-list tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return found


def chosen(page: Page) -> Any:
    """What is selected, with the call it is part of."""
    return page.evaluate(
        """() => {
          const { rank, lane, index } = timeline.state.selected ?? {}, { ranks, calls } = timeline.model;
          return lane && { rank, lane, call: calls[ranks[rank][lane].call[index]] ?? null };
        }"""
    )


def comm_index(page: Page, rank: int, nth: int = 0) -> int:
    """The first span of the nth call of a rank."""
    found: int = page.evaluate(
        "([rank, nth]) => { const { call } = timeline.model.ranks[rank].comm;"
        " return call.indexOf([...new Set(call)][nth]); }",
        [rank, nth],
    )
    return found


# ---- search


def test_matches_are_counted_and_stepped_through_by_keyboard(page: Page) -> None:
    opened(page)
    page.keyboard.type("all-reduce layer 3")
    calls = [c for c in timeline("ddp").calls if c.layer == 3]
    total = sum(len(c.members) for c in calls)
    expect(count(page)).to_have_text(f"0 of {total}")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text(f"1 of {total}")
    first = chosen(page)
    assert (first["lane"], first["call"]["op"], first["call"]["layer"]) == ("comm", "all_reduce", 3)
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press("n")
    expect(count(page)).to_have_text(f"2 of {total}")
    assert chosen(page) != first
    page.keyboard.press("Shift+N")
    expect(count(page)).to_have_text(f"1 of {total}")
    assert chosen(page) == first
    # Round the end, both ways.
    page.keyboard.press("Shift+N")
    expect(count(page)).to_have_text(f"{total} of {total}")
    page.keyboard.press("n")
    expect(count(page)).to_have_text(f"1 of {total}")


def test_with_nothing_selected_the_previous_match_is_the_last(page: Page) -> None:
    opened(page)
    page.keyboard.type("optimizer phase")
    expect(count(page)).to_have_text("0 of 4")
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press("Shift+N")
    expect(count(page)).to_have_text("4 of 4")


def test_matches_are_stepped_through_by_mouse(page: Page) -> None:
    page.get_by_text("Find and list events").click()
    search = page.get_by_role("searchbox", name="Find")
    expect(search).to_be_focused()
    search.fill("optimizer phase")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(count(page)).to_have_text("1 of 4")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(count(page)).to_have_text("2 of 4")
    page.get_by_role("button", name="Previous", exact=True).click()
    expect(count(page)).to_have_text("1 of 4")
    # Selected on the canvas it is found, too.
    here = page.evaluate("timeline.model.ranks[3].phase.kind.indexOf(4)")
    page.mouse.click(*box_of(page, 3, "phase", here))
    assert chosen(page)["rank"] == 3
    expect(count(page)).to_have_text("{} of 4".format(page.evaluate(
        "() => 1 + timeline.model.ranks.map((r, i) => [r.phase.start[r.phase.kind.indexOf(4)], i])"
        ".sort((a, b) => a[0] - b[0]).findIndex(([, i]) => i === 3)"
    )))  # fmt: skip


@pytest.mark.parametrize(
    ("query", "yes", "no"),
    [
        ("layer 1", {"layer": 1}, {"layer": 10}),
        ("ALL_reduce", {"op": "all_reduce"}, {"op": "all_gather"}),
        ("all-reduce", {"op": "all_reduce"}, {"op": "reduce"}),
        ("layer 2 back", {"layer": 2, "phase": "backward"}, {"layer": 2, "phase": "forward"}),
        ("micro-batch 2 send", {"microbatch": 2}, {"microbatch": 20}),
        ("group dp rank 0", {"group": "dp"}, {"group": "tp"}),
        ("a(b[", {"group": "a(b["}, {"group": "ab"}),
        ("  ", {}, None),
    ],
)  # fmt: skip
def test_words_of_a_search_are_all_asked_for_and_numbers_are_whole(
    page: Page, query: str, yes: dict[str, Any], no: dict[str, Any] | None
) -> None:
    usual = {"op": "send", "phase": "forward", "layer": -1, "microbatch": -1, "group": ""}
    for call, expected in ((yes, True), (no, False)):
        if call is None:
            continue
        model = {"calls": [usual | call], "ranks": [{"rank": 0}], "strings": [], "microbatches": 32}
        assert page.evaluate(
            "([model, find]) => Shardbook.timeline.filter(model, 0, 'call', 0, { find })", [model, query]
        ) is expected  # fmt: skip


# ---- filters


@pytest.mark.parametrize(
    ("run_id", "offered"),
    [
        ("single", ["kind", "phase", "layer"]),
        ("ddp", ["kind", "phase", "layer"]),
        ("pp-1f1b", ["kind", "phase", "layer", "micro-batch"]),
        ("3d", ["kind", "phase", "layer", "micro-batch", "group"]),
    ],
)
def test_filters_are_offered_where_a_run_has_more_than_one_value(
    reader: Reader, folder: Path, run_id: str, offered: list[str]
) -> None:
    open_run(reader.page, folder, run_id)
    found = opened(reader.page).locator("form select")
    assert found.evaluate_all("all => all.map((s) => s.getAttribute('aria-label'))") == offered
    for name in offered:
        box = panel(reader.page).get_by_role("combobox", name=name, exact=True)
        options = box.locator("option").all_inner_texts()
        assert options[0] == f"any {name}"
        assert len(options) == len(set(options)) > 2


def test_a_filter_draws_all_others_faint(page: Page) -> None:
    opened(page)
    panel(page).get_by_role("combobox", name="phase").select_option("backward")
    assert state(page, "filters") == {"phase": "backward"}
    panel(page).get_by_role("combobox", name="phase").focus()
    page.keyboard.press("Tab")
    expect(panel(page).get_by_role("combobox", name="layer")).to_be_focused()
    page.keyboard.type("layer 3")
    assert state(page, "filters") == {"phase": "backward", "layer": "layer 3"}
    # Of one of the drawn spans: its class says whether it is faint.
    strong = page.evaluate(
        """() => timeline.lanes.flatMap((lanes, r) => Object.keys(lanes).flatMap((name) => {
          const { cls, span } = lanes[name], { kind, layer, call } = timeline.model.ranks[r][name];
          return [...cls].map((c, k) => [c, span ? span[k] : k]).filter(([c]) => c < 32)
            .map(([, i]) => [name === "comm" ? timeline.model.calls[call[i]].phase : kind[i], layer[i]]);
        }))"""
    )
    assert {tuple(s) for s in strong} == {(Activity.BACKWARD, 3), ("backward", 3)}
    page.evaluate("timeline.stage.focus()")
    expect(panel(page).locator("tbody tr").first).to_contain_text("layer 3 · layer · backward · rank")
    for name in ("phase", "layer"):
        panel(page).get_by_role("combobox", name=name).select_option("")
    assert state(page, "filters") == {}
    assert page.evaluate(
        "timeline.lanes.every((l) => Object.values(l).every(({ cls }) => !cls.some((c) => c > 31)))"
    )


# ---- ruler and area


BLOCKS = (Activity.OPTIMIZER, Activity.FORWARD)


def first_span(page: Page, activity: Activity) -> int:
    found: int = page.evaluate("(kind) => timeline.model.ranks[0].phase.kind.indexOf(kind)", int(activity))
    return found


def test_the_time_between_two_marks_by_keyboard(page: Page) -> None:
    for activity in BLOCKS:
        index = first_span(page, activity)
        page.evaluate(f"timeline.choose({{ rank: 0, lane: 'phase', index: {index} }})")
        page.keyboard.press("m")
    check_ruler(page)
    # One mark alone measures nothing.
    page.keyboard.press("m")
    assert len(state(page, "marks")) == 1
    assert state(page, "area") is None


def test_the_time_between_two_marks_by_mouse(page: Page) -> None:
    for activity in BLOCKS:
        page.mouse.click(*box_of(page, 0, "phase", first_span(page, activity)))
        page.get_by_role("button", name="Set a mark").click()
    check_ruler(page)


def check_ruler(page: Page) -> None:
    own = timeline("ddp").ranks[0].computation
    begins = sorted(int(own.start_ns[own.activity == a][0]) for a in BLOCKS)
    assert sorted(state(page, "marks")) == begins
    assert state(page, "area") == {"from": begins[0], "to": begins[1], "ranks": [0, 1, 2, 3]}
    between = page.evaluate("(ns) => Shardbook.scale.time(ns)", begins[1] - begins[0])
    expect(panel(page).locator("form + output")).to_contain_text(f"{between} · ")
    written = page.evaluate(
        """() => {
          const seen = [], { fillText } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.fillText = function (words, ...at) {
            seen.push(words);
            fillText.call(this, words, ...at);
          };
          timeline.draw();
          CanvasRenderingContext2D.prototype.fillText = fillText;
          return seen;
        }"""
    )
    assert between in written


def drag(page: Page, start: tuple[int, float], end: tuple[int, float]) -> None:
    """With Shift, from a rank and a time to another, ns."""
    at = [
        page.evaluate(
            """([rank, ns]) => {
              const g = timeline.geometry(), box = g.layout.ranks[rank];
              const at = timeline.canvas.getBoundingClientRect();
              return [at.left + g.x(ns), at.top + box.y + box.h / 2];
            }""",
            where,
        )
        for where in (start, end)
    ]
    page.keyboard.down("Shift")
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*((a + b) / 2 for a, b in zip(*at, strict=True)))
    page.mouse.move(*at[1])
    page.mouse.up()
    page.keyboard.up("Shift")


def test_an_area_is_dragged_with_shift(page: Page) -> None:
    view = page.evaluate("[timeline.state.from, timeline.state.to]")
    drag(page, (2, 100 * MS), (1, 60 * MS))
    area = state(page, "area")
    pixel = (view[1] - view[0]) / 1000
    assert area["from"] == pytest.approx(60 * MS, abs=2 * pixel)
    assert area["to"] == pytest.approx(100 * MS, abs=2 * pixel)
    assert area["ranks"] == [1, 2]
    assert page.evaluate("[timeline.state.from, timeline.state.to]") == view
    # The panel opens by itself and leaves the keys to the timeline, where Escape lets go.
    expect(panel(page)).to_have_attribute("open", "")
    expect(panel(page).locator("form + output")).to_contain_text(" · ranks 2 · ")
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press("Escape")
    assert state(page, "area") is None


def test_of_folded_ranks_an_area_is_no_more_than_is_dragged_over(page: Page) -> None:
    page.evaluate("timeline.update({ collapsed: [0, 1, 2, 3] })")
    drag(page, (2, 60 * MS), (2, 100 * MS))
    assert state(page, "area")["ranks"] == [2]


def test_an_area_is_extended_from_the_selection_by_keyboard(page: Page) -> None:
    index = comm_index(page, 2, 1)
    page.evaluate(f"timeline.choose({{ rank: 2, lane: 'comm', index: {index} }})")
    span = page.evaluate("timeline.span(timeline.state.selected)")
    start, end = page.evaluate("[timeline.state.from, timeline.state.to]")
    by = (end - start) / 50
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expected = {"from": span["from"], "to": pytest.approx(span["to"] + 2 * by), "ranks": [2]}
    assert state(page, "area") == expected
    page.keyboard.press("Shift+ArrowLeft")
    expected["from"] = pytest.approx(span["from"] - by)
    assert state(page, "area") == expected
    page.keyboard.press("Shift+ArrowDown")
    expected["ranks"] = [0, 1, 2, 3]
    assert state(page, "area") == expected
    # Neither the view nor the selection has moved, and plain arrows still move the view.
    assert page.evaluate("[timeline.state.from, timeline.state.to]") == [start, end]
    assert state(page, "selected") == {"rank": 2, "lane": "comm", "index": index}
    for _ in range(60):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowLeft")
    step = timeline("ddp").step_ns
    assert state(page, "area") == {"from": 0, "to": step, "ranks": [0, 1, 2, 3]}
    page.keyboard.press("w")
    page.keyboard.press("ArrowRight")
    assert state(page, "from") > 0


def test_sums_of_an_area_are_pythons(browser: Browser, folder: Path) -> None:
    choose = random.Random(7)
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{write_page(folder)}")
        for run_id in RUNS:
            provide(reader.page, run_id)
            for mode in ("isolated", "recorded"):
                t = timeline(run_id, mode)
                edges = sorted(choose.sample(range(t.step_ns + 1), 2))
                ranks = sorted(choose.sample(range(len(t.ranks)), choose.randint(1, len(t.ranks))))
                for start, end, some in ((0, t.step_ns, list(range(len(t.ranks)))), (*edges, ranks)):
                    area = {"from": start, "to": end, "ranks": some}
                    assert ask(reader.page, SUMS, run_id, mode, area, {}) == sums(t, start, end, some), (
                        run_id, mode, area,
                    )  # fmt: skip
        assert not reader.complaints


def bar(call: Call, member: Any) -> int:
    """Where a rank's part in a call begins: a message has no wait."""
    found: int = member.begin_ns if call.point_to_point else member.arrive_ns
    return found


def sums(t: Timeline, start: int, end: int, ranks: list[int]) -> dict[str, Any]:
    """By the algebra of intervals; of a whole step they are the metrics."""
    times: dict[str, int] = {}

    def add(name: str, found: Intervals) -> None:
        if length := intervals.length(intervals.clip(found, start, end)):
            times[name] = times.get(name, 0) + length

    for r in ranks:
        rank, own = t.ranks[r], t.ranks[r].computation

        def when(*activities: Activity, own: Any = own) -> Intervals:
            mask = [a in activities for a in own.activity.tolist()]
            return intervals.union(own.start_ns[mask], own.end_ns[mask])

        for activity in Activity:
            if activity != Activity.IDLE:
                add(activity.name.lower(), when(activity))
        members = [(c, m) for c in t.calls for m in c.members if m.rank == rank.rank]
        add("transfer", intervals.union([m.begin_ns for _, m in members], [m.end_ns for _, m in members]))
        waiting = [m for c, m in members if not c.point_to_point]
        add("wait", intervals.union([m.arrive_ns for m in waiting], [m.begin_ns for m in waiting]))
    if (start, end) == (0, t.step_ns):
        for name in ("wait", "transfer"):
            assert times.get(name, 0) == sum(METRICS[name].function(t, rank=t.ranks[r].rank) for r in ranks)
    wanted = {t.ranks[r].rank for r in ranks}
    calls = [
        i for i, c in enumerate(t.calls)
        if any(m.rank in wanted and m.end_ns > start and bar(c, m) < end for m in c.members)
    ]  # fmt: skip
    return {"times": times, "calls": calls}


def test_sums_are_those_of_what_filters_leave(page: Page) -> None:
    opened(page)
    panel(page).get_by_role("combobox", name="kind").select_option("all_reduce")
    panel(page).get_by_role("combobox", name="layer").select_option("layer 3")
    t = timeline("ddp")
    calls = [c for c in t.calls if c.layer == 3]
    moving = sum(
        intervals.length(intervals.union(
            [m.begin_ns for c in calls for m in c.members if m.rank == r],
            [m.end_ns for c in calls for m in c.members if m.rank == r],
        ))
        for r in range(4)
    )  # fmt: skip
    time, size = page.evaluate(
        "([ns, bytes]) => [Shardbook.scale.time(ns), Shardbook.scale.bytes(bytes)]",
        [moving, sum(c.bytes for c in calls)],
    )
    said = panel(page).locator("form + output")
    expect(said).to_contain_text(f" · transfer {time} · calls {len(calls)} · {size}")
    expect(said).not_to_contain_text("backward")


# ---- the table


def test_the_table_lists_what_is_in_view_or_in_the_area(page: Page) -> None:
    opened(page)
    page.keyboard.type("forward phase")
    assert [r[0] for r in rows(page)].count("forward · phase · rank 2") == 1
    assert len(rows(page)) == 4
    page.evaluate("timeline.look(0.5 * timeline.model.stepNs, timeline.model.stepNs)")
    assert rows(page) == []
    page.evaluate("timeline.update({ area: { from: 0, to: 30e6, ranks: [1, 3] } })")
    assert sorted(r[0] for r in rows(page)) == ["forward · phase · rank 1", "forward · phase · rank 3"]


def test_the_table_is_capped_and_says_of_how_many(page: Page) -> None:
    opened(page)
    assert len(rows(page)) == 100
    total = page.evaluate(
        """() => timeline.lanes.reduce((sum, lanes, r) => sum + Object.keys(lanes).reduce((s, name) =>
          s + [...lanes[name].cls].filter((_, k) => timeline.block(r, name, k)[0] === k).length, 0), 0)"""
    )
    assert total > 1000
    expect(count(page)).to_have_text(f"0 of {total}")
    expect(panel(page).locator("form + output")).to_contain_text(f" · events {total} · ranks 4 · ")


def test_the_table_is_sorted_by_begin_or_by_duration(page: Page) -> None:
    opened(page)
    begins = [float(r[1].replace("\u2009", "")) for r in rows(page)]
    assert begins == sorted(begins)
    page.get_by_role("checkbox", name="longest first").check()
    longest = rows(page)
    assert len(longest) == 100
    of = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}
    lengths = [float(number) * of[unit] for number, unit in (r[2].split("\u2009") for r in longest)]
    assert lengths == sorted(lengths, reverse=True)
    page.get_by_role("checkbox", name="longest first").focus()
    page.keyboard.press("Space")
    assert [float(r[1].replace("\u2009", "")) for r in rows(page)] == begins


def test_rows_select_events_by_mouse_and_by_keyboard(page: Page) -> None:
    opened(page)
    page.keyboard.type("optimizer phase")
    buttons = panel(page).locator("tbody").get_by_role("button")
    buttons.nth(1).click()
    expect(count(page)).to_have_text("2 of 4")
    expect(page.locator(".tl-details")).to_contain_text("optimizer")
    expect(page.locator("[aria-live]")).to_contain_text("optimizer")
    # Focus stays where it is, and goes on.
    expect(buttons.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text("3 of 4")
    expect(buttons.nth(2)).to_be_focused()


# ---- the call on the other ranks


def test_the_same_call_on_the_next_rank(page: Page) -> None:
    page.mouse.click(*box_of(page, 1, "comm", comm_index(page, 1, 2)))
    first = chosen(page)
    seen = []
    for key in ("j", "j", "j", "j", "Shift+J", "Shift+J"):
        page.keyboard.press(key)
        now = chosen(page)
        assert (now["lane"], now["call"]) == ("comm", first["call"])
        seen.append(now["rank"])
    assert seen == [2, 3, 0, 1, 0, 3]
    # By mouse: the rows of a search for it.
    page.get_by_text("Find and list events").click()
    page.get_by_role("searchbox").fill(f"all-reduce layer {first['call']['layer']} rank 2")
    panel(page).locator("tbody").get_by_role("button").first.click()
    assert chosen(page)["rank"] == 2


def test_of_a_message_the_other_side(reader: Reader, folder: Path) -> None:
    open_run(reader.page, folder, "pp-1f1b")
    page = reader.page
    rank = page.evaluate(
        """() => {
          const { ranks, calls } = timeline.model, c = calls.findIndex((call) => call.members.length > 1
            && call.members.every((m) => ranks[m.rank].comm.call.includes(calls.indexOf(call))));
          timeline.choose({ rank: calls[c].members[0].rank, lane: "comm",
            index: ranks[calls[c].members[0].rank].comm.call.indexOf(c) });
          return calls[c].members[1].rank;
        }"""
    )
    call = chosen(page)["call"]
    page.keyboard.press("j")
    assert chosen(page) == {"rank": rank, "lane": "comm", "call": call}


@pytest.mark.parametrize("selected", ["null", "{ rank: 0, lane: 'phase', index: 3 }"])
def test_what_is_no_call_has_no_next_rank(page: Page, selected: str) -> None:
    page.evaluate(f"timeline.update({{ selected: {selected} }})")
    before = state(page, "selected")
    page.keyboard.press("j")
    assert state(page, "selected") == before


# ---- links, help, and everybody


def test_a_link_leads_to_the_same_search_filters_area_and_marks(page: Page, folder: Path) -> None:
    opened(page)
    page.keyboard.type("all-reduce")
    panel(page).get_by_role("combobox", name="layer").select_option("layer 3")
    page.evaluate("timeline.update({ marks: [90e6, 20e6] })")
    page.evaluate("timeline.update({ area: { from: 10e6, to: 200e6, ranks: [1, 2] } })")
    fields = ("filters", "area", "marks")
    before = [state(page, f) for f in fields]
    assert before[0] == {"find": "all-reduce", "layer": "layer 3"}
    seen = rows(page)
    page.evaluate("timeline.write()")
    fragment = page.evaluate("location.hash")
    assert set(fragment) < set("#=;.-%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
    open_run(page, folder, "ddp", fragment)
    page.evaluate(FRAME)
    assert [state(page, f) for f in fields] == before
    expect(panel(page)).to_have_attribute("open", "")
    expect(page.get_by_role("searchbox", name="Find")).to_have_value("all-reduce")
    expect(panel(page).get_by_role("combobox", name="layer")).to_have_value("layer 3")
    assert rows(page) == seen != []


def test_an_area_of_ranks_that_a_run_has_not_is_empty(reader: Reader, folder: Path) -> None:
    open_run(reader.page, folder, "ddp", "#t=made;area=10.1000000.7")
    expect(panel(reader.page).locator("form + output")).to_contain_text(" · events 0 · ranks 1 · calls 0")


def test_the_panel_is_closed_and_costs_nothing_until_it_is_asked_for(page: Page) -> None:
    assert not panel(page).evaluate("box => box.open")
    assert rows(page) == []
    assert panel(page).locator("select").count() == 0
    opened(page)
    page.keyboard.type("optimizer")
    # Closed again it stays closed, whatever is looked at.
    page.get_by_text("Find and list events").click()
    expect(panel(page)).not_to_have_attribute("open", "")
    page.evaluate("timeline.look(0, 1e8)")
    page.evaluate(FRAME)
    assert not panel(page).evaluate("box => box.open")


def test_all_of_it_is_on_the_list_of_what_can_be_done(page: Page) -> None:
    page.keyboard.press("?")
    listed = page.get_by_role("dialog")
    for words in ("Find and list events", "Next event found", "The call on the next rank", "measure an area"):
        expect(listed).to_contain_text(words)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_it_fits_with_all_of_it_open(
    browser: Browser, folder: Path, theme: Any, width: int
) -> None:
    with reader_of(browser, viewport={"width": width, "height": 900}, color_scheme=theme) as reader:
        page = reader.page
        open_run(page, folder, "3d")
        opened(page)
        page.keyboard.type("backward")
        page.evaluate("timeline.update({ area: { from: 10e6, to: 200e6, ranks: [0, 1] } })")
        page.evaluate(FRAME)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not reader.complaints
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
