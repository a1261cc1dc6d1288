"""Collectives by themselves, and one made by hand."""

from __future__ import annotations

from generator.recorder.spec import RunSpec, scheme_module

SPECS = (
    RunSpec(
        id="collectives",
        title="Five collectives",
        description="Four ranks issue an all-reduce, an all-gather, a reduce-scatter, an all-to-all and a "
        "broadcast of 4 MiB each, one after the other, and compute for a while before each. Nothing is "
        "trained.",
        scheme="collectives",
        kind="bench",
        ranks=4,
        module=scheme_module("collectives"),
        partner="",
    ),
    RunSpec(
        id="late-rank",
        title="One late rank",
        description="Four ranks all-reduce 1 MiB three times. Before each call rank 2 computes three times "
        "as long as the others. Nothing is trained.",
        scheme="late rank",
        kind="bench",
        ranks=4,
        module=scheme_module("late_rank"),
        partner="",
    ),
    RunSpec(
        id="ring-all-reduce",
        title="Ring all-reduce by hand",
        description="Data parallelism whose gradients are averaged after backward, as one vector, by a ring "
        "of four ranks: three steps that add and three that copy, each with a quarter of the vector.",
        scheme="ring",
        mesh={"dp": 4},
        module=scheme_module("ring_all_reduce"),
    ),
)
