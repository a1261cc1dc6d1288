"""Time the interactive timeline in a headless browser: a million made-up events on 64 lanes at 1600 px.

Drawing is timed over a scripted zoom and pan, beside what a fillRect for every event in view takes in the
same run. A canvas paints when somebody looks: with a pixel read back, the painting is in the time too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from scripts import browser
from tests.browser.timelines import MILLION, bare_page

#: Px of the plot; the gutters are 162 more.
WIDTH = 1600
FRAMES = 240
#: Frames before those that count: the browser compiles what runs often.
WARM = 40

OPEN = """([size, width]) => {
  document.querySelector("figure").style.width = `${width}px`;
  window.timeline = document.querySelector("trace-timeline");
  const made = performance.now();
  window.model = syntheticModel(size);
  const begin = performance.now();
  timeline.open(() => model);
  timeline.draw();
  timeline.context.getImageData(0, 0, 1, 1);
  const ready = performance.now() - begin;
  // All four lanes of every rank, however far the view is zoomed out.
  timeline.unfold = () => ({ layer: 1, operation: 1 });
  return { ready, making: begin - made };
}"""
SCRIPT = """([frames, warm, naive]) => {
  const { levels, scale } = Shardbook, step = model.stepNs, drawing = [], seen = [], touched = [];
  const canvas = naive ? document.createElement("canvas") : timeline.canvas;
  if (naive) [canvas.width, canvas.height] = [timeline.canvas.width, timeline.canvas.height];
  const context = canvas.getContext("2d");
  const all = () => {
    const g = timeline.geometry();
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (const rank of g.layout.ranks) {
      for (const lane of rank.lanes.filter((l) => !l.track)) {
        const { n, start, end, kind } = model.ranks[rank.index][lane.name];
        for (let i = 0; i < n; i++) {
          if (end[i] < g.from || start[i] > g.to) continue;
          context.fillStyle = timeline.colours.marks[kind[i] % 7];
          context.fillRect(g.x(start[i]), lane.y, Math.max(1, g.x(end[i]) - g.x(start[i])), lane.h);
        }
      }
    }
  };
  for (let k = -warm; k < frames; k++) {
    // From the whole step down to two thousandths of it, panning to and fro.
    const length = step * 0.002 ** (Math.abs(k) / frames), middle = step * (0.5 + 0.4 * Math.sin(k / 6));
    const [from, to] = scale.within(middle - length / 2, middle + length / 2, step);
    timeline.shown = { from, to };
    levels.counter.touched = 0;
    const begin = performance.now();
    if (naive) all();
    else timeline.draw();
    const drawn = performance.now();
    context.getImageData(0, 0, 1, 1);
    if (k < 0) continue;
    drawing.push(drawn - begin);
    seen.push(performance.now() - begin);
    touched.push(levels.counter.touched);
  }
  const at = (times, share) => {
    const sorted = times.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  };
  return {
    median: at(drawing, 0.5), p95: at(drawing, 0.95), most: at(drawing, 1),
    seen: at(seen, 0.5), seen95: at(seen, 0.95), touched: Math.max(...touched),
  };
}"""
SIZE = """() => {
  const ranks = model.ranks.map((r) => Shardbook.layout.LANES.map((name) => r[name].n));
  return { events: ranks.flat().reduce((a, b) => a + b, 0), lanes: ranks.flat().length };
}"""


def memory_mb(page: Page) -> tuple[float, float]:
    """What is held after a collection: objects, and the buffers of columns and pictures."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage: dict[str, Any] = session.send("Runtime.getHeapUsage")
    return usage["usedSize"] / 1e6, usage.get("backingStorageSize", 0) / 1e6


def line(what: str, value: str, bar: str = "") -> None:
    print(f"{what:46} {value:>12}   {bar}".rstrip())


def bench_viewer() -> None:
    found = browser.chromium()
    if found is None:
        print("no Chromium: make test installs one")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=browser.arguments())
        page = started.new_page(viewport={"width": WIDTH + 200, "height": 1000})
        bare_page(page, Path(folder))
        opened = page.evaluate(OPEN, [MILLION, WIDTH + 162])
        size = page.evaluate(SIZE)
        ours = page.evaluate(SCRIPT, [FRAMES, WARM, False])
        used, buffers = memory_mb(page)
        naive = page.evaluate(SCRIPT, [8, 0, True])
        started.close()
    print(f"\nviewer: {size['events']:,} events on {size['lanes']} lanes, {WIDTH} px, {FRAMES} frames")
    line("ready: from the model to the first picture", f"{opened['ready']:.0f} ms", "≤ 1000 ms")
    line("draw, median", f"{ours['median']:.1f} ms")
    line("draw, p95", f"{ours['p95']:.1f} ms", "≤ 10 ms")
    line("draw, longest", f"{ours['most']:.1f} ms")
    line("draw and paint, median", f"{ours['seen']:.1f} ms")
    line("draw and paint, p95", f"{ours['seen95']:.1f} ms")
    line("a fillRect an event in view and paint, median", f"{naive['seen']:.0f} ms")
    line("a fillRect an event in view and paint, longest", f"{naive['seen95']:.0f} ms")
    bound = 4 * WIDTH * size["lanes"]
    line("events touched a frame, most", f"{ours['touched']:,}", f"≤ {bound:,}")
    line("memory, objects and buffers", f"{used + buffers:.0f} MB", "≤ 60 MB")


if __name__ == "__main__":
    bench_viewer()
