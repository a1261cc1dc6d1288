"""A lane seen from any distance is true: busy time is exact, gaps stay gaps, and no event disappears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import reader_of
from tests.browser.timelines import bare_page

LANES = 300
#: Random lanes of several kinds, and what is asked of each. What does not hold is returned.
TRY = """([lanes, check]) => {
  const { levels } = Shardbook, wrong = [];
  let seed = 7;
  const random = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const KINDS = {
    // gap before an event and its length, ns
    sparse: () => [10 ** (6 * random()), 10 ** (5 * random())],
    touching: () => [0, 1 + Math.floor(10 ** (5 * random()))],
    dense: () => [Math.floor(random() * 30), 1 + Math.floor(random() * 50)],
    bursts: () => [random() < 0.02 ? 1e6 * random() : Math.floor(random() * 20),
      1 + Math.floor(random() * 90)],
    instants: () => [1 + 1e4 * random(), random() < 0.5 ? 0 : 1],
    alone: () => [1e7 * random(), 10 ** (7 * random())],
  };
  for (let k = 0; k < lanes; k++) {
    const kind = Object.keys(KINDS)[k % 6], n = kind === "alone" ? 1 : 1 + Math.floor(random() * 400);
    const start = new Float64Array(n), end = new Float64Array(n), cls = new Uint8Array(n);
    let now = Math.floor(random() * 1e5);
    for (let i = 0; i < n; i++) {
      const [gap, long] = KINDS[kind]();
      start[i] = now = Math.floor(now + gap);
      end[i] = now = Math.floor(now + long);
      cls[i] = random() < 0.2 ? 255 : 4 * Math.floor(random() * 5);
    }
    if (kind === "alone") cls[0] = 4;
    const until = now + Math.floor(random() * 1e5) + 1, spans = { n, start, end };
    const lane = levels.build(spans, (i) => cls[i], until, (a, b) => cls[a] === cls[b]);
    const all = Array.from(start, (s, i) => [s, end[i], cls[i]]).filter((e) => e[2] !== 255);
    for (let view = 0; view < 4; view++) {
      const width = 1 + Math.floor(random() * 700), part = Math.floor(random() * 3);
      // Of the whole, of parts, and of whole ns a column: there events begin where columns do.
      const even = view === 3, length = even ? width * (1 + Math.floor(random() * 20))
        : until * 10 ** (-view * random());
      const middle = even ? start[Math.floor(random() * n)] - Math.floor(length / 2) : Math.max(0,
        until - length) * random();
      const from = view ? middle : 0, to = from + length, dt = (to - from) / width;
      const strip = levels.strip(width);
      levels.fill(lane, from, to, width, strip, part, 4);
      const busy = (a, b) => all.reduce((sum, [s, e]) => sum + Math.max(0, Math.min(b, e) - Math.max(a, s)),
        0);
      const say = (words) => wrong.push(`${kind} ${k}.${view}, ${width} px: ${words}`);
      check({ lane, all, strip, width, from, to, dt, busy, say, part, random });
    }
  }
  return wrong.slice(0, 5);
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with reader_of(browser) as reader:
        bare_page(reader.page, tmp_path_factory.mktemp("bare"))
        yield reader.page
        assert not reader.complaints


def wrong(page: Page, check: str) -> list[str]:
    found: list[str] = page.evaluate(f"() => ({TRY})([{LANES}, {check}])")
    return found


def test_occupancies_add_up_to_the_busy_time_of_any_window(page: Page) -> None:
    assert not wrong(
        page,
        """({ strip, from, to, dt, busy, say }) => {
          const sum = strip.share.reduce((a, b) => a + b, 0) * dt, true_ = busy(from, to);
          // A hundredth of a ns a column is taken for noise of the arithmetic.
          if (Math.abs(sum - true_) > 0.02 * strip.share.length + 1e-9 * true_) say(`${sum} is not ${true_}`);
        }""",
    )


def test_each_column_has_its_own_busy_time(page: Page) -> None:
    assert not wrong(
        page,
        """({ strip, width, from, dt, busy, say, random }) => {
          for (let k = 0; k < 20; k++) {
            const x = Math.floor(random() * width), is = strip.share[x] * dt;
            const should = busy(from + x * dt, from + (x + 1) * dt);
            if (Math.abs(is - should) > 0.02 + 1e-9 * should) say(`column ${x}: ${is} is not ${should}`);
          }
        }""",
    )


def test_busy_time_between_two_instants_is_exact(page: Page) -> None:
    assert not wrong(
        page,
        """({ lane, from, to, busy, say }) => {
          const is = Shardbook.levels.busyIn(lane, from, to), should = busy(from, to);
          if (Math.abs(is - should) > 1e-6 + 1e-12 * to) say(`${is} is not ${should}`);
        }""",
    )


def test_a_column_without_events_is_never_painted_hence_no_gap_of_two_pixels_is(page: Page) -> None:
    assert not wrong(
        page,
        """({ all, strip, width, from, to, dt, say }) => {
          for (let x = 0; x < width; x++) {
            const a = from + x * dt, b = x + 1 === width ? to : from + (x + 1) * dt;
            const some = all.some(([s, e]) => (s < b && e > a) || (s >= a && s < b));
            if (!some && strip.alpha[x]) say(`column ${x} is painted and empty`);
          }
          for (let i = 1; i < all.length; i++) {
            const a = (all[i - 1][1] - from) / dt, b = (all[i][0] - from) / dt;
            if (b - a < 2 || a < 0 || b > width) continue;
            if (strip.alpha.subarray(Math.floor(a), Math.ceil(b)).every((v) => v)) say(`gap ${a} to ${b}`);
          }
        }""",
    )


def test_an_event_with_ground_around_it_is_never_invisible(page: Page) -> None:
    assert not wrong(
        page,
        """({ all, strip, width, from, dt, say }) => {
          all.forEach(([s, e], i) => {
            const a = (s - from) / dt, b = (e - from) / dt;
            if (a < 0 || b >= width) return;
            const before = i ? (all[i - 1][1] - from) / dt : -9, after = i + 1 < all.length
              ? (all[i + 1][0] - from) / dt : width + 9;
            // Host work (16) that is narrow may give way to what parts two blocks.
            if (all[i][2] === 16 || Math.floor(before) >= Math.floor(a)
              || Math.floor(after) <= Math.floor(b)) return;
            const shown = strip.alpha.subarray(Math.floor(a), Math.floor(b) + 1);
            if (!(Math.max(...shown) >= 76)) say(`event ${a} to ${b} is not seen: ${shown}`);
          });
        }""",
    )


def test_a_column_shows_what_is_in_it_or_beside_it(page: Page) -> None:
    assert not wrong(
        page,
        """({ all, strip, width, from, dt, say }) => {
          for (let x = 0; x < width; x++) {
            if (!strip.alpha[x]) continue;
            const near = all.filter(([s, e]) => s < from + (x + 2) * dt && e >= from + (x - 1) * dt);
            if (!near.some((e) => e[2] === strip.cls[x])) say(`column ${x} shows ${strip.cls[x]}`);
          }
        }""",
    )


def test_where_most_of_a_dense_column_is_of_one_class_it_shows_that_class(page: Page) -> None:
    """One class takes a whole stretch of columns, each with many events."""
    shown = page.evaluate(
        """() => {
          const n = 60000, start = new Float64Array(n), end = new Float64Array(n);
          for (let i = 0; i < n; i++) { start[i] = i * 100; end[i] = i * 100 + 60; }
          const of = (i) => (i < n / 3 ? 0 : i % 10 === 0 ? 12 : 4);
          const lane = Shardbook.levels.build({ n, start, end }, of, n * 100, () => false),
            strip = Shardbook.levels.strip(300);
          Shardbook.levels.fill(lane, 0, n * 100, 300, strip, 1);
          return [...new Set(strip.cls.subarray(0, 99))].concat([...new Set(strip.cls.subarray(101))]);
        }"""
    )
    assert shown == [0, 4]


def test_blocks_that_touch_are_parted_by_ground_and_pieces_of_one_block_are_not(page: Page) -> None:
    painted = page.evaluate(
        """() => {
          const start = Float64Array.of(0, 100, 200, 301, 400), end = Float64Array.of(100, 200, 300, 400,
            500);
          const lane = Shardbook.levels.build({ n: 5, start, end }, (i) => [0, 4, 4, 0, 16][i], 500, (a,
            b) => a + b === 3);
          const strip = Shardbook.levels.strip(50);
          Shardbook.levels.fill(lane, 0, 500, 50, strip, 1, 4);
          return [...strip.alpha].map((a) => (a ? 1 : 0)).join("");
        }"""
    )
    assert painted == "1" * 9 + "0" + "1" * 19 + "0" + "1" * 9 + "0" + "1" * 10


def test_a_thin_piece_of_host_work_parts_no_block(page: Page) -> None:
    painted = page.evaluate(
        """() => {
          const start = Float64Array.of(0, 100, 120), end = Float64Array.of(100, 120, 300);
          const lane = Shardbook.levels.build({ n: 3, start, end }, (i) => [0, 16, 0][i], 300, (a,
            b) => a + b === 2);
          const strip = Shardbook.levels.strip(30);
          Shardbook.levels.fill(lane, 0, 300, 30, strip, 1, 4);
          return [...strip.alpha].every((a) => a === 255) && Shardbook.levels.blockOf(lane, 0,
            (i) => i === 1);
        }"""
    )
    assert painted == [0, 2]


def test_the_last_event_before_an_instant_is_found(page: Page) -> None:
    assert not wrong(
        page,
        """({ lane, from, to, say, random }) => {
          for (let k = 0; k < 30; k++) {
            const t = k < 5 && lane.n ? lane.start[Math.floor(random() * lane.n)]
              : from + (to - from) * random();
            const should = lane.start.filter((s) => s < t).length - 1, is = Shardbook.levels.find(lane, t);
            if (is !== should) say(`${is} is not ${should}`);
          }
        }""",
    )
