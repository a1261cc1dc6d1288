"""The runs that can be recorded, by id. No PyTorch here: `shardbook record --list` needs none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from generator.runs.manifest import Mesh, Options, Schedule

#: The link that all compared runs share, Mbit/s, and the id of its calibration.
RATE_MBIT = 2000
CALIBRATION = "link-2gbit"
#: The run whose losses all others must reproduce.
REFERENCE = "single"
SEED = 20
LEARNING_RATE = 1e-3
#: A run's steps: the first two warm up, the last is recorded in detail.
STEPS = 8
WARMUP_STEPS = 2


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run to record: which scheme, over how many ranks, and what a reader is told of it."""

    id: str
    title: str
    description: str
    scheme: str
    #: Sizes of the parallel dimensions, outermost first; their product is the world size.
    mesh: dict[str, int] = field(default_factory=dict)
    #: Module with a `build(context)`; its file is the run's source. Empty for a calibration.
    module: str = ""
    options: Options = field(default_factory=Options)
    schedule: Schedule | None = None
    rate_mbit: int = RATE_MBIT
    #: "training" or "calibration".
    kind: str = "training"
    ranks: int = 0

    @property
    def world_size(self) -> int:
        return self.ranks or math.prod(self.mesh.values())

    @property
    def source(self) -> str:
        """The scheme's file, relative to the project."""
        return self.module.replace(".", "/") + ".py"

    def full_mesh(self) -> Mesh:
        """Sizes of all dimensions and the coordinates of each rank, the last dimension fastest."""
        coordinates = []
        for rank in range(self.world_size):
            place, rest = {}, rank
            for name, size in reversed(self.mesh.items()):
                rest, place[name] = divmod(rest, size)
            coordinates.append({name: place[name] for name in self.mesh})
        return Mesh(**self.mesh, coordinates=tuple(coordinates))


_SCHEMES = "generator.recorder.schemes"

RUNS: dict[str, RunSpec] = {
    spec.id: spec
    for spec in (
        RunSpec(
            id="single",
            title="Single process",
            description="One process trains the model on the whole batch. There is no communication. "
            "All other runs train the same model on the same batches and must reach the same losses.",
            scheme="single",
            mesh={"dp": 1},
            module=f"{_SCHEMES}.single",
            rate_mbit=0,
        ),
        RunSpec(
            id="ddp",
            title="Data parallelism (DDP)",
            description="Four ranks hold the whole model and two sequences each. Gradients are averaged "
            "by one all-reduce for each bucket of 1 MiB, while backward still runs.",
            scheme="ddp",
            mesh={"dp": 4},
            module=f"{_SCHEMES}.data_parallel",
            options=Options(bucket_mib=1.0),
        ),
        RunSpec(
            id="fsdp",
            title="Fully sharded data parallelism (ZeRO-3)",
            description="Four ranks hold a quarter of every parameter and two sequences each. A block's "
            "parameters are all-gathered one block ahead, in forward and again in backward, and its "
            "gradients are reduce-scattered.",
            scheme="fsdp",
            mesh={"shard": 4},
            module=f"{_SCHEMES}.sharded",
            options=Options(units=8, prefetch=1, asynchronous_unshard=True, reshard_after_forward=True),
        ),
        RunSpec(
            id="tp",
            title="Tensor parallelism",
            description="Four ranks hold a quarter of every block (two heads each) and work on the same "
            "eight sequences. Each layer needs two all-reduces in forward and two in backward.",
            scheme="tp",
            mesh={"tp": 4},
            module=f"{_SCHEMES}.tensor_parallel",
        ),
        RunSpec(
            id="pp-1f1b",
            title="Pipeline parallelism, 1F1B",
            description="Four stages of two layers each. The batch is cut into eight micro-batches of one "
            "sequence; after a warm-up each stage takes turns, one forward and one backward.",
            scheme="pp",
            mesh={"pp": 4},
            module=f"{_SCHEMES}.pipeline",
            schedule=Schedule("1F1B", 8),
        ),
        RunSpec(
            id=CALIBRATION,
            title="The link: 2 Gbit/s for each rank",
            description="How long each collective takes over the link that the other runs use, when no "
            "rank computes: by operation, size and number of members.",
            scheme="calibration",
            kind="calibration",
            module="generator.recorder.calibrate",
            ranks=4,
        ),
    )
}
