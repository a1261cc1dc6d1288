"""The timeline of one step: all ranks at once, as SVG for a wide page and for a phone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.publish.figures import facts, lanes, memory, paint
from generator.publish.figures.drawing import Drawing, Label
from generator.publish.figures.focus import NOTHING, join_calls, join_sends, outline, select
from generator.publish.figures.frame import axis, brackets, gutter, phases_shown, torn
from generator.publish.figures.lanes import MARK, PRIME, WORDS, Focus, Kind
from generator.publish.figures.layout import NARROW, WIDE, Layout
from generator.publish.figures.legend import Item, draw_legend, items
from generator.publish.figures.markup import boxes, hatch, identifier, picture, text_width, textures
from generator.publish.figures.paint import (
    GROUND,
    Block,
    Owners,
    communication,
    occupancy,
    owners,
    painted,
    runs,
)
from generator.publish.figures.scale import TimeScale, nice_step
from generator.publish.show import number, time
from generator.timeline.intervals import clip, length
from generator.timeline.spans import Activity, Timeline

#: A figure never has more elements than this; the narrowest labels go first.
MOST_MARKS = 600
#: What the names of the lanes and their distance take of the left gutter.
LANE_NAMES_PX = 42
#: A block narrower than this on a phone is texture, not a block.
_LEAST_BLOCK_PX = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure in both sizes, with its words."""

    wide: str
    narrow: str
    title: str
    description: str
    #: What the narrow size leaves out; empty when it shows the whole step.
    note: str
    table: facts.Table


def timeline_figure(
    timeline: Timeline, *, ident: str, notes: tuple[str, ...] = (), focus: Focus | None = None
) -> Figure:
    """Draw a step. `ident` must be unique in the page; `notes` say where each rank stands in the mesh.

    `focus` is asked about the labels of every span and call (see lanes.Focus); what it picks is outlined.
    """
    until = narrow_end(timeline, NARROW.plot)
    shown = f"{number(until / 1e6)} of {number(timeline.step_ns / 1e6)}"
    note = "" if until >= timeline.step_ns else f"A narrow page shows the first {shown} ms."
    return Figure(
        wide=draw(timeline, WIDE, ident=ident, notes=notes, focus=focus),
        narrow=draw(timeline, NARROW, ident=f"{ident} n", notes=notes, focus=focus, end_ns=until),
        title=facts.title(timeline),
        description=facts.description(timeline),
        note=note,
        table=facts.timeline_table(timeline, notes),
    )


