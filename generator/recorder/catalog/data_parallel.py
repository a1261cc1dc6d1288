"""Data parallelism: every rank has the whole model."""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

_DDP = RunSpec(
    id="ddp",
    title="Data parallelism (DDP)",
    description="Four ranks hold the whole model and two sequences each. Gradients are averaged "
    "by one all-reduce for each bucket of 1 MiB, while backward still runs.",
    scheme="ddp",
    mesh={"dp": 4},
    module=scheme_module("data_parallel"),
    options=Options(bucket_mib=1.0),
)

_ACCUMULATE = RunSpec(
    id="ddp-accumulate",
    title="Data parallelism, accumulation with no_sync",
    description="Two ranks hold the whole model and four sequences each, which go through one at a time. "
    "Gradients add up on each rank and are averaged once, during the last of four backwards.",
    scheme="ddp",
    mesh={"dp": 2},
    module=scheme_module("data_parallel_accumulation"),
    options=Options(bucket_mib=1.0, accumulation=4),
)

SPECS = (
    replace(
        _DDP,
        id="ddp-tiny-buckets",
        title="Data parallelism, tiny buckets",
        description="As ddp, but a bucket is full at 1/16 MiB: every matrix has an all-reduce of its "
        "own, and each pays for its latency.",
        options=Options(bucket_mib=0.0625),
    ),
    _DDP,
    replace(
        _DDP,
        id="ddp-one-bucket",
        title="Data parallelism, one bucket",
        description="As ddp, but all gradients are one bucket: its all-reduce begins when backward has "
        "ended, and none of it is hidden.",
        options=Options(bucket_mib=1024.0),
    ),
    _ACCUMULATE,
    replace(
        _ACCUMULATE,
        id="ddp-accumulate-sync",
        title="Data parallelism, accumulation without no_sync",
        description="As ddp-accumulate, but every one of the four backwards averages all gradients: four "
        "times the bytes for the same update.",
        options=Options(bucket_mib=1.0, accumulation=4, reduce_each=True),
    ),
)
