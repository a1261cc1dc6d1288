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

#: Names of operations, phases and modes that filters may ask for.
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
#: Filters that are text, and what they may say.
TEXT_FILTERS = {"op": OPERATIONS, "phase": PHASES, "mode": MODES, "category": MEMORY_CATEGORIES}

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
        Fact("units", lambda m: m.options.units, "", "FSDP units below the root; 0 elsewhere."),
        Fact(
            "bucket_size",
            lambda m: round(m.options.bucket_mib * 2**20),
            "B",
            "Size at which a DDP bucket closes; 0 elsewhere.",
        ),
        Fact("element_size", _element_size, "B", "Bytes of one parameter."),
        Fact("link_rate", _link_rate, "B/ns", "Nominal rate of one rank's link, each direction."),
    )
}


@lru_cache(maxsize=1)
def default_vocabulary() -> Vocabulary:
    """The words that a book's exercises may use."""
    # Late, because the commands that evaluate nothing need neither.
    from generator.timeline.formulas import FORMULAS
    from generator.timeline.metrics import METRICS

    return Vocabulary(metrics=METRICS, formulas=FORMULAS, facts=FACTS)
