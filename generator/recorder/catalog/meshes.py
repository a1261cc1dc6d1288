"""Several kinds of parallelism at once."""

from __future__ import annotations

from generator.recorder.spec import NODES_CALIBRATION, RunSpec, scheme_module
from generator.runs.manifest import Options, Schedule

SPECS = (
    RunSpec(
        id="fsdp-tp",
        title="FSDP x TP on two nodes",
        description="Two nodes of two ranks. The two of a node cut every layer between them (tensor "
        "parallelism); each shards its part over the nodes (FSDP) and works on four of the eight sequences.",
        scheme="fsdp-tp",
        mesh={"shard": 2, "tp": 2},
        module=scheme_module("meshes"),
        options=Options(units=8, asynchronous_unshard=True, reshard_after_forward=True),
        calibration=NODES_CALIBRATION,
        ranks_per_node=2,
    ),
    RunSpec(
        id="3d",
        title="PP x FSDP x TP on eight ranks",
        description="Four nodes of two ranks. The two of a node cut every layer between them (tensor "
        "parallelism), two nodes shard a stage (FSDP), and two stages make a 1F1B pipeline of four "
        "micro-batches.",
        scheme="3d",
        mesh={"pp": 2, "shard": 2, "tp": 2},
        module=scheme_module("meshes"),
        options=Options(units=4, asynchronous_unshard=True),
        schedule=Schedule("1F1B", 4),
        calibration=NODES_CALIBRATION,
        ranks_per_node=2,
    ),
)
