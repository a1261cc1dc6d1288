"""Level of detail: pixels tell the truth about time, however small the spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.publish.figures import paint
from generator.publish.figures.scale import TimeScale, nice_step, tick_words
from generator.timeline.intervals import Intervals, length, union

WIDTH = 60
NS_PER_PX = 100


@st.composite
def lanes(draw: st.DrawFn) -> Intervals:
    """Spans and gaps of all sizes, from a hundredth of a pixel to a dozen."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 1200), st.integers(1, 600)), min_size=1, max_size=60))
    at, found = draw(st.integers(0, 300)), []
    for busy, gap in sizes:
        found.append((at, at + busy))
        at += busy + gap
    return union([a for a, _ in found], [b for _, b in found])


def scale() -> TimeScale:
    return TimeScale(0, WIDTH * NS_PER_PX, 0, WIDTH)


def gaps(busy: Intervals) -> list[tuple[int, int]]:
    edges = [0, *busy.ravel().tolist(), WIDTH * NS_PER_PX]
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    return [(a, min(b, WIDTH * NS_PER_PX)) for a, b in pairs if b - a > 0 and a < WIDTH * NS_PER_PX]


@given(lanes())
def test_occupancy_is_the_busy_share_of_each_column(busy: Intervals) -> None:
    instants = np.zeros(WIDTH * NS_PER_PX, bool)
    for a, b in busy.tolist():
        instants[a:b] = True
    slow = instants.reshape(WIDTH, NS_PER_PX).mean(axis=1)
    np.testing.assert_allclose(paint.occupancy(busy, scale()), slow, atol=1e-9)


@pytest.mark.parametrize(("keep", "least"), [(False, 1), (True, 1), (True, 2)])
@given(busy=lanes())
def test_a_gap_of_two_pixels_is_never_painted_over(busy: Intervals, keep: bool, least: int) -> None:
    mask = paint.painted(paint.occupancy(busy, scale()), keep=keep, least=least)
    for start, end in gaps(busy):
        if end - start >= 2 * NS_PER_PX:
            touched = mask[start // NS_PER_PX : -(-end // NS_PER_PX)]
            assert not touched.all()


@given(lanes())
def test_a_column_inside_a_gap_is_bare(busy: Intervals) -> None:
    mask = paint.painted(paint.occupancy(busy, scale()), keep=True)
    for start, end in gaps(busy):
        assert not mask[-(-start // NS_PER_PX) : end // NS_PER_PX].any()


@given(lanes())
def test_each_stretch_of_slivers_shows_its_busy_time_to_half_a_pixel(busy: Intervals) -> None:
    share = paint.occupancy(busy, scale())
    mask = paint.painted(share)
    for a, b in paint.runs((share > 1e-6) & (share < 1 - 1e-6)):
        assert abs(mask[a:b].sum() - share[a:b].sum()) <= 0.5 + 1e-6


def test_a_texture_that_is_55_percent_busy_is_not_merged_into_one_block() -> None:
    starts = np.arange(0, WIDTH * NS_PER_PX, 40)
    busy = union(starts, starts + 22)
    mask = paint.painted(paint.occupancy(busy, scale()))
    assert mask.sum() == round(length(busy) / NS_PER_PX)


def test_the_edges_of_a_lone_block_are_rounded() -> None:
    mask = paint.painted(paint.occupancy(union([1040], [2060]), scale()))
    assert paint.runs(mask) == [(10, 21)]


def test_every_call_is_kept_and_widened_where_ground_follows() -> None:
    busy = union([1010, 1410, 1520], [1015, 1415, 1525])
    share = paint.occupancy(busy, scale())
    assert not paint.painted(share).any()
    assert paint.runs(paint.painted(share, keep=True)) == [(10, 11), (14, 15)]
    assert paint.runs(paint.painted(share, keep=True, least=2)) == [(10, 12), (14, 16)]


@given(lanes())
def test_a_shared_column_goes_to_the_kind_with_most_time(busy: Intervals) -> None:
    kinds = [busy[::2], busy[1::2]]
    owned = paint.owners(kinds, scale())
    shares = np.stack([paint.occupancy(kind, scale()) for kind in kinds])
    for column in np.flatnonzero(owned != paint.GROUND):
        assert shares[owned[column], column] == shares[:, column].max() > 0


def test_slivers_do_not_part_a_block_and_touching_blocks_are_parted_by_a_pixel() -> None:
    owned = np.array([0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, -1, 1, 1])
    found = paint.blocks(owned, sliver=2)
    assert [(b.first, b.end, b.owner, b.slivers) for b in found] == [
        (0, 7, 0, ((4, 5),)),
        (8, 11, 1, ()),
        (12, 17, 2, ()),
        (18, 20, 1, ()),
    ]
    assert found[0].pieces() == [(0, 4), (5, 7)]


def test_time_becomes_pixels_in_one_way() -> None:
    s = TimeScale(1_000_000, 3_000_000, 88, 1000)
    assert (s.px(1_000_000), s.px(1_001_000), s.px(1_000_999), s.px(3_000_000)) == (88, 89, 88, 1088)
    assert s.ticks(200) == (1_000_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000)
    assert [tick_words(t, s, 200) for t in s.ticks(200)[:2]] == ["1.0", "1.5"]
    assert nice_step(1) == 1
    assert nice_step(2_000_001) == 5_000_000
    with pytest.raises(ValueError, match="positive"):
        TimeScale(5, 5, 0, 10)
