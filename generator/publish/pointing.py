"""What a figure of an exercise points to: outlines of its picture, and the marks that its script draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from generator.lessons.figures import TimelineFigure
from generator.lessons.picking import Marks, marks_of
from generator.lessons.selections import parse_selection, select
from generator.publish.figures.lanes import Focus
from generator.timeline.spans import Timeline


@dataclass(frozen=True, slots=True)
class Pointing:
    """Of a figure."""

    #: Of the picture; None where nothing is outlined.
    focus: Focus | None
    #: For the script: marks (lessons.picking) of `focus`, `highlight` and of each of `views`, as JSON. May be
    #: empty.
    data: str


def pointing(figure: TimelineFigure, timeline: Timeline) -> Pointing:
    """What a figure points to. Raises UserError for a selection that cannot be read."""
    spans: set[tuple[int, int]] = set()
    calls: set[tuple[int, int]] = set()
    data: dict[str, object] = {}
    for key in ("focus", "highlight"):
        found = select(parse_selection(getattr(figure, key)), timeline)
        for event in found:
            (calls if event.call >= 0 else spans).update((event.rank, row) for row in event.rows)
        if found:
            data[key] = marks_of("event", found)
    if figure.views:
        data["views"] = {view.name: _marks(view.focus, timeline) for view in figure.views}

    def chosen(labels: Mapping[str, str | int]) -> bool:
        return (labels["rank"], labels["row"]) in (calls if labels["op"] else spans)

    return Pointing(
        chosen if spans or calls else None,
        json.dumps(data, separators=(",", ":")) if data else "",
    )


def _marks(text: str, timeline: Timeline) -> Marks:
    return marks_of("event", select(parse_selection(text), timeline))
