"""Sharded data parallelism: ZeRO and FSDP."""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.spec import NODES_CALIBRATION, RunSpec, scheme_module
from generator.runs.manifest import Options

_FSDP = RunSpec(
    id="fsdp",
    title="Fully sharded data parallelism (ZeRO-3)",
    description="Four ranks hold a quarter of every parameter and two sequences each. A block's "
    "parameters are all-gathered one block ahead, in forward and again in backward, and its "
    "gradients are reduce-scattered.",
    scheme="fsdp",
    mesh={"shard": 4},
    module=scheme_module("sharded"),
    options=Options(units=8, prefetch=1, asynchronous_unshard=True, reshard_after_forward=True),
)

SPECS = (
    RunSpec(
        id="zero1",
        title="ZeRO-1 by hand",
        description="Four ranks hold the whole model and two sequences each, but each keeps the optimizer "
        "state of only a quarter. Gradients are reduce-scattered, updated parameters all-gathered.",
        scheme="zero1",
        mesh={"shard": 4},
        module=scheme_module("zero1"),
    ),
    RunSpec(
        id="zero1-library",
        title="ZeRO-1 by ZeroRedundancyOptimizer",
        description="Four ranks hold the whole model and two sequences each, but each keeps the optimizer "
        "state of only a quarter. Gradients are all-reduced in buckets, updated parameters broadcast.",
        scheme="zero1",
        mesh={"shard": 4},
        module=scheme_module("zero1_library"),
        options=Options(bucket_mib=1.0),
    ),
    replace(
        _FSDP,
        id="zero2",
        title="FSDP without resharding (ZeRO-2)",
        description="As fsdp, but parameters that were gathered in forward stay until backward is through: "
        "one all-gather a block, not two.",
        scheme="zero2",
        options=replace(_FSDP.options, reshard_after_forward=False),
    ),
    _FSDP,
    replace(
        _FSDP,
        id="fsdp-no-prefetch",
        title="Fully sharded data parallelism, no prefetch",
        description="As fsdp, but no all-gather overlaps computation: the rank stands still until each is "
        "complete. Gather, then compute.",
        options=replace(_FSDP.options, prefetch=0, asynchronous_unshard=False),
    ),
    replace(
        _FSDP,
        id="fsdp-nodes",
        title="Fully sharded data parallelism on two nodes",
        description="As fsdp, but on two nodes of two ranks with a slow link between them, over which every "
        "all-gather and reduce-scatter goes: what hybrid sharding is measured against.",
        ranks_per_node=2,
        calibration=NODES_CALIBRATION,
    ),
    replace(
        _FSDP,
        id="hsdp",
        title="Hybrid sharding (HSDP)",
        description="Two nodes of two ranks with a slow link between them. Parameters are sharded over the "
        "two ranks of a node and whole in each node; shards of gradients are averaged over the nodes.",
        scheme="hsdp",
        mesh={"dp": 2, "shard": 2},
        ranks_per_node=2,
        calibration=NODES_CALIBRATION,
    ),
)
