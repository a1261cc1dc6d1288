"""The vocabulary of the exercises: named measures of a timeline.

Each metric is a function of a timeline and a few filters; its docstring is its entry on the
definitions page. Times are unions of intervals, never sums: two calls at once count once.

Without `rank`, a time, a rate or a fraction is the mean over ranks, bytes and operations are the sum
over ranks, a count counts each call once, and a peak is the largest of all ranks.
"""

from __future__ import annotations

import importlib

from generator.timeline.metrics.entry import METRICS, SUBJECTS, Metric
from generator.timeline.metrics.lanes import PHASES, PIPELINE_WORK, activity

__all__ = ["METRICS", "PHASES", "PIPELINE_WORK", "SUBJECTS", "Metric", "activity"]

# Importing a module enters its metrics, in the order in which they are listed.
for _subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{_subject}")
