"""The book's runs as a site needs them: manifests, timelines and validations, each made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson

from generator.book import Book
from generator.errors import UserError
from generator.publish.cache import Cache, key
from generator.runs.manifest import FILE_NAME, Manifest, read_manifest
from generator.runs.reader import read_run, run_ids
from generator.runs.run import Run
from generator.timeline.collectives import Verdict
from generator.timeline.export import from_json, to_json
from generator.timeline.reconstruct import reconstruct
from generator.timeline.spans import Timeline
from generator.timeline.validation import Validation, validate

MODES = ("isolated", "recorded")
LINK_MODEL = "ring"


class Library:
    """Everything known of the runs of a book. Reading one raises UserError when it is not in order."""

    def __init__(self, book: Book, progress: Callable[[str], None]) -> None:
        self._folder = book.runs
        self._progress = progress
        self._cache = Cache(book.cache)
        self._runs: dict[str, Run] = {}
        self._timelines: dict[tuple[str, str, int | None], Timeline] = {}
        self._inputs: dict[str, bytes] = {}
        self._said: set[str] = set()
        #: By id, sorted: trainings first, the run that others are compared with at the front.
        self.manifests: dict[str, Manifest] = _manifests(book.runs)

    @property
    def with_steps(self) -> tuple[Manifest, ...]:
        return tuple(m for m in self.manifests.values() if m.has_steps)

    def check(self, run_id: str) -> None:
        """Make sure that a run can be read, where no timeline of it is asked for. Raises UserError."""
        self._run(run_id)

    def folder(self, run_id: str) -> Path:
        return self._folder / run_id

    def timeline(self, run_id: str, mode: str) -> Timeline:
        """The representative step of a run: recorded, or isolated over a ring on the calibrated link."""
        return self._timeline(run_id, mode, None)

    def steps(self, run_id: str) -> tuple[Timeline, ...]:
        """Every step of a run as it was recorded."""
        return tuple(self._timeline(run_id, "recorded", s.index) for s in self.manifests[run_id].steps)

    def _timeline(self, run_id: str, mode: str, step: int | None) -> Timeline:
        key = (run_id, mode, step)
        if key not in self._timelines:
            self._timelines[key] = self._load(run_id, mode, step)
        return self._timelines[key]

    def validation(self, run_id: str) -> Validation:
        """How right a run and its reconstruction are."""
        partner = self.manifests[run_id].partner
        parts = [self._input(run_id)] + ([self._input(partner)] if partner else [])

        def make() -> bytes:
            self._say(run_id)
            run = self._run(run_id)
            return _dump(validate(run, self._run(partner) if partner else None))

        name = key("validation", parts)
        try:
            return _load(self._cache.get(name, make))
        except (ValueError, KeyError, TypeError):
            self._cache.forget(name)
            return _load(make())

    def _load(self, run_id: str, mode: str, step: int | None) -> Timeline:
        calibration = self.manifests[run_id].link.calibration if mode == "isolated" else ""
        parts = [mode.encode(), LINK_MODEL.encode(), str(step).encode(), self._input(run_id)]
        parts += [self._input(calibration)] if calibration else []

        def make() -> bytes:
            self._say(run_id)
            by = self._run(calibration) if calibration else None
            run = self._run(run_id)
            return to_json(reconstruct(run, mode=mode, link_model=LINK_MODEL, calibration=by, step=step))

        name = key("timeline", parts)
        try:
            return from_json(self._cache.get(name, make))
        except (ValueError, KeyError, TypeError):
            self._cache.forget(name)
            return from_json(make())

    def _say(self, run_id: str) -> None:
        if run_id not in self._said:
            self._said.add(run_id)
            self._progress(f"Reconstructing {run_id}")

    def _run(self, run_id: str) -> Run:
        if run_id not in self._runs:
            self._runs[run_id] = read_run(self._folder / run_id)
        return self._runs[run_id]

    def _input(self, run_id: str) -> bytes:
        """What a run's results depend on: its manifest and the bytes of its rank files."""
        if run_id not in self.manifests:
            raise UserError(
                f"there is no run '{run_id}'",
                path=self._folder,
                remedy="Record it, or mend the run that names it.",
            )
        if run_id not in self._inputs:
            folder = self._folder / run_id
            names = [FILE_NAME, *(r.file for r in self.manifests[run_id].ranks)]
            try:
                self._inputs[run_id] = b"".join(
                    key("input", [(folder / n).read_bytes()]).encode() for n in names
                )
            except OSError:
                self._run(run_id)  # raises the error that says which file is missing
                raise
        return self._inputs[run_id]


def _manifests(folder: Path) -> dict[str, Manifest]:
    found = [read_manifest(folder / run_id / FILE_NAME) for run_id in run_ids(folder)]
    found.sort(key=lambda m: (not m.has_steps, m.model is None, bool(m.partner), m.id))
    return {m.id: m for m in found}


def _dump(found: Validation) -> bytes:
    return orjson.dumps(
        {
            "run": found.run,
            "step_ns": found.step_ns,
            "replay_error": found.replay_error,
            "replay_error_alone": found.replay_error_alone,
            "verdicts": {str(v.value): n for v, n in found.verdicts.items()},
            "loss_difference": found.loss_difference,
        }
    )


def _load(text: bytes) -> Validation:
    data = orjson.loads(text)
    verdicts = {str(v.value): v for v in Verdict}
    return Validation(
        run=data["run"],
        step_ns=tuple(data["step_ns"]),
        replay_error=tuple(data["replay_error"]),
        replay_error_alone=tuple(data["replay_error_alone"]),
        verdicts={verdicts[name]: n for name, n in data["verdicts"].items()},
        loss_difference=data["loss_difference"],
    )