def narrow_end(timeline: Timeline, width_px: int) -> int:
    """Up to when a narrow figure shows a step, ns: all of it, or a round first part with legible blocks."""
    wide = TimeScale(0, timeline.step_ns, 0, WIDE.plot)
    seen: list[int] = []
    for rank in range(len(timeline.ranks)):
        found = lanes.kinds(timeline, rank)
        host = lanes.host_index(found)
        seen += [
            block.end - block.first
            for block in paint.blocks(owners([kind.on for kind in found], wide), host)
            if block.owner != host and block.end - block.first > 1
        ]
    if not seen:
        return timeline.step_ns
    wanted = float(np.median(seen)) * wide.ns_per_px / _LEAST_BLOCK_PX * width_px
    if wanted >= 0.8 * timeline.step_ns:
        return timeline.step_ns
    unit = nice_step(wanted / 10)
    return max(unit, int(wanted) // unit * unit)


def draw(
    timeline: Timeline,
    layout: Layout,
    *,
    ident: str,
    notes: tuple[str, ...] = (),
    focus: Focus | None = None,
    end_ns: int | None = None,
    style: str = "",
    margin: int = 0,
) -> str:
    """One size of the figure as an `<svg>`; with `style` as a document (see markup.picture)."""
    until = timeline.step_ns if end_ns is None else end_ns
    count = len(timeline.ranks)
    coordinates = ""
    if not layout.above and any(text_width(note, 11) > layout.left - LANE_NAMES_PX for note in notes):
        # They would run into the names of the lanes.
        notes, coordinates = facts.numbers_alone(notes)
    d = Drawing(
        timeline=timeline,
        layout=layout,
        scale=TimeScale(0, until, layout.left, layout.plot),
        ident=identifier(ident),
        focused=select(timeline, focus) if focus else NOTHING,
        notes=notes,
        layered=any(lanes.shades(timeline, r) for r in range(count)),
        talks=bool(timeline.calls),
        full_bytes=max(facts.peak_bytes(lane) for lane in timeline.ranks),
    )
    phases = phases_shown(d)
    top = layout.top(bool(phases))
    tops = [top + r * (d.rank_height + layout.gap) for r in range(count)]
    bottom = tops[-1] + d.rank_height
    axis(d, bottom + 8)
    join_calls(d.canvas, d.focused, d.scale, tops, layout.comm_y(0, d.layered) + layout.comm)
    brackets(d, phases, top)
    for rank in range(count):
        gutter(d, rank, tops[rank])
        _rank(d, rank, tops[rank])
    join_sends(d.canvas, timeline, d.focused, d.scale, tops, layout.compute)
    if until < timeline.step_ns:
        torn(d, tops)
    legend_top = bottom + 26
    d.choose_labels()
    named = items(timeline, numbers=any(label.words.isdigit() or label.short for label in d.labels))
    if coordinates:
        named.append(Item("", f"under a rank: {coordinates}"))
    height = legend_top + draw_legend(d.canvas, named, ident=d.ident, y=legend_top, width=layout.width)
    _write_labels(d)
    return picture(
        d.canvas,
        width=layout.width,
        height=height,
        ident=d.ident,
        title=facts.title(timeline),
        description=facts.description(timeline),
        definitions=hatch(d.ident) + textures(d.ident),
        style=style,
        margin=margin,
    )


def _rank(d: Drawing, rank: int, y: int) -> None:
    found = lanes.kinds(d.timeline, rank)
    owned = owners([kind.on for kind in found], d.scale)
    blocks = paint.blocks(owned, lanes.host_index(found))
    _blocks(d, rank, y, found, blocks)
    _ground(d, rank, y, owned)
    if d.layered:
        _layers(d, rank, d.layout.layer_y(y), blocks)
    if d.talks:
        _communication(d, rank, d.layout.comm_y(y, d.layered))
    if d.remembers:
        floor = d.layout.memory_y(y, d.layered, d.talks)
        memory.draw(
            d.canvas,
            d.timeline.ranks[rank].memory,
            d.scale,
            y=floor,
            height=d.layout.memory,
            full_bytes=d.full_bytes,
            ident=d.ident,
        )
        base = floor + d.layout.memory + 0.5
        d.canvas.line(d.layout.left, base, d.scale.right_px, base, "gl2")
    _outline(d, rank, y, blocks)


def _blocks(d: Drawing, rank: int, y: int, found: tuple[Kind, ...], blocks: list[Block]) -> None:
    by_class: dict[str, list[tuple[int, int]]] = {}
    x0 = d.layout.left
    for block in blocks:
        kind = found[block.owner]
        cls = MARK[kind.activity]
        by_class.setdefault(cls, []).extend((x0 + a, x0 + b) for a, b in block.pieces())
        if block.slivers:
            by_class.setdefault("H", []).extend((x0 + a, x0 + b) for a, b in block.slivers)
        words = _words(d, rank, kind, block)
        if block.end - block.first >= _LEAST_BLOCK_PX:
            d.blocks[kind.activity] += 1
        if words:
            # Beside the slivers, if some piece has the room.
            a, b = max(block.pieces(), key=lambda piece: piece[1] - piece[0])
            if b - a < text_width(words, d.layout.words) + 4:
                a, b = block.first, block.end
            look = f"t{cls} s{d.layout.words}{' b' if _is_picked(d, rank, block) else ''}"
            d.labels.append(
                Label(
                    x=x0 + (a + b) / 2,
                    y=y + d.layout.compute // 2 + 4,
                    words=words,
                    cls=look,
                    room=block.end - block.first,
                    activity=kind.activity,
                    short=_number(kind),
                )
            )
    for cls, spans in by_class.items():
        d.canvas.path(boxes(spans, y, d.layout.compute), f"{cls} k")


def _words(d: Drawing, rank: int, kind: Kind, block: Block) -> str:
    """What a block says: the longest of its names that fits inside it."""
    candidates: list[str] = []
    if kind.activity in (Activity.OPTIMIZER, Activity.HOST):
        candidates = list(WORDS[kind.activity])
    elif kind.microbatch >= 0:
        candidates = [f"{MARK[kind.activity]}{_number(kind)}", _number(kind)]
    else:
        start, end = _times(d, block)
        layers = lanes.layers_at(d.timeline.ranks[rank].computation, start, end)
        candidates = list(WORDS[kind.activity]) if len(layers) != 1 else [layers[0]]
        if layers == ("embedding",):
            candidates.append("emb")
    for words in candidates:
        pad = 2.3 if words.rstrip(PRIME).isdigit() else 7
        if text_width(words, d.layout.words) + pad <= block.end - block.first:
            return words
    return ""


def _number(kind: Kind) -> str:
    """A block's micro-batch; primed where the rank works on the second of its stages."""
    return f"{kind.microbatch}{PRIME * kind.chunk}" if kind.microbatch >= 0 else ""


def _ground(d: Drawing, rank: int, y: int, owned: Owners) -> None:
    """Say on the ground how long a rank does nothing, where there is room."""
    spans = d.timeline.ranks[rank].computation
    idle, blocked = lanes.doing(spans, Activity.IDLE), lanes.doing(spans, Activity.BLOCKED)
    for a, b in runs(owned == GROUND):
        if b - a < 58:
            continue
        start, end = (int(d.scale.begin_ns + edge * d.scale.ns_per_px) for edge in (a - 1, b + 1))
        still = [length(clip(kind, start, end)) for kind in (idle, blocked)]
        last = int(spans.end_ns[-1]) if len(spans) else 0
        if end > last:
            still[0] += d.timeline.step_ns - last
        # A stage that waits for a message has nothing to do: that is the bubble, whoever holds the thread.
        word = "idle" if still[0] >= still[1] or d.timeline.stages > 1 else "blocked"
        words = f"{word} {time(sum(still), 0)}"
        if sum(still) and text_width(words, 11) + 12 <= b - a:
            middle = d.layout.left + (a + b) / 2
            line = y + d.layout.compute // 2 + 4
            d.labels.append(Label(x=middle, y=line, words=words, cls="t3", room=b - a))


def _layers(d: Drawing, rank: int, y: int, blocks: list[Block]) -> None:
    found = lanes.shades(d.timeline, rank)
    owned = owners([shade.on for shade in found], d.scale)
    # Where a block ends so do its layers, even if the next block begins with the same lightness.
    ends = [block.end for block in blocks if block.end < len(owned)]
    owned[ends] = GROUND
    by_class: dict[str, list[tuple[int, int]]] = {}
    for part in paint.blocks(owned, least=4):
        cls = f"{MARK[found[part.owner].activity]} l-{found[part.owner].shade}"
        by_class.setdefault(cls, []).append((d.layout.left + part.first, d.layout.left + part.end))
    for cls, spans in by_class.items():
        d.canvas.path(boxes(spans, y, d.layout.layers), f"{cls} k")


def _communication(d: Drawing, rank: int, y: int) -> None:
    wait, transfer = lanes.communication(d.timeline, rank)
    communication(
        d.canvas,
        wait,
        transfer,
        d.scale,
        y=y,
        height=d.layout.comm,
        ident=d.ident,
        handovers=lanes.handovers(d.timeline, rank),
    )


def _times(d: Drawing, block: Block) -> tuple[int, int]:
    """When a block begins and ends, ns, to the pixel."""
    start, end = (round(d.scale.begin_ns + edge * d.scale.ns_per_px) for edge in (block.first, block.end))
    return start, end


def _is_picked(d: Drawing, rank: int, block: Block) -> bool:
    if not d.focused.spans:
        return False
    start, end = _times(d, block)
    return 2 * length(clip(d.focused.spans[rank], start, end)) > end - start


def _outline(d: Drawing, rank: int, y: int, blocks: list[Block]) -> None:
    """Outline what the focus picked on a rank: whole blocks as one box, else the stretch itself."""
    x0, found = d.layout.left, []
    if d.focused.spans and len(d.focused.spans[rank]):
        picked = painted(occupancy(d.focused.spans[rank], d.scale), keep=True)
        # A block's right edge gave a pixel of ground away; an outline keeps to the block.
        picked[[block.end for block in blocks if block.end < len(picked)]] = False
        found = [(x0 + a, y, b - a, d.layout.compute) for a, b in runs(picked)]
    if found:
        outline(d.canvas, found)
    if d.focused.on_calls:
        found, top = [], d.layout.comm_y(y, d.layered)
        for _, members in d.focused.calls:
            for m in members:
                if m.rank == d.timeline.ranks[rank].rank and m.begin_ns < d.scale.end_ns:
                    a, b = d.scale.px(m.arrive_ns), min(d.scale.px(m.end_ns), d.scale.right_px)
                    found.append((a, top, max(2, b - a), d.layout.comm))
        outline(d.canvas, found, around=True)


def _write_labels(d: Drawing) -> None:
    """Write the labels that the mark budget allows, the roomiest first, in drawing order."""
    spare = MOST_MARKS - d.canvas.marks - 12
    if len(d.labels) > spare:
        d.labels = sorted(d.labels, key=lambda label: -label.room)[: max(0, spare)]
        d.labels.sort(key=lambda label: (label.y, label.x))
    for label in d.labels:
        d.canvas.text(label.x, label.y, label.words, label.cls, "middle")
