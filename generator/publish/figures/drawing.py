"""A timeline figure while it is being drawn: what every lane needs to know."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from generator.publish.figures.focus import Focused
from generator.publish.figures.layout import Layout
from generator.publish.figures.markup import Canvas
from generator.publish.figures.scale import TimeScale
from generator.timeline.spans import Activity, Timeline


@dataclass(frozen=True, slots=True)
class Label:
    """Words in a block or on the ground, written last."""

    x: float
    y: int
    words: str
    cls: str
    #: Width of what it stands in, px: the roomiest labels stay when there are too many.
    room: float
    activity: Activity = Activity.IDLE
    #: The number alone of a micro-batch, for when most blocks have no room for its letter.
    short: str = ""


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
    #: By activity: how many blocks there are that are not slivers, labelled or not.
    blocks: Counter[Activity] = field(default_factory=Counter)

    @property
    def remembers(self) -> bool:
        return self.full_bytes > 0

    @property
    def rank_height(self) -> int:
        return self.layout.rank_height(self.layered, self.talks, self.remembers)

    def choose_labels(self) -> None:
        """Label the blocks of an activity alike: in full or by number, or leave numbers out altogether.

        A name that fits into fewer than two thirds of the blocks gives way to the next shorter one.
        """
        full, numbered = Counter[Activity](), Counter[Activity]()
        for label in self.labels:
            if label.short or label.words.isdigit():
                numbered[label.activity] += 1
                full[label.activity] += label.words != label.short
        kept = []
        for label in self.labels:
            enough = 2 * self.blocks[label.activity]
            if not label.short and not label.words.isdigit():
                kept.append(label)
            elif label.short and 3 * full[label.activity] < enough <= 3 * numbered[label.activity]:
                kept.append(replace(label, words=label.short))
            elif enough <= 3 * numbered[label.activity]:
                kept.append(label)
        self.labels = kept
