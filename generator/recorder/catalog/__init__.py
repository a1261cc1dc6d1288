"""The runs that can be recorded, by id: one module a family, in the order of the course."""

from __future__ import annotations

from generator.recorder.catalog import (
    baseline,
    collectives,
    context_parallel,
    cores,
    data_parallel,
    expert_parallel,
    links,
    meshes,
    pipeline,
    sharded,
    tensor_parallel,
)
from generator.recorder.spec import RunSpec

#: Links first: a run names the calibration of its link.
_FAMILIES = (
    links,
    baseline,
    collectives,
    data_parallel,
    sharded,
    tensor_parallel,
    context_parallel,
    expert_parallel,
    pipeline,
    meshes,
    cores,
)

RUNS: dict[str, RunSpec] = {spec.id: spec for family in _FAMILIES for spec in family.SPECS}
