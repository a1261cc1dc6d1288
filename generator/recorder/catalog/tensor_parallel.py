"""Tensor and sequence parallelism."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module

SPECS = (
    RunSpec(
        id="tp",
        title="Tensor parallelism",
        description="Four ranks hold a quarter of every block (two heads each) and work on the same "
        "eight sequences. Each layer needs two all-reduces in forward and two in backward.",
        scheme="tp",
        mesh={"tp": 4},
        module=scheme_module("tensor_parallel"),
    ),
    RunSpec(
        id="tp-sp",
        title="Tensor and sequence parallelism",
        description="As tensor parallelism, but what lies between the cut layers (norms, residual stream) "
        "is cut by tokens. Each all-reduce becomes an all-gather and a reduce-scatter.",
        scheme="tp-sp",
        mesh={"tp": 4},
        module=scheme_module("sequence_parallel"),
    ),
)
