"""What a timeline shows across ranks: what belongs together, groups and folds, critical path, bubble."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from generator.timeline import intervals
from generator.timeline.critical import Piece, _add, _piece, critical_path
from generator.timeline.graph import Graph
from generator.timeline.metrics import METRICS
from generator.timeline.metrics.lanes import PIPELINE_WORK, activity
from generator.timeline.metrics.pipeline import _still
from generator.timeline.replay import Schedule, recorded_schedule, replay
from generator.timeline.spans import Activity
from generator.timeline.whatif import replay_what_if, replayable, what_if_graph
from generator.timeline.whatif_text import parse_what_if
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import ask, provide, write_page
from tests.browser.run_page import open_run
from tests.browser.timelines import FRAME, box_of, state
from tests.committed import calibration_of, ids_with_steps, manifest, run, timeline

RUNS = ids_with_steps()
PIPELINES = [r for r in RUNS if manifest(r).mesh.pp > 1]
SHOWN = ("pp-1f1b", "ddp", "fsdp", "3d")
#: Records what is outlined (ns, ns, rank, lane), which words are flagged, and lines over the lanes.
SPY = """() => {
  const g = () => timeline.geometry(), { select, across } = Shardbook, { outline, flag } = select;
  window.seen = { outlines: [], flags: [], lines: [] };
  const lane = (y) => {
    const of = (rank) => rank.lanes.filter((box) => box.y === y).map((box) => [rank.index, box.name]);
    return g().layout.ranks.flatMap(of)[0];
  };
  select.outline = (context, c, x0, y, x1, h, light) => {
    seen.outlines.push([Math.round(g().ns(x0)), Math.round(g().ns(x1)), ...lane(y), Boolean(light)]);
    outline(context, c, x0, y, x1, h, light);
  };
  select.flag = (context, geometry, ns, words, y) => {
    if (words) seen.flags.push([words, ns]);
    flag(context, geometry, ns, words, y);
  };
  const { prototype } = CanvasRenderingContext2D, { beginPath, lineTo, stroke } = prototype;
  let points = [];
  prototype.beginPath = function () {
    points = [];
    beginPath.call(this);
  };
  prototype.lineTo = function (x, y) {
    points.push([x, y]);
    lineTo.call(this, x, y);
  };
  prototype.stroke = function (...path) {
    const over = this.lineWidth === 1.5 && this.canvas === timeline.canvas;
    if (over) seen.lines.push({ points, dashed: this.getLineDash().length > 0 });
    stroke.apply(this, path);
  };
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with reader_of(browser, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as found:
        yield found
        assert not found.complaints


@pytest.fixture
def page(reader: Reader) -> Page:
    return reader.page


@pytest.fixture(scope="module")
def data(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with nothing but the script, for what has no picture."""
    path = write_page(tmp_path_factory.mktemp("data"))
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{path}")
        yield reader.page
        assert not reader.complaints


def drawn(page: Page) -> Any:
    """What the next frame shows: see SPY."""
    if not page.evaluate("'seen' in window"):
        page.evaluate(SPY)
    page.evaluate("() => { Object.values(seen).forEach((list) => (list.length = 0)); timeline.draw(); }")
    return page.evaluate("seen")


def press(page: Page, key: str) -> None:
    page.evaluate("timeline.stage.focus()")
    page.keyboard.press(key)
    page.evaluate(FRAME)


def from_menu(page: Page, words: str) -> None:
    page.locator(".tl-menu summary").click()
    page.get_by_role("button", name=words, exact=True).click()
    page.locator(".tl-menu summary").click()
    page.evaluate(FRAME)


# ---- calls


def collective(run_id: str) -> tuple[int, int]:
    """A call of all ranks that one of them is late for, and the rank."""
    calls = timeline(run_id).calls
    late = [max(m.arrive_ns for m in c.members) - min(m.arrive_ns for m in c.members) for c in calls]
    index = max((i for i, c in enumerate(calls) if not c.point_to_point), key=lambda i: late[i])
    return index, late[index]


@pytest.mark.parametrize("run_id", ["ddp", "fsdp", "3d"])
def test_the_members_of_a_selected_collective_are_outlined_and_joined_and_the_late_one_is_named(
    page: Page, folder: Path, run_id: str
) -> None:
    open_run(page, folder, run_id)
    index, late = collective(run_id)
    call = timeline(run_id).calls[index]
    page.evaluate("(call) => timeline.choose({ call })", index)
    page.evaluate(FRAME)
    seen = drawn(page)
    ranks = [r.rank for r in timeline(run_id).ranks]
    outlined = {(r, a, b) for a, b, r, lane, light in seen["outlines"] if lane == "comm" and not light}
    assert {(ranks.index(m.rank), m.arrive_ns, m.end_ns) for m in call.members} <= outlined
    last = max(m.arrive_ns for m in call.members)
    words = page.evaluate("(ns) => `last, by ${Shardbook.scale.time(ns)}`", late)
    assert seen["flags"] == [[words, last]]
    x = page.evaluate("(ns) => timeline.geometry().x(ns)", last)
    # A line from each member to the next, at the instant at which all are there.
    assert len(seen["lines"]) == len(call.members) - 1
    assert all(abs(px - x) < 1 for line in seen["lines"] for px, _ in line["points"])


def test_a_call_is_joined_when_the_mouse_is_over_one_of_its_members_and_when_it_is_clicked(
    page: Page, folder: Path
) -> None:
    open_run(page, folder, "ddp")
    spans = page.evaluate("Array.from(timeline.model.ranks[2].comm.kind)")
    index = max(i for i, kind in enumerate(spans) if kind == 9)
    members = len(timeline("ddp").ranks)
    page.mouse.move(*box_of(page, 2, "comm", index))
    page.evaluate(FRAME)
    seen = drawn(page)
    assert sum(1 for *_, lane, light in seen["outlines"] if lane == "comm" and light) >= members
    assert len(seen["lines"]) == members - 1
    assert seen["flags"] == []
    page.mouse.click(*box_of(page, 2, "comm", index))
    page.mouse.move(5, 5)
    page.evaluate(FRAME)
    assert len(drawn(page)["flags"]) == 1


def test_nothing_is_joined_by_a_block_that_is_no_call(page: Page, folder: Path) -> None:
    open_run(page, folder, "ddp")
    page.evaluate("timeline.choose({ rank: 0, lane: 'phase', index: 0 })")
    page.evaluate(FRAME)
    assert drawn(page)["lines"] == []


@pytest.mark.parametrize("run_id", ["pp-1f1b", "3d"])
def test_an_arrow_goes_from_the_rank_that_sends_to_the_one_that_receives(
    page: Page, folder: Path, run_id: str
) -> None:
    open_run(page, folder, run_id)
    for down in (True, False):
        index, call = next(
            (i, c)
            for i, c in enumerate(timeline(run_id).calls)
            if c.point_to_point and (c.members[1].rank > c.members[0].rank) == down
        )
        source, target = call.members
        page.evaluate("(call) => timeline.choose({ call })", index)
        page.evaluate(FRAME)
        (line,) = drawn(page)["lines"]
        (x0, y0), (x1, y1), wing, tip, other = line["points"]
        at = page.evaluate(
            """([a, b, from, to]) => {
              const g = timeline.geometry(), [p, q] = [g.box(a, "comm"), g.box(b, "comm")];
              return { x: [g.x(from), g.x(to)], source: [p.y, p.y + p.h], target: [q.y, q.y + q.h] };
            }""",
            [source.rank, target.rank, source.begin_ns, target.end_ns],
        )
        assert [x0, x1] == pytest.approx(at["x"])
        assert y0 in at["source"]
        assert y1 in at["target"]
        assert (y1 > y0) == down
        assert tip == [x1, y1]
        assert wing[1] == other[1] != y1
        assert (wing[1] < y1) == down


def test_members_stay_joined_where_64_ranks_are_folded(page: Page, folder: Path) -> None:
    open_run(page, folder, "ddp")
    page.evaluate(
        """() => {
          const { model } = timeline, rankOf = (_, r) => ({ ...model.ranks[r % 4], rank: r });
          const ranks = Array.from({ length: 64 }, rankOf);
          const calls = model.calls.map((c) => ({ ...c, ranks: ranks.map((r) => r.rank),
            members: ranks.map(({ rank }) => ({ ...c.members[rank % 4], rank })) }));
          timeline.models.clear();
          timeline.source = () => ({ ...model, ranks, calls });
          timeline.update({ mode: "recorded", collapsed: ranks.map((r) => r.rank) });
          timeline.choose({ call: 4 });
        }"""
    )
    page.evaluate(FRAME)
    seen = drawn(page)
    assert len({rank for _, _, rank, lane, _ in seen["outlines"] if lane == "comm"}) == 64
    assert len(seen["lines"]) == 63
    assert page.evaluate("timeline.canvas.clientHeight") < 64 * 24


# ---- a micro-batch on its way


def blocks_of(run_id: str, microbatch: int) -> set[tuple[int, int, int]]:
    """Rank, begin and end of each of its blocks."""
    found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for index, lane in enumerate(timeline(run_id).ranks):
        spans = lane.computation
        work = np.isin(spans.activity, PIPELINE_WORK) & (spans.microbatch == microbatch)
        for i in np.flatnonzero(work).tolist():
            key = (index, int(spans.activity[i]), int(spans.chunk[i]))
            found[key] += [int(spans.start_ns[i]), int(spans.end_ns[i])]
    return {(key[0], min(times), max(times)) for key, times in found.items()}


@pytest.mark.parametrize(
    ("run_id", "steps"), [("pp-1f1b", 6), ("pp-zbv", 12), ("3d", 8), ("accumulation", 0)]
)
def test_a_micro_batch_is_followed_down_the_stages_and_back_up(
    page: Page, folder: Path, run_id: str, steps: int
) -> None:
    open_run(page, folder, run_id)
    phase = page.evaluate("Array.from(timeline.model.ranks[0].phase.microbatch)")
    page.evaluate("(index) => timeline.choose({ rank: 0, lane: 'phase', index })", phase.index(1))
    press(page, "l")
    assert state(page, "follow") == 1
    seen = drawn(page)
    outlined = {(r, a, b) for a, b, r, lane, light in seen["outlines"] if lane == "phase" and not light}
    assert blocks_of(run_id, 1) <= outlined
    dotted = [line["points"] for line in seen["lines"] if line["dashed"]]
    assert len(dotted) == steps
    # Onwards in time, from block to block.
    assert all(x0 <= x1 for (x0, _), (x1, _) in dotted)
    expect(page.locator("[data-command='follow micro-batch']")).to_have_attribute("aria-pressed", "true")
    from_menu(page, "follow micro-batch")
    assert state(page, "follow") is None
    assert drawn(page)["lines"] == []


def test_following_another_micro_batch_takes_one_key(page: Page, folder: Path) -> None:
    open_run(page, folder, "pp-1f1b")
    press(page, "l")
    assert state(page, "follow") == 0
    phase = page.evaluate("Array.from(timeline.model.ranks[3].phase.microbatch)")
    page.evaluate("(index) => timeline.choose({ rank: 3, lane: 'phase', index })", phase.index(5))
    press(page, "l")
    assert state(page, "follow") == 5


def test_a_run_without_micro_batches_has_none_to_follow(page: Page, folder: Path) -> None:
    open_run(page, folder, "ddp")
    assert page.locator("[data-command='follow micro-batch']").count() == 0
    assert page.locator("[data-command='bubble']").count() == 0


# ---- groups and folds


def test_ranks_are_grouped_by_what_parts_them(page: Page, folder: Path) -> None:
    open_run(page, folder, "3d")
    coordinates = manifest("3d").mesh.coordinates
    ways = []
    for _ in range(5):
        if len(ways) % 2:
            from_menu(page, "group ranks")
        else:
            press(page, "g")
        by = state(page, "groupBy")
        ways.append(by)
        order = page.evaluate("timeline.geometry().layout.ranks.map((r) => r.index)")
        words = page.evaluate("timeline.geometry().layout.headings.map((h) => h.words)")
        if by:
            nodes = [rank // manifest("3d").link.ranks_per_node for rank in range(len(coordinates))]
            key = "pp" if by == "stage" else by
            values = nodes if by == "node" else [where[key] for where in coordinates]
            assert order == sorted(range(len(coordinates)), key=lambda r: values[r])
            assert words == [f"{by} {v}" for v in sorted(set(values))]
        else:
            assert order == sorted(order)
            assert words == []
    # A stage is its place in the pipeline.
    assert ways == ["stage", "node", "shard", "tp", ""]


def test_ranks_on_two_nodes_are_grouped_by_node(page: Page, folder: Path) -> None:
    open_run(page, folder, "fsdp-nodes")
    press(page, "g")
    assert state(page, "groupBy") == "node"
    assert page.evaluate("timeline.geometry().layout.headings.map((h) => h.words)") == ["node 0", "node 1"]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_rank_is_folded_and_unfolded_by_its_name_a_key_and_the_menu(
    page: Page, folder: Path, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_run(page, folder, "pp-1f1b")
    page.evaluate("timeline.choose({ rank: 2, lane: 'phase', index: 3 })")
    before = page.evaluate("timeline.canvas.clientHeight")

    def folded() -> list[int]:
        found: list[int] = page.evaluate(
            "timeline.geometry().layout.ranks.filter((r) => r.collapsed).map((r) => r.index)"
        )
        assert found == state(page, "collapsed")
        return found

    def click_name(rank: int) -> None:
        x, y = page.evaluate(
            """(rank) => {
              const { layout } = timeline.geometry(), at = timeline.canvas.getBoundingClientRect();
              const { y } = layout.ranks.find((r) => r.index === rank);
              return [at.left + 12, at.top + y + (layout.above ? -10 : 6)];
            }""",
            rank,
        )
        page.mouse.click(x, y)
        page.evaluate(FRAME)

    press(page, "c")
    assert folded() == [2]
    from_menu(page, "fold rank")
    assert folded() == []
    click_name(1)
    assert folded() == [1]
    assert page.evaluate("timeline.canvas.clientHeight") < before
    click_name(1)
    assert folded() == []
    press(page, "x")
    assert folded() == [0, 1, 3]
    from_menu(page, "fold others")
    assert folded() == []
    # What was selected stays so.
    assert state(page, "selected") == {"rank": 2, "lane": "phase", "index": 3}


# ---- the critical path


def same_path(data: Page, run_id: str, what: str, graph: Graph, schedule: Schedule) -> None:
    provide(data, run_id)
    code = """(async () => {
      const data = await Shardbook.columns.of(a), { critical, replay, whatif } = Shardbook;
      const schedule = replay.schedule(data, /^(recorded|isolated)$/.test(b) ? b : whatif.parse(b));
      return critical.path(data, schedule).map(({ node, from, to }) => [node, from, to]);
    })()"""
    found: list[Piece] = []
    for node, start, end in ask(data, code, run_id, what):
        _add(found, _piece(graph, node, start, end))
    assert tuple(reversed(found)) == critical_path(graph, schedule).pieces


@pytest.mark.parametrize("run_id", RUNS)
def test_the_critical_path_is_pythons(data: Page, run_id: str) -> None:
    isolated = replayable(run(run_id), calibration=calibration_of(run_id))
    recorded = replayable(run(run_id), mode="recorded", calibration=calibration_of(run_id)).graph
    same_path(data, run_id, "isolated", isolated.graph, replay(isolated.graph, isolated.durations))
    same_path(data, run_id, "recorded", recorded, recorded_schedule(recorded))
    ops = sorted({m.op for m in isolated.graph.matches})
    phases = ["backward=500"] if int(Activity.BACKWARD) in isolated.phase else []
    for text in (*phases, "free", *(f"{do}={ops[0]}" for do in ("async", "block") if ops and run_id != "3d")):
        what_if = parse_what_if(text)
        graph = what_if_graph(isolated, what_if)
        same_path(data, run_id, text, graph, replay_what_if(isolated, what_if))


@pytest.mark.parametrize("run_id", SHOWN)
def test_the_critical_path_is_a_line_through_the_lanes_from_begin_to_end(
    page: Page, folder: Path, run_id: str
) -> None:
    open_run(page, folder, run_id)
    assert drawn(page)["lines"] == []
    press(page, "p")
    (line,) = drawn(page)["lines"]
    left, right = page.evaluate("[timeline.geometry().left, timeline.geometry().right]")
    xs = [x for x, _ in line["points"]]
    assert xs[0] == pytest.approx(right)
    assert xs[-1] == pytest.approx(left)
    assert xs == sorted(xs, reverse=True)
    from_menu(page, "critical path")
    assert state(page, "overlays") == []
    page.get_by_role("button", name="recorded", exact=True).click()
    press(page, "p")
    (line,) = drawn(page)["lines"]
    assert line["points"][0][0] == pytest.approx(right)


# ---- the bubble


@pytest.mark.parametrize("run_id", PIPELINES)
def test_the_bubble_is_what_the_metric_measures(data: Page, run_id: str) -> None:
    provide(data, run_id)
    code = """(async () => {
      const model = Shardbook.lanes.model(await Shardbook.columns.of(a), "isolated");
      const { ranks, shares } = Shardbook.facts.of(model);
      return { gaps: ranks.map((r) => r.gaps), shares };
    })()"""
    found, of = ask(data, code, run_id), timeline(run_id)
    common = intervals.merge(*(activity(r, PIPELINE_WORK) for r in of.ranks))
    first, end = int(common[0, 0]), int(common[-1, 1])
    for rank, lane in enumerate(of.ranks):
        assert found["gaps"][rank] == intervals.clip(_still(of, lane), first, end).tolist()
        share = METRICS["bubble_fraction"](of, rank=lane.rank)
        assert found["shares"][rank] == pytest.approx(share, abs=1e-12)


def test_the_bubble_is_outlined_where_stages_are_idle(page: Page, folder: Path) -> None:
    open_run(page, folder, "pp-1f1b")
    page.evaluate(
        """() => {
          const { strokeRect } = CanvasRenderingContext2D.prototype;
          window.boxes = [];
          CanvasRenderingContext2D.prototype.strokeRect = function (x, y, w, h) {
            if (this.canvas === timeline.canvas) boxes.push([x - 0.5, x + w + 1.5]);
            strokeRect.call(this, x, y, w, h);
          };
        }"""
    )
    wanted = page.evaluate(
        """() => {
          const g = timeline.geometry(), { ranks } = Shardbook.facts.of(timeline.model);
          const edges = ranks.flatMap((r) => r.gaps).map((gap) => gap.map((ns) => Math.round(g.x(ns))));
          return edges.filter(([a, b]) => b - a > 2);
        }"""
    )
    assert len(wanted) > 20
    press(page, "u")
    page.evaluate("boxes.length = 0; timeline.draw()")
    assert page.evaluate("boxes") == wanted
    from_menu(page, "bubble")
    page.evaluate("boxes.length = 0; timeline.draw()")
    assert page.evaluate("boxes") == []


# ---- links, keys, and everybody


def test_a_link_leads_to_the_same_groups_folds_tracks_overlays_and_micro_batch(
    page: Page, folder: Path
) -> None:
    open_run(page, folder, "3d")
    for key in ("g", "l", "x", "p", "u", "b", "y"):
        press(page, key)
    fields = ("groupBy", "collapsed", "tracks", "overlays", "follow")
    wanted = {field: state(page, field) for field in fields}
    assert wanted == {
        "groupBy": "stage",
        "collapsed": [1, 2, 3, 4, 5, 6, 7],
        "tracks": ["bytes"],
        "overlays": ["critical", "bubble"],
        "follow": 0,
    }
    link = page.evaluate("Shardbook.link.print(timeline.name, timeline.state, timeline.origin)")
    assert {"by", "fold", "tracks", "over", "follow"} <= {part.split("=")[0] for part in link.split(";")}
    open_run(page, folder, "3d", f"#{link}")
    assert {field: state(page, field) for field in fields} == wanted
    assert page.locator(".notice").count() == 0


@pytest.mark.parametrize("link", ["over=nothing;tracks=nothing", "follow=99", "by=node", "fold=77"])
def test_a_link_to_what_the_run_has_not_breaks_nothing(page: Page, folder: Path, link: str) -> None:
    open_run(page, folder, "pp-1f1b", f"#t=made;{link}")
    before = page.evaluate("timeline.geometry().layout.ranks.length")
    press(page, ".")
    assert before == 4
    assert state(page, "selected") is not None


def test_a_link_that_groups_by_what_the_run_has_not_says_so(page: Page, folder: Path) -> None:
    open_run(page, folder, "3d", "#t=made;by=colour")
    expect(page.locator(".notice")).to_have_text("Ranks cannot be grouped by “colour”.")
    assert state(page, "groupBy") == ""
    assert page.evaluate("timeline.geometry().layout.headings") == []


@pytest.mark.parametrize("key", ["l", "g", "c", "x", "p", "u", "b", "i"])
def test_every_switch_says_what_it_did(page: Page, folder: Path, key: str) -> None:
    open_run(page, folder, "3d")
    live = page.locator("[aria-live=polite]").last
    said = []
    for _ in range(6):
        press(page, key)
        said.append(live.inner_text().split(": "))
    words = page.evaluate("(key) => [...timeline.commands.values()].find((c) => c.key === key).words", key)
    assert {name for name, _ in said} == {words}
    assert said[0][1] == "on"
    assert {state for _, state in said} == {"on", "off"}


def test_all_of_it_is_in_the_list_of_keys(page: Page, folder: Path) -> None:
    open_run(page, folder, "3d")
    press(page, "?")
    listed = page.get_by_role("dialog").inner_text()
    for words in (
        "Follow micro-batch",
        "Group ranks",
        "Fold rank",
        "Fold others",
        "Critical path",
        "Bubble",
        "click a rank's name",
    ):
        assert words in listed


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("run_id", SHOWN)
def test_axe_finds_nothing_in_the_menu_and_nothing_is_too_wide(
    browser: Browser, folder: Path, run_id: str, width: int, theme: str
) -> None:
    with reader_of(
        browser, viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    ) as reader:
        page = reader.page
        open_run(page, folder, run_id)
        for key in ("g", "l", "p", "u", "b", "i", "."):
            press(page, key)
        page.locator(".tl-menu summary").click()
        found = Axe().run(page)
        assert not found.violations_count, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator(".tl-menu div").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
