"""What is drawn, of a made-up model: how much is looked at for it, where lanes stand, and what pixels say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import reader_of
from tests.browser.timelines import FRAME, MILLION, SMALL, bare_page, open_synthetic

#: Pixels of a box of the canvas: for each row, whether each pixel is painted.
PAINTED = """([x, y, w, h]) => {
  const copy = Object.assign(document.createElement("canvas"), { width: w, height: h });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(timeline.canvas, -x, -y);
  const { data } = context.getImageData(0, 0, w, h), { ground } = timeline.colours;
  const on = (k) => [1, 3, 5].some((c, i) => data[k + i] !== parseInt(ground.slice(c, c + 2), 16));
  return Array.from({ length: h }, (_, r) => Array.from({ length: w }, (_, c) => on(4 * (r * w + c))));
}"""
#: Views from the whole step down to two thousandths of it, sliding to and fro.
VIEWS = """(n) => Array.from({ length: n }, (_, k) => {
  const step = timeline.model.stepNs, length = step * 0.0005 ** (k / (n - 1));
  const middle = step * (0.5 + 0.4 * Math.sin(k / 5));
  return Shardbook.scale.within(middle - length / 2, middle + length / 2, step);
})"""


@pytest.fixture
def page(browser: Browser, tmp_path: Any) -> Iterator[Page]:
    with reader_of(browser, viewport={"width": 1800, "height": 1200}, reduced_motion="reduce") as reader:
        bare_page(reader.page, tmp_path)
        yield reader.page
        assert not reader.complaints


def test_a_million_events_are_drawn_by_looking_at_no_more_than_four_a_column_and_lane(page: Page) -> None:
    open_synthetic(page, MILLION, width=1762)
    size = page.evaluate(
        """() => {
          const lanes = model.ranks.flatMap((r) => Shardbook.layout.LANES.map((name) => r[name]));
          timeline.unfold = () => ({ layer: 1, operation: 1 });
          const g = timeline.geometry(), shown = g.layout.ranks.flatMap((r) => r.lanes).length;
          return { events: lanes.reduce((sum, l) => sum + l.n, 0), shown, plot: g.plot };
        }"""
    )
    assert size["events"] >= 1_000_000
    assert (size["shown"], size["plot"]) == (64, 1600)
    touched = page.evaluate(
        f"""() => ({VIEWS})(60).map(([from, to]) => {{
          timeline.shown = {{ from, to }};
          Shardbook.levels.counter.touched = 0;
          timeline.draw();
          return Shardbook.levels.counter.touched;
        }})"""
    )
    assert min(touched) > 0
    assert max(touched) <= 4 * 1600 * 64


def test_pointing_at_something_looks_at_no_lane_again(page: Page) -> None:
    open_synthetic(page, SMALL)
    touched = page.evaluate(
        """() => ["hovered", "selected"].map((field) => {
          Shardbook.levels.counter.touched = 0;
          timeline.update({ [field]: { rank: 1, lane: "phase", index: 2 } });
          timeline.draw();
          return Shardbook.levels.counter.touched;
        })"""
    )
    assert max(touched) < 200
    moved = page.evaluate(
        """() => {
          Shardbook.levels.counter.touched = 0;
          timeline.look(0, model.stepNs / 2);
          timeline.draw();
          return Shardbook.levels.counter.touched;
        }"""
    )
    assert moved > 3 * max(touched)


def test_waits_are_hatched_and_closed_transfers_solid_and_idle_is_the_ground(page: Page) -> None:
    open_synthetic(page, SMALL)
    at = page.evaluate(
        """() => {
          const g = timeline.geometry(), { comm } = model.ranks[0], box = g.box(0, "comm"), found = {};
          for (let i = 0; i < comm.n; i++) {
            const a = Math.ceil(g.x(comm.start[i])) + 2, b = Math.floor(g.x(comm.end[i])) - 2;
            if (b - a > 12) found[comm.kind[i] === 8 ? "wait" : "transfer"] ??= [a, box.y, b - a, box.h];
          }
          const lane = timeline.lanes[0].phase, phase = g.box(0, "phase");
          for (let i = 0; i + 1 < lane.n; i++) {
            const a = Math.ceil(g.x(lane.end[i])) + 1, b = Math.floor(g.x(lane.start[i + 1])) - 1;
            if (b - a > 4 && b - a < 50) found.idle ??= [a, phase.y + 1, b - a, phase.h - 2];
          }
          return found;
        }"""
    )
    wait = page.evaluate(PAINTED, at["wait"])
    assert all(wait[0])
    assert all(wait[-1])
    inside = [pixel for row in wait[1:-1] for pixel in row]
    assert 0.3 < sum(inside) / len(inside) < 0.75
    assert all(pixel for row in page.evaluate(PAINTED, at["transfer"]) for pixel in row)
    # What is painted there is the grid, a column in a hundred.
    idle = [pixel for row in page.evaluate(PAINTED, at["idle"]) for pixel in row]
    assert sum(idle) / len(idle) <= 1 / at["idle"][2] + 1e-9


def test_layers_get_names_and_operators_appear_as_they_become_wide_enough(page: Page) -> None:
    open_synthetic(page, {**SMALL, "layers": 12, "microbatches": 8})
    heights = page.evaluate(
        """() => [1, 0.1, 0.004].map((share) => {
          timeline.look(0, model.stepNs * share);
          const { lanes } = timeline.geometry().layout.ranks[0];
          return [lanes.find((l) => l.name === "layer").h, lanes.find((l) => l.name === "operation")?.h ?? 0];
        })"""
    )
    assert heights[0][0] < heights[-1][0] == 15
    assert heights[0][1] == 0
    assert heights[-1][1] == 14
    words = page.evaluate(
        """() => {
          const words = [], write = timeline.context.fillText;
          timeline.context.fillText = (text) => words.push(text);
          timeline.draw();
          timeline.context.fillText = write;
          return words;
        }"""
    )
    assert "layer 0" in words
    assert {"operators", "layers", "comm."} <= set(words)
    assert any("mm" in word or "gelu" in word for word in words)


def test_words_never_leave_their_block(page: Page) -> None:
    open_synthetic(page, {**SMALL, "ranks": 2, "microbatches": 12})
    wrong = page.evaluate(
        f"""() => {{
          const wrong = [], {{ context }} = timeline, write = context.fillText.bind(context);
          let seen = 0;
          for (const [from, to] of ({VIEWS})(25)) {{
            timeline.shown = {{ from, to }};
            const g = timeline.geometry();
            context.fillText = (text, x, y) => {{
              const half = context.measureText(text).width / 2;
              if (context.textAlign !== "center") return;
              seen++;
              // Some lane has ground or one block under all of the words.
              const row = g.layout.ranks.flatMap((r) => r.lanes.map((l) => [r.index, l])).find(([,
                l]) => y >= l.y && y <= l.y + l.h);
              const lane = timeline.lanes[row[0]][row[1].name], a = g.ns(x - half), b = g.ns(x + half);
              const i = Shardbook.levels.find(lane, (a + b) / 2), [first, last] = i < 0 ? [0, -1]
                : Shardbook.levels.blockOf(lane, i);
              const inside = last >= 0 && lane.start[first] <= a && lane.end[last] >= b;
              const gap = (i < 0 || lane.end[last] <= a) && (last + 1 >= lane.n || lane.start[Math.max(0,
                last + 1)] >= b);
              if (!inside && !gap) wrong.push(text);
              void write;
            }};
            timeline.draw();
          }}
          return {{ wrong, seen }};
        }}"""
    )
    assert wrong["seen"] > 100
    assert not wrong["wrong"]


def test_ranks_are_grouped_with_headings_and_collapse(page: Page) -> None:
    open_synthetic(page, {**SMALL, "ranks": 8})
    plain = page.evaluate("timeline.geometry().layout")
    page.evaluate("timeline.update({ groupBy: 'node', collapsed: [0, 1, 2] })")
    page.evaluate(FRAME)
    grouped = page.evaluate("timeline.geometry().layout")
    assert [h["words"] for h in grouped["headings"]] == ["node 0", "node 1"]
    assert [r["index"] for r in grouped["ranks"]] == list(range(8))
    assert [r["collapsed"] for r in grouped["ranks"]] == [True] * 3 + [False] * 5
    assert grouped["ranks"][0]["h"] < plain["ranks"][0]["h"] / 2
    tops = [r["y"] for r in grouped["ranks"]]
    assert tops == sorted(tops)
    for rank in grouped["ranks"]:
        for lane in rank["lanes"]:
            hit = page.evaluate(
                "([at, y]) => Shardbook.layout.hit(at, y)", [grouped, lane["y"] + lane["h"] / 2]
            )
            assert hit == {"rank": rank["index"], "lane": lane["name"]}


@pytest.mark.parametrize("ratio", [1, 1.25, 2, 3])
def test_edges_are_whole_pixels_of_the_screen(browser: Browser, tmp_path: Any, ratio: float) -> None:
    with reader_of(browser, device_scale_factor=ratio, viewport={"width": 1000, "height": 700}) as reader:
        bare_page(reader.page, tmp_path)
        open_synthetic(reader.page, SMALL)
        found = reader.page.evaluate(
            """() => {
              const g = timeline.geometry(), box = g.box(1, "phase"), d = g.dpr, { rgb } = timeline.colours;
              const copy = Object.assign(document.createElement("canvas"), { width: Math.round(g.plot * d),
                height: 1 });
              const context = copy.getContext("2d", { willReadFrequently: true });
              // A row above the words.
              context.drawImage(timeline.canvas, -Math.round(g.left * d), -Math.round(box.y * d) - 1);
              const { data } = context.getImageData(0, 0, copy.width, 1), marks = new Set(rgb),
                out = { mark: 0, ground: 0, other: 0 };
              for (let k = 0; k < data.length; k += 4) {
                const hex = "#" + [0, 1, 2].map((i) => data[k + i].toString(16).padStart(2, "0")).join("");
                const mark = marks.has(data[k + 2] << 16 | data[k + 1] << 8 | data[k]);
                out[mark ? "mark" : hex === timeline.colours.ground ? "ground" : "other"]++;
              }
              return { ...out, width: copy.width, ticks: Shardbook.scale.ticks(g.from, g.to, g.plot,
                90).at.length };
            }"""
        )
        assert found["mark"] > 0.5 * found["width"]
        assert found["ground"] > 3
        # Lines of the grid, which a fraction of a pixel spreads over two.
        assert found["other"] <= found["ticks"] * (2 * ratio)
