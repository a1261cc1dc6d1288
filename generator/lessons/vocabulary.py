"""The words of the expressions: metrics of a timeline, facts of a manifest, closed forms, arithmetic.

Metrics and formulas come from the timeline stage; facts are what a run's manifest says. All three
are handed to the evaluator as one Vocabulary, so that a list of them can be printed and tests can
bring their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from generator.errors import UserError
from generator.runs.manifest import Manifest
from generator.runs.run import MEMORY_CATEGORIES

#: Names of operations, phases, modes and so on that filters may ask for.
OPERATIONS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "barrier",
    "send",
    "recv",
)
PHASES = ("forward", "backward", "backward_input", "backward_weight", "optimizer")
MODES = ("isolated", "recorded")
#: Dimensions of a mesh of ranks.
AXES = ("dp", "shard", "tp", "pp", "cp", "ep")
#: Filters that are text, and what they may say.
TEXT_FILTERS = {
    "op": OPERATIONS,
    "phase": PHASES,
    "mode": MODES,
    "category": MEMORY_CATEGORIES,
    "module": ("embedding", "block", "head"),
    "at": ("peak", "begin", "forward", "backward", "optimizer", "end"),
    "span": ("common", "own"),
    "axis": AXES,
}
#: Filters that are text which depends on the run.
FREE_TEXT = ("run", "group", "what_if")

#: Bytes of one element of a torch dtype.
_ELEMENT_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


class Measure(Protocol):
    """What a metric or a formula must have; `label` (where its numbers come from) is optional."""

    @property
    def function(self) -> Callable[..., Any]: ...

    @property
    def unit(self) -> str: ...

    @property
    def summary(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that a run's manifest states."""

    name: str
    function: Callable[..., float]
    unit: str
    summary: str
    #: "recorded" where it was measured; "" for what was set.
    label: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    metrics: Mapping[str, Measure]
    formulas: Mapping[str, Measure]
    facts: Mapping[str, Fact]

    def __post_init__(self) -> None:
        names = [*self.metrics, *self.formulas, *self.facts]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"a word with two meanings: {', '.join(twice)}")


def metric_label(metric: Measure, mode: str) -> str:
    """Where a metric's number comes from: its own origin where it has one, whatever the mode.

    What was counted or held was recorded, and bytes under an algorithm are a formula, in either mode.
    """
    own = getattr(metric, "label", "")
    return own or ("recorded" if mode == "recorded" or metric.unit == "B" else "reconstructed")


