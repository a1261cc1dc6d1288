"""Context parallelism: long sequences, and the single process that they are measured by."""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.spec import RunSpec, scheme_module
from generator.runs.manifest import Options

#: One sequence that is long enough for attention to weigh.
_LONG = {"tokens": 2048, "sequences": 1}

_RING = RunSpec(
    id="cp-ring",
    title="Context parallelism, ring",
    description="Four ranks hold a quarter of one sequence of 2048 tokens each. Keys and values pass from "
    "rank to rank while the queries that are there attend to them. With neighbouring tokens on each "
    "rank, the causal mask gives the last rank more work than any other.",
    scheme="cp-ring",
    mesh={"cp": 4},
    module=scheme_module("ring_attention"),
    options=Options(sequence_order="contiguous"),
    partner="single-long",
    shape=_LONG,
)

SPECS = (
    RunSpec(
        id="single-long",
        title="Single process, long sequence",
        description="One process trains the model on one sequence of 2048 tokens. The context-parallel "
        "runs train on the same sequence and must reach the same losses.",
        scheme="single",
        mesh={"dp": 1},
        module=scheme_module("single"),
        rate_mbit=0,
        partner="",
        shape=_LONG,
    ),
    _RING,
    replace(
        _RING,
        id="cp-ring-zigzag",
        title="Context parallelism, ring, zig-zag",
        description="As the ring before, but each rank holds one tile from the begin of the sequence and "
        "one from its end, which gives all ranks the same work.",
        options=Options(sequence_order="zigzag"),
    ),
    replace(
        _RING,
        id="cp-ulysses",
        title="Context parallelism, Ulysses",
        description="Four ranks hold a quarter of one sequence of 2048 tokens each. For attention they swap "
        "tokens for heads by all-to-alls of queries, keys and values, and swap the result back.",
        scheme="cp-ulysses",
        module=scheme_module("ulysses"),
    ),
)
