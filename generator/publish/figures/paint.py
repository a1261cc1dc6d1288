"""Which pixel columns of a lane are painted, and by what: exact occupancy, never a lie about a gap.

The occupancy of a column is the share of its time that is busy, computed from cumulative busy time,
so it is exact however many spans fall into the column. A column that is busy all the time is painted
and an empty one is not. Neighbouring columns that are busy in part are painted by error diffusion: as
many of them as their occupancies add up to. The edge of a lone block is thereby rounded to the pixel,
and a texture of slivers that is 55 % busy is painted 55 %, not merged into one block.

Two things follow, and are tested: a column that is wholly inside a gap is never painted, hence a gap
of 2 px or more is never painted over; and every stretch of partly busy columns shows its busy time to
within half a pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from generator.publish.figures.markup import Canvas, boxes
from generator.publish.figures.scale import F64, TimeScale
from generator.timeline.intervals import Intervals

Mask = npt.NDArray[np.bool_]
Owners = npt.NDArray[np.int64]
#: Painted columns [first, end) of one lane, in columns of the scale.
Run = tuple[int, int]

#: Below this a column counts as empty (above 1 minus it, as full): float noise, not time.
_NOISE = 1e-6
GROUND = -1
#: Calls that follow each other are parted where both are at least this wide.
_LEAST_CALL_PX = 4


def occupancy(busy: Intervals, scale: TimeScale) -> F64:
    """Busy share of every pixel column, float64 [width_px] in 0..1. `busy` is a set of intervals."""
    if not len(busy):
        return np.zeros(scale.width_px)
    start, length = busy[:, 0], busy[:, 1] - busy[:, 0]
    before = np.concatenate([[0], np.cumsum(length)])
    edges = scale.edges_ns()
    last = np.searchsorted(start, edges, side="right") - 1
    inside = np.clip(edges - start[np.maximum(last, 0)], 0, length[np.maximum(last, 0)])
    done = np.where(last < 0, 0, before[np.maximum(last, 0)] + inside)
    return np.clip(np.diff(done) / scale.ns_per_px, 0.0, 1.0)


def painted(share: F64, *, keep: bool = False, least: int = 1) -> Mask:
    """The columns to paint, given the occupancy of each.

    With `keep`, a stretch too short for even one column gets its fullest one: no call disappears.
    With `least` = 2, a lone column is widened by one if bare ground still follows.
    """
    mask = share > 1 - _NOISE
    partial = (share > _NOISE) & ~mask
    for first, end in runs(partial):
        owed = 0.0
        for column in range(first, end):
            owed += share[column]
            if owed >= 0.5:
                mask[column] = True
                owed -= 1
    if keep:
        for first, end in runs(share > _NOISE):
            if not mask[first:end].any():
                mask[first + int(np.argmax(share[first:end]))] = True
    if least > 1:
        for first, end in runs(mask):
            if end - first == 1 and end + 1 < len(mask) and not mask[end + 1]:
                mask[end] = True
    return mask


def owners(kinds: Sequence[Intervals], scale: TimeScale) -> Owners:
    """For every column, the kind that is painted there, or GROUND: int64 [width_px].

    The kinds must not overlap. Where several share a painted column, it goes to the one with most time.
    """
    if not kinds:
        return np.full(scale.width_px, GROUND)
    shares = np.stack([occupancy(kind, scale) for kind in kinds])
    busy = painted(np.clip(shares.sum(axis=0), 0.0, 1.0))
    return np.where(busy, np.argmax(shares, axis=0), GROUND)


def runs(mask: Mask) -> list[Run]:
    """Maximal runs of true columns."""
    flips = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(flips[::2], flips[1::2], strict=True)]


def owner_runs(owned: Owners) -> list[tuple[int, int, int]]:
    """Maximal runs of one owner, ground left out, as (first, end, owner)."""
    cuts = np.flatnonzero(np.diff(owned)) + 1
    bounds = [0, *(int(c) for c in cuts), len(owned)]
    return [(a, b, int(owned[a])) for a, b in pairwise(bounds) if b > a and owned[a] != GROUND]


@dataclass(frozen=True, slots=True)
class Block:
    """Columns [first, end) that stand as one block, and the runs of slivers inside it."""

    first: int
    end: int
    owner: int
    slivers: tuple[Run, ...] = ()

    def pieces(self) -> list[Run]:
        """The block without its slivers."""
        edges = [self.first, *(edge for sliver in self.slivers for edge in sliver), self.end]
        return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


def blocks(owned: Owners, sliver: int = GROUND, *, most: int = 3, least: int = 2) -> list[Block]:
    """The blocks of a lane, each with a pixel of ground at its right edge if it touches the next one.

    Runs of the owner `sliver` up to `most` columns wide do not part the block they lie in or end it with
    ground: they are drawn, but the block is still one. Blocks narrower than `least` give no pixel away.
    """
    found: list[Block] = []
    for first, end, owner in owner_runs(owned):
        thin = owner == sliver and end - first <= most
        if len(found) > 1 and found[-1].end == first:
            inner, before = found[-1], found[-2]
            if (
                inner.owner == sliver
                and inner.end - inner.first <= most
                and before.owner == owner
                and before.end == inner.first
            ):
                slivers = (*before.slivers, (inner.first, inner.end))
                found[-2:] = [Block(before.first, end, owner, slivers)]
                continue
        if found and found[-1].end == first and not thin and found[-1].end - found[-1].first >= least:
            found[-1] = _shorter(found[-1], sliver, most)
        found.append(Block(first, end, owner))
    return found


def _shorter(block: Block, sliver: int, most: int) -> Block:
    if block.owner == sliver and block.end - block.first <= most:
        return block
    return replace(block, end=block.end - 1)


def communication(
    canvas: Canvas,
    wait: Intervals,
    transfer: Intervals,
    scale: TimeScale,
    *,
    y: int,
    height: int,
    ident: str,
    handovers: Sequence[int] = (),
    closed: bool = True,
) -> None:
    """Draw a communication lane: transfers solid and at least 2 px, waits hatched around them.

    At `handovers` (ns) one transfer ends and another may begin: there the bar gives a pixel away, as
    blocks do, if enough of it is left on both sides. `closed` draws the edges of waits.
    """
    solid = painted(occupancy(transfer, scale), keep=True, least=2)
    hatched = painted(occupancy(wait, scale)) & ~solid
    for edge in handovers:
        column = scale.px(edge) - scale.left_px
        if _LEAST_CALL_PX <= column <= scale.width_px - _LEAST_CALL_PX:
            around = solid[column - _LEAST_CALL_PX : column + _LEAST_CALL_PX]
            solid[column - 1] &= not around.all()
    x0 = scale.left_px
    waits = [(x0 + a, x0 + b) for a, b in runs(hatched)]
    canvas.path(boxes(waits, y, height), "k", fill=f"url(#{ident}-hatch)")
    if closed:
        canvas.path("".join(f"M{a} {y}.5H{b}M{a} {y + height - 1}.5H{b}" for a, b in waits), "hatch-edge")
    canvas.path(boxes([(x0 + a, x0 + b) for a, b in runs(solid)], y, height), "X k")
