"""The line under a figure that says what its marks are: only those that occur in it."""

from __future__ import annotations

from dataclasses import dataclass

from generator.publish.figures import lanes, memory
from generator.publish.figures.markup import Canvas, boxes, text_width
from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.spans import Activity, Timeline

LINE = 18
_SWATCH = 12
_APART = 18
_NAMES = {"F": "forward", "B": "backward", "W": "weight gradient", "O": "optimizer", "H": "host"}


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: a swatch (a class, or a pattern by the end of its id) and a word."""

    cls: str
    words: str
    pattern: str = ""


def items(timeline: Timeline, *, numbers: bool = True, held: bool = True) -> list[Item]:
    """What a figure's legend names; `numbers`: some blocks carry one; `held`: memory is drawn."""
    acts = _activities(timeline)
    marks = {lanes.MARK[a] for a in acts if a in lanes.MARK}
    found = [Item(f"{mark} k", name) for mark, name in _NAMES.items() if mark in marks]
    if Activity.BACKWARD_INPUT in acts:
        words = "backward, or input gradient" if Activity.BACKWARD in acts else "input gradient"
        found = [Item(i.cls, words) if i.words == "backward" else i for i in found]
    if numbers:
        found.append(Item("", f"number: {'micro-batch' if lanes.numbered(timeline) else 'layer'}"))
        if any(lanes.own_stage(lane.computation).any() for lane in timeline.ranks):
            found.append(Item("", f"{lanes.PRIME}: on the rank's second stage"))
    if timeline.calls:
        found += [Item("X k", "transfer"), Item("k", "waiting for another rank", "hatch")]
    present = _categories(timeline) if held else set()
    if present:
        found.append(Item("", "memory:"))
    found += [
        Item(f"m-{name}", lanes.MEMORY_WORDS[name], memory.TEXTURE.get(name, ""))
        for name in memory.STACK
        if name in present
    ]
    return found


def draw_legend(canvas: Canvas, found: list[Item], *, ident: str, y: int, width: int) -> int:
    """Draw a legend from `y` down over `width` px. Returns its height, px."""
    row = 0
    for item, row, left in _flow(found, width):
        top, start = y + row * LINE, left
        if item.cls:
            fill = f"url(#{ident}-{item.pattern})" if item.pattern else None
            canvas.path(boxes([(start, start + _SWATCH)], top, 9), item.cls, fill=fill)
            start += _SWATCH + 5
        canvas.text(start, top + 8.5, item.words, "t3")
    return (row + 1) * LINE


def _activities(timeline: Timeline) -> set[Activity]:
    """What occurs; host work only where it is long enough to be seen."""
    seen = timeline.step_ns / 1000
    found: set[Activity] = set()
    for lane in timeline.ranks:
        spans = lane.computation
        long = (spans.end_ns - spans.start_ns >= seen) | (spans.activity != Activity.HOST)
        found |= {Activity(int(a)) for a in set(spans.activity[long].tolist())}
    return found


def _flow(found: list[Item], width: int) -> list[tuple[Item, int, int]]:
    """Each item with its line and its left edge, filled like words of a paragraph."""
    placed, row, left = [], 0, 0
    wides = [round(text_width(i.words, 11) + (_SWATCH + 5 if i.cls else 0)) for i in found]
    for k, (item, wide) in enumerate(zip(found, wides, strict=True)):
        # A heading stays with the first item under it.
        needed = wide + (wides[k + 1] + 8 if item.words.endswith(":") and k + 1 < len(found) else 0)
        if left and left + needed > width:
            row, left = row + 1, 0
        placed.append((item, row, left))
        left += wide + (8 if item.words.endswith(":") else _APART)
    return placed


def _categories(timeline: Timeline) -> set[str]:
    """Memory categories that fill at least half a pixel of some rank's lane."""
    curves = [lane.memory.bytes for lane in timeline.ranks if len(lane.memory.time_ns)]
    full = max((int(b.sum(axis=1).max()) for b in curves), default=0)
    return {
        name
        for b in curves
        for name, most in zip(MEMORY_CATEGORIES, b.max(axis=0).tolist(), strict=True)
        if 48 * most > full
    }