def filters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a metric or fact after its first (the timeline or manifest)."""
    return tuple(inspect.signature(function).parameters)[1:]


def _model(manifest: Manifest) -> Any:
    if manifest.model is None:
        raise UserError(f"the run '{manifest.id}' has no model", remedy="Ask a training run.")
    return manifest.model


def _batch(manifest: Manifest) -> Any:
    if manifest.batch is None:
        raise UserError(f"the run '{manifest.id}' has no batch", remedy="Ask a training run.")
    return manifest.batch


def _parameters(manifest: Manifest, rank: int | None = None) -> int:
    model = _model(manifest)
    return int(model.parameters if rank is None else model.parameters_per_rank[rank])


def _link_rate(manifest: Manifest) -> float:
    if not manifest.link.rate_mbit:
        raise UserError(
            f"nothing limits the link of the run '{manifest.id}'", remedy="Ask a run with a limited link."
        )
    return manifest.link.rate_mbit * 1e6 / 8 / 1e9


def _element_size(manifest: Manifest) -> int:
    dtype = manifest.precision.parameters
    if dtype not in _ELEMENT_BYTES:
        raise UserError(
            f"the size of an element of type '{dtype}' is not known", remedy="Add it to the vocabulary."
        )
    return _ELEMENT_BYTES[dtype]


def _size(manifest: Manifest, axis: str | None = None) -> int:
    """Ranks along one dimension of the mesh."""
    return int(getattr(manifest.mesh, _named(axis)))


def _coordinate(manifest: Manifest, axis: str | None = None, rank: int | None = None) -> int:
    if rank is None:
        raise UserError("a coordinate is that of a rank", remedy="Write coordinate(axis='tp', rank=0).")
    where = manifest.mesh.coordinates
    return where[rank].get(_named(axis), 0) if where else 0


def _named(axis: str | None) -> str:
    if axis is None:
        raise UserError("no axis is named", remedy="Write axis='tp'; known are " + ", ".join(AXES) + ".")
    return axis


def _row_times(manifest: Manifest, op: str | None, members: int | None, nodes: int) -> dict[int, int]:
    """Payload to median time of the rows of a calibration."""
    rows = [r for r in manifest.table if op in (None, r.op) and members in (None, r.members)]
    rows = [r for r in rows if r.nodes == nodes]
    if len({(r.op, r.members) for r in rows}) != 1:
        shapes = sorted({f"{r.op} of {r.members}" for r in manifest.table})
        raise UserError(
            f"the table of '{manifest.id}' has {'several such calls' if rows else 'no such call'}",
            remedy=f"Name op and members; it has {', '.join(shapes)}." if shapes else "Name a calibration.",
        )
    return {r.bytes: r.median_ns for r in rows}


def _measured_time(
    manifest: Manifest,
    op: str | None = None,
    members: int | None = None,
    size: int | None = None,
    nodes: int = 0,
) -> int:
    times = _row_times(manifest, op, members, nodes)
    if size not in times:
        sizes = ", ".join(map(str, sorted(times)))
        raise UserError(f"it was not measured at {size} bytes", remedy=f"Its sizes are {sizes}.")
    return times[size]


def _fitted(manifest: Manifest, op: str | None, members: int | None, nodes: int) -> tuple[float, float]:
    """Least squares: time at no bytes, and time a byte."""
    times = _row_times(manifest, op, members, nodes)
    mean_size, mean_time = sum(times) / len(times), sum(times.values()) / len(times)
    spread = sum((size - mean_size) ** 2 for size in times)
    slope = sum((size - mean_size) * (ns - mean_time) for size, ns in times.items()) / spread
    return mean_time - slope * mean_size, slope


def _fitted_latency(
    manifest: Manifest, op: str | None = None, members: int | None = None, nodes: int = 0
) -> float:
    return _fitted(manifest, op, members, nodes)[0]


def _fitted_rate(
    manifest: Manifest, op: str | None = None, members: int | None = None, nodes: int = 0
) -> float:
    return 1 / _fitted(manifest, op, members, nodes)[1]


FACTS: dict[str, Fact] = {
    fact.name: fact
    for fact in (
        Fact("layers", lambda m: _model(m).layers, "", "Transformer layers of the whole model."),
        Fact("d_model", lambda m: _model(m).d_model, "", "Width of the model."),
        Fact("heads", lambda m: _model(m).heads, "", "Attention heads of a layer."),
        Fact("vocabulary", lambda m: _model(m).vocabulary, "", "Entries of the token table."),
        Fact("parameters", _parameters, "", "Parameters of the whole model, or those that one rank owns."),
        Fact("sequences", lambda m: _batch(m).sequences, "", "Sequences of one step over all ranks."),
        Fact("tokens", lambda m: _batch(m).tokens, "", "Tokens of one sequence."),
        Fact("world_size", lambda m: m.world_size, "", "Number of ranks."),
        Fact("ranks", lambda m: m.world_size, "", "Number of ranks; the same as world_size."),
        Fact(
            "stages",
            lambda m: m.mesh.pp * (m.schedule.chunks if m.schedule else 1),
            "",
            "Pipeline stages of all ranks; 1 where there is no pipeline.",
        ),
        Fact(
            "chunks",
            lambda m: m.schedule.chunks if m.schedule else 1,
            "",
            "Pipeline stages on each rank; 1 where there is no pipeline.",
        ),
        Fact(
            "microbatches",
            lambda m: m.microbatches,
            "",
            "Micro-batches of a step, of a pipeline or of gradient accumulation; 1 elsewhere.",
        ),
        Fact("mesh_size", _size, "", "Ranks along one axis of the mesh: dp, shard, tp, pp, cp or ep."),
        Fact("coordinate", _coordinate, "", "Where a rank stands on one axis of the mesh, from 0."),
        Fact("ranks_per_node", lambda m: m.link.ranks_per_node, "", "Ranks that share a node and its link."),
        Fact("experts", lambda m: m.options.experts, "", "Experts of a layer over all ranks; 0 elsewhere."),
        Fact("units", lambda m: m.options.units, "", "FSDP units below the root; 0 elsewhere."),
        Fact(
            "bucket_size",
            lambda m: round(m.options.bucket_mib * 2**20),
            "B",
            "Size at which a DDP bucket closes; 0 elsewhere.",
        ),
        Fact("element_size", _element_size, "B", "Bytes of one parameter."),
        Fact("link_rate", _link_rate, "B/ns", "Nominal rate of one node's link, each direction."),
        Fact(
            "measured_time",
            _measured_time,
            "ns",
            "Median time of a call in a calibration, by operation, members and size in bytes.",
            "recorded",
        ),
        Fact(
            "fitted_latency",
            _fitted_latency,
            "ns",
            "Time that a call of a calibration takes at no bytes: the line through all its sizes.",
            "recorded",
        ),
        Fact(
            "fitted_rate",
            _fitted_rate,
            "B/ns",
            "Payload over time that a call of a calibration tends to: the slope of that line.",
            "recorded",
        ),
    )
}


@lru_cache(maxsize=1)
def default_vocabulary() -> Vocabulary:
    """The words that a book's exercises may use."""
    # Late, because the commands that evaluate nothing need neither.
    from generator.timeline.formulas import FORMULAS
    from generator.timeline.metrics import METRICS

    return Vocabulary(metrics=METRICS, formulas=FORMULAS, facts=FACTS)
