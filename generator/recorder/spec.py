"""What a run to be recorded is. No PyTorch here: `shardbook record --list` needs none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from generator.runs.manifest import Mesh, Options, Schedule

#: The link that all compared runs share, Mbit/s, and the id of its calibration.
RATE_MBIT = 2000
CALIBRATION = "link-2gbit"
#: The same rate for each node of two ranks.
NODES_CALIBRATION = "link-2gbit-nodes"
#: A link on which the messages of a pipeline take as long as a stage's forward.
SLOW_MBIT = 150
SLOW_CALIBRATION = "link-150mbit"
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
    #: Of each node's interface, Mbit/s, and the calibration of just this link.
    rate_mbit: int = RATE_MBIT
    calibration: str = CALIBRATION
    #: Ranks that share a node: one network interface to the others, no limit among themselves.
    ranks_per_node: int = 1
    #: The run whose losses this one must reproduce; empty for one that others are measured by.
    partner: str = REFERENCE
    #: Dimensions of the model and the batch that differ from the book's one shape, by field of Shape.
    shape: dict[str, int] = field(default_factory=dict)
    #: "training", "bench" (steps without a model or a loss) or "calibration".
    kind: str = "training"
    #: Where there is no mesh: of a calibration or a bench.
    ranks: int = 0
    #: Cores that the ranks are pinned to, in turn; 0 where they run on any.
    pinned_cores: int = 0
    #: The run that is recorded together with this one, a step of each in turn: a machine that is slower
    #: for a while is so for both.
    beside: str = ""
    steps: int = STEPS

    @property
    def world_size(self) -> int:
        return self.ranks or math.prod(self.mesh.values())

    @property
    def expected_s(self) -> float:
        """About how long recording takes on two cores, for estimates of the time left."""
        return 80.0 if self.kind == "calibration" else 4.0 + 3.5 * self.world_size

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


def scheme_module(name: str) -> str:
    """Full name of a scheme's module; its `build(context)` makes the scheme."""
    return f"generator.recorder.schemes.{name}"
