"""What a figure points at: outlines around spans, and what joins them across ranks.

Nothing is dimmed: the context is the point.
"""

from __future__ import annotations

from dataclasses import dataclass

from generator.publish.figures.lanes import Focus, call_labels, computing, doing, span_labels
from generator.publish.figures.markup import Canvas, number
from generator.publish.figures.scale import TimeScale
from generator.timeline.intervals import EMPTY, Intervals, subtract, union
from generator.timeline.spans import Activity, Call, Member, Timeline

#: More joined calls than this are a thicket.
_MOST_JOINS = 12
_MOST_CURVES = 24


@dataclass(frozen=True, slots=True)
class Focused:
    """What a focus selects."""

    #: Per rank, stretches of the computation lane.
    spans: tuple[Intervals, ...]
    #: Calls with those of their members that are selected.
    calls: tuple[tuple[Call, tuple[Member, ...]], ...]

    @property
    def on_calls(self) -> bool:
        """Whether calls themselves are pointed at, not the computation that their labels share."""
        return bool(self.calls) and not any(len(s) for s in self.spans)


NOTHING = Focused((), ())


def select(timeline: Timeline, focus: Focus | None) -> Focused:
    """Ask a focus about every span that is not idle and every member of every call."""
    if focus is None:
        return NOTHING
    chosen = []
    for lane in timeline.ranks:
        spans = lane.computation
        hit = [
            i
            for i in range(len(spans))
            if spans.activity[i] != Activity.IDLE and focus(span_labels(spans, i, lane.rank))
        ]
        chosen.append(union(spans.start_ns[hit], spans.end_ns[hit]) if hit else EMPTY)
    calls = []
    for call in timeline.calls:
        members = tuple(m for m in call.members if focus(call_labels(call, m)))
        if members:
            calls.append((call, members))
    return Focused(tuple(chosen), tuple(calls))


def outline(canvas: Canvas, boxes: list[tuple[int, int, int, int]], around: bool = False) -> None:
    """Outline boxes (x, y, width, height): 2 px of ink on the edge and 1 px of ground inside it.

    Small marks are outlined `around` instead, so that the mark itself stays whole.
    """

    def rects(grow: float) -> str:
        return "".join(
            f"M{number(x - grow)} {number(y - grow)}h{number(w + 2 * grow)}v{number(h + 2 * grow)}"
            f"h{number(-w - 2 * grow)}z"
            for x, y, w, h in boxes
            if w + 2 * grow > 0
        )

    if around:
        canvas.path(rects(1.5), "sel-around")
        return
    canvas.path(rects(0.5), "sel")
    canvas.path(rects(-1), "sel-in")


def join_calls(canvas: Canvas, focused: Focused, scale: TimeScale, tops: list[int], height: int) -> None:
    """A line through the members of each collective, at the arrival of the last: drawn under the blocks."""
    collectives = [(c, m) for c, m in focused.calls if not c.point_to_point and len(m) > 1]
    if len(collectives) > _MOST_JOINS:
        return
    for _, members in collectives:
        x = scale.px(max(m.begin_ns for m in members)) + 0.5
        canvas.line(x, tops[members[0].rank], x, tops[members[-1].rank] + height, "join")


def join_sends(
    canvas: Canvas, timeline: Timeline, focused: Focused, scale: TimeScale, tops: list[int], height: int
) -> None:
    """A dotted curve along each message, from the picked block that made it to the one that takes it up."""
    if not focused.spans:
        return
    work = [computing(lane.computation)[:, 1] for lane in timeline.ranks]
    sends = [c for c in timeline.calls if c.point_to_point and len(c.members) > 1]
    joined = 0
    for call in sends:
        source, target = call.members[0], call.members[-1]
        # Gradients of weights take up no message.
        late = doing(timeline.ranks[target.rank].computation, Activity.BACKWARD_WEIGHT)
        made, taken = focused.spans[source.rank], subtract(focused.spans[target.rank], late)
        before = made[made[:, 1] <= source.begin_ns]
        after = taken[taken[:, 0] >= target.begin_ns]
        done = work[source.rank][work[source.rank] <= source.begin_ns]
        # The message belongs to the block that ended last before it was sent.
        if not len(before) or not len(after) or before[-1, 1] < done[-1]:
            continue
        x0, x1 = scale.x(before[-1, 1]), scale.x(after[0, 0])
        joined += 1
        if x1 > scale.right_px or joined > _MOST_CURVES:
            continue
        down = target.rank > source.rank
        y0 = tops[source.rank] + (height if down else 0)
        y1 = tops[target.rank] + (0 if down else height)
        half = number((y0 + y1) / 2)
        canvas.path(
            f"M{number(x0)} {y0}C{number(x0 + 6)} {half} {number(x1 - 6)} {half} {number(x1)} {y1}", "path"
        )
