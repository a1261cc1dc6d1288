"""Several runs on one time axis: a row a run, its ranks as thin bands (the home page's figure).

The numbers of a row are returned as text beside its picture, so that a page can set them in columns
of its own and make the whole row a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.publish.figures import facts, lanes
from generator.publish.figures.lanes import MARK, WORDS
from generator.publish.figures.legend import Item, draw_legend, items
from generator.publish.figures.markup import (
    Canvas,
    boxes,
    decoration,
    hatch,
    identifier,
    picture,
    text_width,
)
from generator.publish.figures.paint import blocks, communication, owners
from generator.publish.figures.scale import TimeScale, tick_words
from generator.publish.show import number, percent, size, time
from generator.timeline.spans import Timeline


@dataclass(frozen=True, slots=True)
class Entry:
    """What to compare: a run under the name readers know it by."""

    name: str
    timeline: Timeline
    #: One thing to notice; computed from the timeline when empty.
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One run: its picture in both sizes, and its numbers as text."""

    run: str
    name: str
    wide: str
    narrow: str
    step: str
    #: Step time of the first run over this one's, e.g. '3.0×'.
    speedup: str
    #: Share of rank time without work: idle, or blocked in a wait.
    still: str
    exposed: str
    #: Most bytes held by a rank; '–' where memory was not recorded.
    peak: str
    remark: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows, and their common axis in both sizes (hidden from screen readers)."""

    rows: tuple[Row, ...]
    axis_wide: str
    axis_narrow: str
    #: What the marks are, for below the last row.
    legend_wide: str
    legend_narrow: str


@dataclass(frozen=True, slots=True)
class _Size:
    width: int
    compute: int
    comm: int
    #: Between ranks, and above and below the band.
    gap: int
    pad: int
    #: Height of a row whose run has one rank, and of its band.
    lone_row: int
    lone: int
    tick: int
    remarks: bool


_WIDE = _Size(width=788, compute=9, comm=3, gap=2, pad=11, lone_row=46, lone=20, tick=100, remarks=True)
_NARROW = _Size(width=354, compute=7, comm=3, gap=3, pad=6, lone_row=34, lone=20, tick=80, remarks=False)
_AXIS_HEIGHT = 22
#: Room right of a band for the time it took, and for a remark, px.
_TIME, _REMARK = 66, 180
#: Width of the strip that a torn band leaves for its time, px.
_TORN = 64


def comparison(entries: Sequence[Entry], *, ident: str) -> Comparison:
    """Draw runs on one axis; the first is what speed-ups refer to. Raises ValueError for no entries.

    The axis ends soon after the longest of the other runs; a first run that is much longer is torn off
    there, and its step time says how far it goes on.
    """
    if not entries:
        raise ValueError("nothing to compare")
    steps = [e.timeline.step_ns for e in entries]
    wide, narrow = axis_end(steps, _WIDE.width, _REMARK), axis_end(steps, _NARROW.width, _TIME)
    return Comparison(
        rows=tuple(_row(e, entries[0].timeline, wide, narrow, f"{ident} {i}") for i, e in enumerate(entries)),
        axis_wide=_axis(_WIDE, wide),
        axis_narrow=_axis(_NARROW, narrow),
        legend_wide=_legend(entries, _WIDE, f"{ident} key"),
        legend_narrow=_legend(entries, _NARROW, f"{ident} key n"),
    )


def axis_end(steps_ns: Sequence[int], width_px: int, room_px: int) -> int:
    """Where the common axis ends, ns, if words of `room_px` follow every step but a torn first one."""
    first, others = steps_ns[0], steps_ns[1:] or steps_ns[:1]
    longest = round(max(others) * width_px / (width_px - room_px))
    whole = round(first * width_px / (width_px - _TIME))
    return max(whole, longest) if first <= max(others) * 1.5 else longest


def _row(entry: Entry, first: Timeline, wide: int, narrow: int, ident: str) -> Row:
    t = entry.timeline
    each = [facts.rank_facts(t, r) for r in range(len(t.ranks))]
    still, exposed = facts.mean([f.idle + f.blocked for f in each]), facts.mean([f.exposed for f in each])
    remark = entry.remark or facts.remark(t)
    title = (
        f"{entry.name}: step {time(t.step_ns, 0)}, {percent(still)} idle or blocked, "
        f"{percent(exposed)} exposed communication"
    )
    most = max(f.peak_bytes for f in each)
    return Row(
        run=t.run,
        name=entry.name,
        wide=_bands(t, wide, _WIDE, ident, title, remark),
        narrow=_bands(t, narrow, _NARROW, f"{ident} n", title, remark),
        step=time(t.step_ns, 0),
        speedup=f"{number(first.step_ns / t.step_ns, 0 if t is first else 1)}×",
        still=percent(still),
        exposed=percent(exposed),
        peak=size(most) if most else "–",
        remark=remark,
    )


def _bands(t: Timeline, until: int, s: _Size, ident: str, title: str, remark: str) -> str:
    canvas, ident = Canvas(), identifier(ident)
    scale = TimeScale(0, until, 0, s.width)
    lone, torn = len(t.ranks) == 1, t.step_ns > until
    pitch = s.compute + 1 + s.comm + s.gap
    height = s.lone_row if lone else 2 * s.pad + pitch * len(t.ranks) - s.gap
    ruled = [scale.px(x) for x in _ticks(scale, s)]
    canvas.path("".join(f"M{x}.5 0V{height}" for x in ruled if not torn or x < s.width - _TORN - 12), "gl")
    for rank in range(len(t.ranks)):
        y = (height - s.lone) // 2 if lone else s.pad + rank * pitch
        tall = s.lone if lone else s.compute
        _band(canvas, t, rank, scale, y, tall, words=lone, until_px=s.width - (_TORN if torn else 0))
        if t.calls:
            wait, transfer = lanes.communication(t, rank)
            communication(
                canvas,
                wait,
                transfer,
                scale,
                y=y + tall + 1,
                height=s.comm,
                ident=ident,
                handovers=lanes.handovers(t, rank),
                closed=False,
            )
    if torn:
        top, tall = ((height - s.lone) // 2, s.lone) if lone else (s.pad - 1, height - 2 * s.pad)
        _tear(canvas, s, top, tall)
        canvas.text(s.width, height / 2 + 4, time(t.step_ns, 0), "t1 b s12", "end")
    else:
        _end(canvas, t, scale, s, height, lone, remark)
    return picture(canvas, width=s.width, height=height, ident=ident, title=title, definitions=hatch(ident))


def _band(
    canvas: Canvas, t: Timeline, rank: int, scale: TimeScale, y: int, tall: int, *, words: bool, until_px: int
) -> None:
    """One rank's computation; a lone rank is the key to the colours and carries their names."""
    found = lanes.kinds(t, rank)
    parts = blocks(owners([kind.on for kind in found], scale), least=4)
    spans: dict[str, list[tuple[int, int]]] = {}
    for p in parts:
        spans.setdefault(MARK[found[p.owner].activity], []).append((p.first, min(p.end, until_px)))
    for cls, where in spans.items():
        canvas.path(boxes(where, y, tall), f"{cls} k")
    if words:
        for p in parts:
            activity = found[p.owner].activity
            room = min(p.end, until_px) - p.first - 14
            word = next((w for w in WORDS[activity] if text_width(w, 12) <= room), "")
            if word:
                canvas.text(p.first + 7, y + tall / 2 + 4, word, f"t{MARK[activity]} s12")


