"""The book's runs as a site needs them: manifests, timelines and validations, each made once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from generator.book import Book
from generator.errors import UserError
from generator.publish import pack
from generator.publish.cache import DATA, PICTURES, Cache, key
from generator.publish.urls import run_data_url
from generator.runs.manifest import FILE_NAME, Manifest
from generator.runs.reader import read_manifests, read_run
from generator.runs.run import Run
from generator.texts import read_bytes
from generator.timeline.collectives import Verdict
from generator.timeline.corecheck import CoreCheck, Pair, core_check, pairs_among
from generator.timeline.export import from_json, to_json
from generator.timeline.reconstruct import reconstruct
from generator.timeline.repeatability import Repeatability, read_repeatability
from generator.timeline.spans import Timeline
from generator.timeline.unitcost import at_unit_cost
from generator.timeline.validation import Validation, validate
from generator.timeline.whatif import parse_what_if, replayable, what_if_timeline

MODES = ("isolated", "recorded")
LINK_MODEL = "ring"


class Library:
    """Everything known of the runs of a book, each made once. Reading one raises UserError."""

    def __init__(self, book: Book, progress: Callable[[str], None]) -> None:
        self._folder = book.runs
        self._progress = progress
        self._cache = Cache(book.cache)
        self._runs: dict[str, Run] = {}
        self._timelines: dict[tuple[str, str, int | None, str], Timeline] = {}
        self._unit_costs: dict[str, Timeline] = {}
        self._validations: dict[str, Validation] = {}
        self._core_checks: tuple[CoreCheck, ...] | None = None
        self._data: dict[str, bytes] = {}
        self._broken: dict[str, UserError] = {}
        self._inputs: dict[str, bytes] = {}
        #: What could be read of all manifests, and what is wrong with the others.
        self.runs = read_manifests(book.runs)

    @property
    def manifests(self) -> Mapping[str, Manifest]:
        """By id: runs with steps first, those that others are compared with at the front."""
        return self.runs.by_id

    @property
    def with_steps(self) -> tuple[Manifest, ...]:
        return tuple(m for m in self.manifests.values() if m.has_steps)

    def check(self, run_id: str) -> None:
        """Make sure that a run can be read, where no timeline of it is asked for. Raises UserError."""
        self._run(run_id)

    def folder(self, run_id: str) -> Path:
        return self._folder / run_id

    def timeline(self, run_id: str, mode: str, step: int | None = None, what_if: str = "") -> Timeline:
        """A step of a run, recorded, or isolated over a ring on the calibrated link.

        `step` is the representative one unless given. `what_if` is the text of what is changed in it.
        """
        return self._timeline(run_id, mode, step, what_if)

    def steps(self, run_id: str) -> tuple[Timeline, ...]:
        """Every step of a run as it was recorded."""
        return tuple(self._timeline(run_id, "recorded", s.index) for s in self.manifests[run_id].steps)

    def data(self, run_id: str) -> bytes:
        """The script that gives the browser a run's representative step, in every mode of a timeline."""
        if run_id not in self._data:
            self._data[run_id] = self._pack(run_id)
        return self._data[run_id]

    def data_url(self, run_id: str) -> str:
        """Where the site has that script."""
        return run_data_url(run_id, hashlib.sha256(self.data(run_id)).hexdigest()[:12])

    def _pack(self, run_id: str) -> bytes:
        calibration = self.manifests[run_id].link.calibration
        parts = [LINK_MODEL.encode(), *map(self._input, filter(None, (run_id, calibration)))]

        def make() -> bytes:
            by = self._run(calibration) if calibration else None
            return pack.script(self._run(run_id), link_model=LINK_MODEL, calibration=by).encode()

        return self._cache.load(key("data", parts, DATA), make, bytes)

    def validation(self, run_id: str) -> Validation:
        """How right a run and its reconstruction are."""
        if run_id not in self._validations:
            self._validations[run_id] = self._validation(run_id)
        return self._validations[run_id]

    def _validation(self, run_id: str) -> Validation:
        partner = self.manifests[run_id].partner
        parts = [self._input(run_id)] + ([self._input(partner)] if partner else [])

        def make() -> bytes:
            run = self._run(run_id)
            return _dump(validate(run, self._run(partner) if partner else None))

        return self._cache.load(key("validation", parts), make, _load)

    def core_checks(self) -> tuple[CoreCheck, ...]:
        """Each pair of recordings with shared cores and with a core each, the one predicted by the other."""
        if self._core_checks is None:
            limited = [m.id for m in self.with_steps if m.link.calibration]
            self._core_checks = tuple(self._core_check(*pair) for pair in pairs_among(limited))
        return self._core_checks

    def _core_check(self, scheme: str, shared: str, each: str) -> CoreCheck:
        calibration = self.manifests[shared].link.calibration

        def make() -> bytes:
            pair = Pair(scheme, self._run(shared), self._run(each), self._run(calibration))
            (found,) = core_check([pair])
            return orjson.dumps(found)

        parts = [scheme.encode(), *map(self._input, (shared, each, calibration))]
        return self._cache.load(key("cores", parts), make, lambda text: CoreCheck(**orjson.loads(text)))

    def repeatability(self) -> Repeatability | None:
        """How alike two recordings of the book's runs were, where that was measured."""
        return read_repeatability(self._folder)

    def unit_cost(self, run_id: str) -> Timeline:
        """The order of a pipeline's work at unit cost."""
        if run_id not in self._unit_costs:
            self._unit_costs[run_id] = self._cache.load(
                key("unit-cost", [self._input(run_id)]),
                lambda: to_json(at_unit_cost(self._run(run_id))),
                from_json,
            )
        return self._unit_costs[run_id]

    def drawn(self, run_id: str, make: Callable[[], list[list[str]]]) -> list[list[str]]:
        """What `make` draws of a run, as rows of texts: kept like a timeline, and as long."""
        calibration = self.manifests[run_id].link.calibration
        parts = [self._input(run_id)] + ([self._input(calibration)] if calibration else [])

        def read(text: bytes) -> list[list[str]]:
            rows: list[list[str]] = orjson.loads(text)
            return rows

        return self._cache.load(key("pictures", parts, PICTURES), lambda: orjson.dumps(make()), read)

    def _timeline(self, run_id: str, mode: str, step: int | None, what_if: str = "") -> Timeline:
        wanted = (run_id, mode, step, what_if)
        if wanted not in self._timelines:
            self._timelines[wanted] = self._reconstruct(run_id, mode, step, what_if)
        return self._timelines[wanted]

    def _reconstruct(self, run_id: str, mode: str, step: int | None, what_if: str) -> Timeline:
        if run_id in self._broken:  # asked for by every expression of a page, and read once
            raise self._broken[run_id]
        calibration = self.manifests[run_id].link.calibration if mode == "isolated" else ""

        def make() -> bytes:
            by = self._run(calibration) if calibration else None
            run = self._run(run_id)
            if what_if:
                given = replayable(run, mode=mode, link_model=LINK_MODEL, calibration=by, step=step)
                return to_json(what_if_timeline(given, parse_what_if(what_if)))
            return to_json(reconstruct(run, mode=mode, link_model=LINK_MODEL, calibration=by, step=step))

        # What a what-if asks of a run may be wrong; the run is not broken by it.
        parts = [mode.encode(), LINK_MODEL.encode(), str(step).encode(), what_if.encode()]
        try:
            parts += [self._input(name) for name in (run_id, calibration) if name]
            return self._cache.load(key("timeline", parts), make, from_json)
        except UserError as error:
            if not what_if:
                self._broken[run_id] = error
            raise

    def _run(self, run_id: str) -> Run:
        if run_id not in self._runs:
            if self.manifests[run_id].ranks:
                self._progress(f"Reading {run_id}")
            self._runs[run_id] = read_run(self._folder / run_id)
        return self._runs[run_id]

    def calibration(self, run_id: str) -> Run:
        """A calibration, whose manifest is all there is to read."""
        return self._run(run_id)

    def _input(self, run_id: str) -> bytes:
        """What a run's results depend on: its manifest and the bytes of its rank files."""
        if run_id not in self._inputs:
            folder, manifest = self._folder / run_id, self.manifests[run_id]
            try:
                files = [read_bytes(folder / name) for name in (FILE_NAME, *(r.file for r in manifest.ranks))]
            except UserError:
                self._run(run_id)  # says more, such as which line of the manifest names a missing file
                raise
            self._inputs[run_id] = key("input", files).encode()
        return self._inputs[run_id]


