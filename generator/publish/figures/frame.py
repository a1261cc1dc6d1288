"""What stands around the lanes: the axis, brackets, names and numbers of the ranks, a torn edge."""

from __future__ import annotations

from generator.publish.figures import facts, lanes
from generator.publish.figures.drawing import Drawing
from generator.publish.figures.markup import text_width
from generator.publish.figures.paint import blocks, owners
from generator.publish.figures.scale import tick_words
from generator.publish.show import percent, size


def axis(d: Drawing, bottom: int) -> None:
    """Gridlines with their times, and the line that rules them off."""
    grid = ""
    for tick in d.scale.ticks(d.layout.tick):
        x = d.scale.px(tick)
        grid += f"M{x}.5 {d.layout.axis_line}V{bottom}"
        words = tick_words(tick, d.scale, d.layout.tick)
        if x + text_width(words, 11) / 2 <= d.layout.width:
            d.canvas.text(x, d.layout.axis_text, words, "t3", "middle" if tick else None)
    d.canvas.path(grid, "gl")
    d.canvas.line(d.layout.left, d.layout.axis_line - 0.5, d.scale.right_px, d.layout.axis_line - 0.5, "gl2")


def phases_shown(d: Drawing) -> tuple[lanes.Phase, ...]:
    """Brackets over the first rank: of a pipeline, or where its blocks are too small for words."""
    found = tuple(p for p in lanes.schedule(d.timeline) if p.start_ns < d.scale.end_ns)
    if lanes.numbered(d.timeline):
        return found
    kinds = lanes.kinds(d.timeline, 0)
    found_blocks = blocks(owners([kind.on for kind in kinds], d.scale), lanes.host_index(kinds))
    return found if len(found_blocks) > 8 else ()


def brackets(d: Drawing, phases: tuple[lanes.Phase, ...], top: int) -> None:
    """Draw the phases that have room for their names."""
    y = d.layout.axis_line + 13
    frame = ""
    for phase in phases:
        a, b = d.scale.px(phase.start_ns), d.scale.px(min(phase.end_ns, d.scale.end_ns))
        fits = (n for n in (phase.name, phase.short) if n and text_width(n, 11) + 16 <= b - a)
        name = next(fits, "")
        room = text_width(name, 11) + 10
        whole = phase.end_ns <= d.scale.end_ns
        if not name:
            continue
        left, right = (a + b - room) / 2, (a + b + room) / 2
        frame += f"M{a}.5 {y + 5}v-5H{left:.0f}M{right:.0f} {y}H{b - 3.5 if whole else b}"
        frame += "v5" if whole else ""
        d.canvas.text((a + b) / 2, y + 4, name, "t3", "middle")
    d.canvas.path(frame, "bracket")


def gutter(d: Drawing, rank: int, y: int) -> None:
    """The rank's name and its two numbers: beside its lanes, or above them."""
    f = facts.rank_facts(d.timeline, rank)
    name = f"rank {d.timeline.ranks[rank].rank}"
    where = d.notes[rank] if rank < len(d.notes) else ""
    share, word = facts.gutter(d.timeline, f)
    peak = size(f.peak_bytes) if f.peak_bytes else ""
    if d.layout.above:
        numbers = f"{percent(share)} {word}" + (f" · {peak}" if peak else "")
        parts = facts.stage_words(d.timeline, rank) if d.timeline.stages > 1 else ""
        about = " · ".join(w for w in (where, parts) if w)
        room = d.layout.width - text_width(name, 12, True) - text_width(numbers, 11) - 24
        d.canvas.text(0, y - 7, name, "t1 b s12")
        if about and text_width(about, 11) > room:
            about = where if text_width(where, 11) <= room else ""
        if about:
            d.canvas.text(text_width(name, 12, True) + 8, y - 7, about, "t3")
        d.canvas.text(d.layout.width, y - 7, numbers, "t2", "end")
        if rank:
            d.canvas.line(0, y - 24.5, d.layout.width, y - 24.5, "gl")
        return
    d.canvas.text(0, y + 12, name, "t1 b s13")
    if where:
        d.canvas.text(0, y + 26, where, "t3")
    edge = d.layout.left - 10
    if d.layered:
        d.canvas.text(edge, d.layout.layer_y(y) + 7, "layers", "t3 s10", "end")
    if d.talks:
        d.canvas.text(edge, d.layout.comm_y(y, d.layered) + 9, "comm.", "t3 s10", "end")
    right = d.scale.right_px + 12
    d.canvas.text(right, y + 12, percent(share), "t1")
    d.canvas.text(right, y + 26, word, "t3")
    if d.remembers:
        floor = d.layout.memory_y(y, d.layered, d.talks) + d.layout.memory
        d.canvas.text(edge, floor, "memory", "t3 s10", "end")
        d.canvas.text(right, floor - 13, peak, "t1")
        d.canvas.text(right, floor, "peak", "t3")
    if rank:
        line = y - d.layout.gap / 2 - 0.5
        d.canvas.line(0, line, d.layout.width, line, "gl")


def torn(d: Drawing, tops: list[int]) -> None:
    """The right edge of a step that goes on: bitten off, not ended."""
    x = d.scale.right_px
    for y in tops:
        height = d.layout.comm_y(0, d.layered) + (d.layout.comm if d.talks else -3)
        teeth = "".join(f"l{-4 if i % 2 == 0 else 4} 4" for i in range(-(-height // 4)))
        d.canvas.path(f"M{x - 1} {y - 1}{teeth}V{y + height + 2}H{x + 2}V{y - 1}z", "tear")
