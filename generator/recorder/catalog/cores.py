"""Every kind of scheme on two ranks that share one core, and again with a core each.

From the first recording of a pair the second is predicted: see `generator.timeline.sharing`.
"""

from __future__ import annotations

from dataclasses import replace

from generator.recorder.catalog import data_parallel, pipeline, sharded, tensor_parallel
from generator.recorder.spec import RunSpec

#: More steps than other runs have: only those count in which nothing else took the machine's time.
STEPS = 26
_BASES = {
    "ddp": (data_parallel.SPECS, {"dp": 2}),
    "fsdp": (sharded.SPECS, {"shard": 2}),
    "tp": (tensor_parallel.SPECS, {"tp": 2}),
    "pp-1f1b": (pipeline.SPECS, {"pp": 2}),
}
_PLACES = {
    1: ("shared", "on one core", "Both ranks, and all their threads, share one core."),
    2: ("each", "a core each", "Each rank, with all its threads, has a core of its own."),
}


def _placed(base: RunSpec, mesh: dict[str, int], cores: int) -> RunSpec:
    name, title, where = _PLACES[cores]
    return replace(
        base,
        id=f"cores-{name}-{base.id.partition('-')[0]}",
        title=f"Two ranks {title}: {base.title}",
        description=f"As {base.id}, on two ranks. {where}",
        mesh=mesh,
        beside=f"cores-{_PLACES[3 - cores][0]}-{base.id.partition('-')[0]}",
        pinned_cores=cores,
        steps=STEPS,
    )


SPECS = tuple(
    _placed(next(s for s in specs if s.id == base), mesh, cores)
    for base, (specs, mesh) in _BASES.items()
    for cores in _PLACES
)
