"""The runs that are committed, read once for all tests of a process."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from generator.runs.manifest import FILE_NAME, Batch, Manifest, Model, read_manifest
from generator.runs.reader import read_run, run_ids
from generator.runs.run import Run
from generator.timeline import unitcost
from generator.timeline.reconstruct import reconstruct
from generator.timeline.spans import Timeline

#: Another folder of recordings, to try them before they are committed.
RUNS = Path(os.environ.get("SHARDBOOK_RUNS") or Path(__file__).parent.parent / "measured_runs")


@cache
def run(run_id: str) -> Run:
    return read_run(RUNS / run_id)


@cache
def manifest(run_id: str) -> Manifest:
    return read_manifest(RUNS / run_id / FILE_NAME)


def model(run_id: str) -> Model:
    """Of a training run."""
    found = manifest(run_id).model
    assert found is not None
    return found


def batch(run_id: str) -> Batch:
    """Of a training run."""
    found = manifest(run_id).batch
    assert found is not None
    return found


def ids_with_steps() -> tuple[str, ...]:
    return tuple(r for r in run_ids(RUNS) if manifest(r).has_steps)


def calibration_of(run_id: str) -> Run | None:
    wanted = run(run_id).manifest.link.calibration
    return run(wanted) if wanted else None


@cache
def timeline(run_id: str, mode: str = "isolated", link_model: str = "ring") -> Timeline:
    return reconstruct(run(run_id), mode=mode, link_model=link_model, calibration=calibration_of(run_id))


def at_unit_cost(run_id: str) -> Timeline:
    """The recorded graph with free messages, laid out at unit cost."""
    return unitcost.at_unit_cost(run(run_id))
