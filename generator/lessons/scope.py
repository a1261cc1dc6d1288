"""What an exercise's expressions can see: the runs of its page, in each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from generator.lessons.vocabulary import Vocabulary
from generator.runs.manifest import Manifest
from generator.timeline.spans import Timeline

#: Gives a step of a run in a mode ("isolated" or "recorded"): of (run, mode) the representative one, of
#: (run, mode, index) another; with `what_if`, the text of a what-if, laid out again so. Raises UserError.
Timelines = Callable[..., Timeline]


@dataclass(frozen=True, slots=True)
class Scope:
    """Runs by id and how to get their timelines. Expressions that name no run mean `default_run`."""

    default_run: str
    manifests: Mapping[str, Manifest]
    timelines: Timelines
    vocabulary: Vocabulary
