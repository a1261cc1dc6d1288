"""What an exercise's expressions can see: the runs of its page, in each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from generator.errors import UserError
from generator.lessons.vocabulary import Vocabulary
from generator.runs.manifest import Manifest
from generator.runs.run import Run
from generator.timeline.spans import Timeline

#: Gives the representative step of a run in a mode ("isolated" or "recorded").
Timelines = Callable[[str, str], Timeline]


@dataclass(frozen=True, slots=True)
class Scope:
    """Runs by id and how to get their timelines. Expressions that name no run mean `default_run`."""

    default_run: str
    manifests: Mapping[str, Manifest]
    timelines: Timelines
    vocabulary: Vocabulary


@dataclass(slots=True)
class BookTimelines:
    """Timelines of the runs below a folder, each read and reconstructed once.

    Isolated mode uses the ring model of a link and the run's own calibration. A run that cannot be
    read raises the same UserError each time it is asked for.
    """

    runs: Path
    _kept: dict[tuple[str, str], Timeline | UserError] = field(default_factory=dict)
    _read: dict[str, Run] = field(default_factory=dict)

    def __call__(self, run_id: str, mode: str) -> Timeline:
        key = (run_id, mode)
        if key not in self._kept:
            try:
                self._kept[key] = self._make(run_id, mode)
            except UserError as error:
                self._kept[key] = error
        kept = self._kept[key]
        if isinstance(kept, UserError):
            raise kept
        return kept

    def _make(self, run_id: str, mode: str) -> Timeline:
        # Late, because checking the form of an exercise does not need it.
        from generator.timeline.reconstruct import reconstruct

        run = self._run(run_id)
        link = run.manifest.link.calibration
        calibration = self._run(link) if link else None
        if mode == "recorded":
            return reconstruct(run, mode="recorded", calibration=calibration)
        return reconstruct(run, mode="isolated", link_model="ring", calibration=calibration)

    def _run(self, run_id: str) -> Run:
        from generator.runs.reader import read_run

        if run_id not in self._read:
            self._read[run_id] = read_run(self.runs / run_id)
        return self._read[run_id]