def _tear(canvas: Canvas, s: _Size, y: int, tall: int) -> None:
    """Bite the right edge of a band that goes on beyond the axis."""
    x, teeth = s.width - _TORN, -(-tall // 5)
    bites = "".join(f"l{-4 if i % 2 == 0 else 4} 5" for i in range(teeth))
    canvas.path(f"M{x} {y}{bites}H{x + 6}V{y}z", "tear")


def _end(
    canvas: Canvas, t: Timeline, scale: TimeScale, s: _Size, height: int, lone: bool, remark: str
) -> None:
    """The end of a step: a line, the time it took and, where there is room, what to notice."""
    x = scale.px(t.step_ns)
    if not lone:
        canvas.line(x + 1.5, s.pad - 3, x + 1.5, height - s.pad + 3, "gl2")
    middle = lone or not s.remarks
    canvas.text(x + 8, height / 2 + 4 if middle else s.pad + 9, time(t.step_ns, 0), "t1 b s12")
    if s.remarks and not lone:
        for i, line in enumerate(wrapped(remark, 11, s.width - x - 8, most=3)):
            canvas.text(x + 8, s.pad + 26 + 14 * i, line, "t3 halo")


def wrapped(words: str, size_px: float, width_px: float, most: int) -> list[str]:
    """Break a text into even lines of at most `width_px`; nothing at all when it needs more than `most`."""
    lines = _filled(words, size_px, width_px)
    if len(lines) > most or any(text_width(line, size_px) > width_px for line in lines):
        return []
    width = width_px
    while len(narrower := _filled(words, size_px, width - 8)) == len(lines) and width > 40:
        lines, width = narrower, width - 8
    return lines


def _filled(words: str, size_px: float, width_px: float) -> list[str]:
    """Lines filled one after the other."""
    out: list[str] = []
    for word in words.split():
        longer = f"{out[-1]} {word}" if out else word
        if out and text_width(longer, size_px) <= width_px:
            out[-1] = longer
        else:
            out.append(word)
    return out


def _axis(s: _Size, until: int) -> str:
    canvas, scale = Canvas(), TimeScale(0, until, 0, s.width)
    ticks = _ticks(scale, s)
    canvas.path("".join(f"M{scale.px(x)}.5 17V{_AXIS_HEIGHT}" for x in ticks), "gl2")
    for tick in ticks:
        canvas.text(scale.px(tick), 12, tick_words(tick, scale, s.tick), "t3", "middle" if tick else None)
    return decoration(canvas, width=s.width, height=_AXIS_HEIGHT)


def _ticks(scale: TimeScale, s: _Size) -> list[int]:
    """Those ticks whose number does not reach over the edge."""
    return [
        tick
        for tick in scale.ticks(s.tick)
        if scale.px(tick) + text_width(tick_words(tick, scale, s.tick), 11) / 2 <= s.width
    ]


def _legend(entries: Sequence[Entry], s: _Size, ident: str) -> str:
    """Names of the marks of all rows; forward and backward too, which the first row also carries."""
    canvas, ident, named = Canvas(), identifier(ident), list[Item]()
    for entry in entries:
        named += [i for i in items(entry.timeline, numbers=False, held=False) if i not in named]
    named.append(Item("", "bare ground: idle or blocked"))
    height = draw_legend(canvas, named, ident=ident, y=0, width=s.width)
    return picture(canvas, width=s.width, height=height, ident=ident, title="Key", definitions=hatch(ident))
