"""Pipeline parallelism."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Schedule

SPECS = (
    RunSpec(
        id="pp-1f1b",
        title="Pipeline parallelism, 1F1B",
        description="Four stages of two layers each. The batch is cut into eight micro-batches of one "
        "sequence; after a warm-up each stage takes turns, one forward and one backward.",
        scheme="pp",
        mesh={"pp": 4},
        module=scheme_module("pipeline"),
        schedule=Schedule("1F1B", 8),
    ),
)
