"""All recorded steps of a run, small: is the one that is shown like the others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generator.publish.figures import lanes
from generator.publish.figures.lanes import MARK
from generator.publish.figures.markup import Canvas, boxes, identifier, picture
from generator.publish.figures.paint import owner_runs, owners
from generator.publish.figures.scale import TimeScale
from generator.publish.show import integer, time
from generator.timeline.spans import Timeline

_RANK, _PITCH = 5, 6
_APART = 16
_WIDE_WIDTH, _WIDE_LEFT = 1200, 88
_NARROW_WIDTH, _NARROW_STEPS = 354, 3


@dataclass(frozen=True, slots=True)
class Strip:
    """The strip in both sizes."""

    wide: str
    narrow: str
    title: str


def steps_strip(
    steps: Sequence[Timeline], *, ident: str, shown: int, aside: Mapping[int, str] | None = None
) -> Strip:
    """Draw steps one after the other on one scale. Raises ValueError for no steps.

    `shown` is the step that the lessons show. `aside` says of a step by its number why it is not used,
    e.g. 'warm-up'.
    """
    if not steps:
        raise ValueError("a strip needs a step")
    listed = ", ".join(f"step {t.step} {time(t.step_ns)}" for t in steps)
    title = f"{steps[0].run}: {integer(len(steps))} recorded steps: {listed}; shown: step {shown}"
    aside = aside or {}
    return Strip(
        wide=_draw([list(steps)], _WIDE_WIDTH, _WIDE_LEFT, identifier(ident), title, shown, aside),
        narrow=_draw(
            [list(steps[i : i + _NARROW_STEPS]) for i in range(0, len(steps), _NARROW_STEPS)],
            _NARROW_WIDTH,
            0,
            identifier(f"{ident} n"),
            title,
            shown,
            aside,
        ),
        title=title,
    )


def _draw(
    rows: list[list[Timeline]],
    width: int,
    left: int,
    ident: str,
    title: str,
    shown: int,
    aside: Mapping[int, str],
) -> str:
    canvas = Canvas()
    band = _PITCH * len(rows[0][0].ranks)
    high = band + 50
    # One scale for all rows, set by the fullest.
    ns_per_px = max(sum(t.step_ns for t in row) / (width - left - _APART * (len(row) - 1)) for row in rows)
    if left:
        count = len(rows[0][0].ranks)
        canvas.text(0, 9, f"{count} ranks" if count > 1 else "1 rank", "t3")
    for k, row in enumerate(rows):
        x = float(left)
        for t in row:
            wide = max(1, round(t.step_ns / ns_per_px))
            _step(canvas, t, TimeScale(0, t.step_ns, round(x), wide), k * high)
            _name(canvas, t, round(x), wide, k * high + band, shown, aside.get(t.step, ""))
            x += wide + _APART
    return picture(canvas, width=width, height=high * len(rows), ident=ident, title=title)


def _step(canvas: Canvas, t: Timeline, scale: TimeScale, y: int) -> None:
    data: dict[str, str] = {}
    for rank in range(len(t.ranks)):
        # Micro-batches are not told apart at this size.
        found: dict[str, list[lanes.Kind]] = {}
        for kind in lanes.kinds(t, rank):
            found.setdefault(MARK[kind.activity], []).append(kind)
        names = list(found)
        for a, b, owner in owner_runs(owners([lanes.merged(found[name]) for name in names], scale)):
            box = boxes([(scale.left_px + a, scale.left_px + b)], y + rank * _PITCH, _RANK)
            data[names[owner]] = data.get(names[owner], "") + box
    for cls, path in data.items():
        canvas.path(path, f"{cls} k")


def _name(canvas: Canvas, t: Timeline, x: int, wide: int, y: int, shown: int, aside: str) -> None:
    """Number, length and use of a step, under it; the one that is shown is underlined in ink."""
    here = t.step == shown
    canvas.line(x, y + 3.5, x + wide, y + 3.5, "ink" if here else "gl2")
    canvas.text(x, y + 17, f"step {t.step}", "t1 b" if here else "t3")
    canvas.text(x, y + 30, time(t.step_ns), "t1" if here else "t2")
    if aside or here:
        canvas.text(x, y + 43, "shown" if here else aside, "t3")
