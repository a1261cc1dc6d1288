"""Sharded data parallelism: ZeRO and FSDP."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

SPECS = (
    RunSpec(
        id="fsdp",
        title="Fully sharded data parallelism (ZeRO-3)",
        description="Four ranks hold a quarter of every parameter and two sequences each. A block's "
        "parameters are all-gathered one block ahead, in forward and again in backward, and its "
        "gradients are reduce-scattered.",
        scheme="fsdp",
        mesh={"shard": 4},
        module=scheme_module("sharded"),
        options=Options(units=8, prefetch=1, asynchronous_unshard=True, reshard_after_forward=True),
    ),
)
