"""Small runs for tests: recorded on loopback, without root, and read back."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.recorder.progress import Progress
from generator.recorder.record import record_spec
from generator.recorder.spec import RunSpec
from generator.runs.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    from generator.recorder.model import Shape

#: Two to warm up, one in time, one in detail.
STEPS = 4
TIMED, DETAIL = 2, 3
LAYERS = 2

Event = dict[str, Any]


@dataclass(frozen=True)
class SmallRun:
    """A recorded folder as read back."""

    folder: Path
    manifest: Manifest
    ranks: tuple[list[Event], ...]

    @property
    def losses(self) -> list[float]:
        return [s.loss for s in self.manifest.steps]

    def spans(self, rank: int = 0, step: int = TIMED) -> list[Event]:
        """Spans of the rank's own thread in a step, in order of begin, enclosing ones first."""
        return [e for e in self.ranks[rank] if e["ph"] == "X" and e["tid"] == 0 and e["args"]["step"] == step]

    def phases(self, rank: int = 0, step: int = TIMED) -> list[Event]:
        return [e for e in self.spans(rank, step) if "phase" in e["args"] and "module" not in e["args"]]

    def layers(self, rank: int = 0, step: int = TIMED) -> list[Event]:
        return [e for e in self.spans(rank, step) if "module" in e["args"]]

    def calls(self, rank: int = 0, step: int = TIMED) -> list[Event]:
        """Arguments of the calls that a rank issued in a step, in order."""
        return [e["args"] for e in self.spans(rank, step) if "op" in e["args"]]

    def waits(self, rank: int = 0, step: int = TIMED) -> list[Event]:
        return [e for e in self.spans(rank, step) if e["name"] == "wait"]

    def memory(self, rank: int = 0) -> list[dict[str, int]]:
        return [e["args"] for e in self.ranks[rank] if e["ph"] == "C"]

    def memory_at(self, event: Event, rank: int = 0) -> dict[str, int]:
        """Bytes by category when an event began."""
        before = [e for e in self.ranks[rank] if e["ph"] == "C" and e["ts"] <= event["ts"] + 50]
        found: dict[str, int] = before[-1]["args"]
        return found


def small_shape(layers: int = LAYERS) -> Shape:
    from generator.recorder.model import Shape

    return Shape(d_model=64, layers=layers, heads=4, vocabulary=256, tokens=32, sequences=4)


def record_small(spec: RunSpec, out: Path, *, layers: int = LAYERS, **changes: Any) -> SmallRun:
    """Record a run on loopback, with what `changes` its spec, and check that its calls are whole."""
    record_spec(
        replace(spec, rate_mbit=0, **changes),
        out,
        commit="abc1234",
        shape=small_shape(layers),
        steps=STEPS,
        progress=Progress(io.StringIO()),
    )
    manifest = read_manifest(out / spec.id / "run.toml")
    traces = [json.loads(gzip.decompress((out / spec.id / r.file).read_bytes())) for r in manifest.ranks]
    run = SmallRun(out / spec.id, manifest, tuple(t["traceEvents"] for t in traces))
    for rank in range(manifest.world_size):
        for step in range(STEPS):
            waited = sorted(e["args"]["call"] for e in run.waits(rank, step))
            assert waited == sorted(c["call"] for c in run.calls(rank, step))
    return run
