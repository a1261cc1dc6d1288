"""Figures: pure functions from timelines to SVG text.

`step` draws the timeline of one step, `compare` several runs on one axis, `strip` all steps of a run,
`document` a file of its own. `scale` is the only place that turns time into pixels, `paint` the only one
that decides which pixels are busy, `lanes` and `facts` say what there is to draw and to tell.
"""

from __future__ import annotations

from generator.publish.figures.compare import Comparison, Entry, Row, comparison
from generator.publish.figures.document import logo, standalone
from generator.publish.figures.facts import RankFacts, Table, rank_facts, rank_notes, timeline_table
from generator.publish.figures.lanes import Focus
from generator.publish.figures.step import Figure, timeline_figure
from generator.publish.figures.strip import Strip, steps_strip

__all__ = [
    "Comparison",
    "Entry",
    "Figure",
    "Focus",
    "RankFacts",
    "Row",
    "Strip",
    "Table",
    "comparison",
    "logo",
    "rank_facts",
    "rank_notes",
    "standalone",
    "steps_strip",
    "timeline_figure",
    "timeline_table",
]
