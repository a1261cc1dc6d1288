"""A timeline figure while it is being drawn: what every lane needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field

from generator.publish.figures.focus import Focused
from generator.publish.figures.layout import Layout
from generator.publish.figures.markup import Canvas
from generator.publish.figures.scale import TimeScale
from generator.timeline.spans import Timeline


@dataclass(slots=True)
class Label:
    x: float
    y: int
    words: str
    cls: str
    room: float
    #: Carries the number of a micro-batch.
    batch: bool = False


@dataclass(slots=True)
class Drawing:
    """What is being drawn, with the answers that every lane needs."""

    timeline: Timeline
    layout: Layout
    scale: TimeScale
    ident: str
    focused: Focused
    notes: tuple[str, ...]
    layered: bool
    talks: bool
    full_bytes: int
    canvas: Canvas = field(default_factory=Canvas)
    labels: list[Label] = field(default_factory=list)

    @property
    def remembers(self) -> bool:
        return self.full_bytes > 0

    @property
    def rank_height(self) -> int:
        return self.layout.rank_height(self.layered, self.talks, self.remembers)
