"""Time what a what-if costs in the browser, on the largest run: while a slider moves, on every frame."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from generator.book import Book
from generator.publish.assets import assets
from generator.publish.pack import script
from generator.runs.manifest import FILE_NAME, read_manifest
from generator.runs.reader import read_run_named, run_ids
from scripts import browser

#: Of one frame at 60 Hz; drawing needs its part of it.
FRAME_MS = 16
ROUNDS = 100
#: What is moved, with a number that changes from frame to frame.
WHAT_IFS = (
    "rank3={}", "forward={}", "latency={}", "bandwidth={}", "rank1={},balance", "latency={},async=all_reduce",
    "latency={},block=all_gather",
)  # fmt: skip
#: The 50th and 95th of 100 times, ms: one longest path, and the whole model that is drawn.
CODE = """async ([id, texts, rounds]) => {
  const begin = performance.now(), data = await Shardbook.columns.of(id), decoded = performance.now() - begin;
  const found = { decoded, nodes: Shardbook.graph.of(data).n, rows: [] };
  const timed = (run) => {
    const times = [];
    for (let k = 0; k < rounds; k++) {
      const from = performance.now();
      run(k);
      times.push(performance.now() - from);
    }
    times.sort((a, b) => a - b);
    return [times[rounds >> 1], times[Math.floor(rounds * 0.95)]];
  };
  for (const text of texts) {
    const what = (k) => Shardbook.whatif.parse(text.replace("{}", 1001 + k));
    found.rows.push([
      text.replace("{}", "…"),
      ...timed((k) => Shardbook.replay.schedule(data, what(k))),
      ...timed((k) => Shardbook.lanes.model(data, what(k))),
    ]);
  }
  return found;
}"""


def bench_what_if(book: Book) -> None:
    """What-ifs on the run with the most events, in a Chromium where there is one."""
    chromium = browser.chromium()
    if chromium is None:
        print("\nno Chromium: what-ifs in the browser are not timed")
        return
    manifests = [read_manifest(book.runs / run_id / FILE_NAME) for run_id in run_ids(book.runs)]
    largest = max(manifests, key=lambda m: (m.has_steps, sum(file.events for file in m.ranks)))
    run = read_run_named(book.runs, largest.id)
    link = largest.link.calibration
    data = script(run, calibration=read_run_named(book.runs, link) if link else None)
    made = assets(book.templates)
    found = in_a_page(chromium, [made.files[made.urls["book.js"]].decode(), data], largest.id)
    print(
        f"\nwhat-ifs on {largest.id}: {len(data):,} bytes, {found['nodes']:,} nodes, decoded in "
        f"{found['decoded']:.0f} ms; a frame is {FRAME_MS} ms"
        f"\n{'':32} longest path          whole model"
        f"\n{'':30} median      95 %    median      95 %   ms"
    )
    for text, *times in found["rows"]:
        print(f"{text:28}" + "".join(f"{ms:9.2f}" for ms in times))


def in_a_page(chromium: Path, scripts: list[str], run_id: str) -> Any:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for index, text in enumerate(scripts):
            (Path(folder) / f"{index}.js").write_text(text, encoding="utf-8")
        tags = "".join(f'<script src="{index}.js"></script>' for index in range(len(scripts)))
        page = Path(folder) / "page.html"
        page.write_text(f'<!doctype html><meta charset="utf-8">{tags}', encoding="utf-8")
        started = playwright.chromium.launch(executable_path=chromium, args=browser.arguments())
        tab = started.new_page()
        tab.goto(f"file://{page}")
        found = tab.evaluate(CODE, [run_id, WHAT_IFS, ROUNDS])
        started.close()
    return found