def _dump(found: Validation) -> bytes:
    return orjson.dumps(
        {
            "run": found.run,
            "all_steps_ns": found.all_steps_ns,
            "step_ns": found.step_ns,
            "replay_error": found.replay_error,
            "replay_error_alone": found.replay_error_alone,
            "moved_ns": found.moved_ns,
            "early": found.early,
            "unnumbered": found.unnumbered,
            "unnumbered_of": found.unnumbered_of,
            "verdicts": {str(v.value): n for v, n in found.verdicts.items()},
            "loss_difference": found.loss_difference,
        }
    )


def _load(text: bytes) -> Validation:
    data = orjson.loads(text)
    verdicts = {str(v.value): v for v in Verdict}
    return Validation(
        run=data["run"],
        all_steps_ns=tuple(data["all_steps_ns"]),
        step_ns=tuple(data["step_ns"]),
        replay_error=tuple(data["replay_error"]),
        replay_error_alone=tuple(data["replay_error_alone"]),
        moved_ns=tuple(data["moved_ns"]),
        early=data["early"],
        unnumbered=data["unnumbered"],
        unnumbered_of=data["unnumbered_of"],
        verdicts={verdicts[name]: n for name, n in data["verdicts"].items()},
        loss_difference=data["loss_difference"],
    )
