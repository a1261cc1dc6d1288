"""Data parallelism: every rank has the whole model."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

SPECS = (
    RunSpec(
        id="ddp",
        title="Data parallelism (DDP)",
        description="Four ranks hold the whole model and two sequences each. Gradients are averaged "
        "by one all-reduce for each bucket of 1 MiB, while backward still runs.",
        scheme="ddp",
        mesh={"dp": 4},
        module=scheme_module("data_parallel"),
        options=Options(bucket_mib=1.0),
    ),
)
