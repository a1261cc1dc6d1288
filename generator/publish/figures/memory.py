"""The memory lane: bytes by category, stacked, at most one level a pixel column."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from generator.publish.figures.markup import Canvas, boxes
from generator.publish.figures.scale import TimeScale
from generator.runs.run import I64, MEMORY_CATEGORIES
from generator.timeline.spans import MemoryCurve

#: From the ground up: what stays put for the whole step, then what comes and goes.
STACK = ("parameters", "optimizer", "gradients", "activations", "communication", "other")
#: Those filled with a pattern, by the end of its id; the rest is a plain lightness.
TEXTURE = {"optimizer": "dots", "gradients": "lines", "communication": "bars"}


def sampled(curve: MemoryCurve, scale: TimeScale) -> I64:
    """Bytes by category in every pixel column, int64 [width_px, categories].

    A column shows the moment in it at which most was held in all, so that no peak is lost. Samples are
    taken when something changes, so the first one also holds for the time before it.
    """
    edges = scale.edges_ns()
    first = np.searchsorted(curve.time_ns, edges[:-1], side="right") - 1
    last = np.searchsorted(curve.time_ns, edges[1:], side="left")
    total = curve.bytes.sum(axis=1)
    out = np.zeros((scale.width_px, curve.bytes.shape[1]), np.int64)
    for column in range(scale.width_px):
        a = max(0, int(first[column]))
        b = max(a + 1, int(last[column]))
        out[column] = curve.bytes[a + int(np.argmax(total[a:b]))]
    return out


def draw(
    canvas: Canvas, curve: MemoryCurve, scale: TimeScale, *, y: int, height: int, full_bytes: int, ident: str
) -> None:
    """Draw one rank's lane; `full_bytes` fills the height and is the same for all ranks of a figure."""
    levels = sampled(curve, scale)
    order = [MEMORY_CATEGORIES.index(name) for name in STACK]
    reach = np.floor(np.cumsum(levels[:, order], axis=1) * (height / full_bytes) + 0.5).astype(int)
    floor = np.zeros(scale.width_px, int)
    for k, name in enumerate(STACK):
        data = "".join(
            boxes(
                [(scale.left_px + a, scale.left_px + b)],
                y + height - int(reach[a, k]),
                int(reach[a, k] - floor[a]),
            )
            for a, b in _level(floor, reach[:, k])
            if reach[a, k] > floor[a]
        )
        fill = f"url(#{ident}-{TEXTURE[name]})" if name in TEXTURE else None
        canvas.path(data, f"m-{name}", fill=fill)
        floor = reach[:, k]
    outline = "".join(
        f"{'M' if a == 0 else 'V'}{f'{scale.left_px} ' if a == 0 else ''}{y + height - int(floor[a])}"
        f"H{scale.left_px + b}"
        for a, b in _level(floor, floor)
    )
    canvas.path(outline, "m-top")


def _level(low: np.ndarray, high: np.ndarray) -> list[tuple[int, int]]:
    """Runs of columns over which both edges of a layer stay where they are."""
    cuts = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    bounds = [0, *(int(c) for c in cuts), len(low)]
    return list(pairwise(bounds))
