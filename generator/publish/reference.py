"""The definitions page: labels and terms, and the vocabulary from the docstrings that define it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Protocol

from generator.lessons.vocabulary import FACTS
from generator.publish import markdown
from generator.publish.model import DefinitionsData, Entry, Page, Term
from generator.publish.urls import DEFINITIONS
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS

LABELS = {
    "recorded": (
        "Measured while the run ran, on a few CPU cores that the ranks share. Counts and bytes are "
        "recorded too: they do not depend on the machine."
    ),
    "reconstructed": (
        "Laid out again from the recording by a longest path over its dependency graph: each rank as if "
        "on a device of its own, computation at its thread-CPU time, calls at the price of the calibrated"
        " link."
    ),
    "what-if": "Reconstructed with something changed: a slower rank, a faster link.",
    "formula": "Computed from a closed form and the run’s dimensions. Nothing was measured.",
    "inferred": "Not in the trace: derived from what is, by a rule that is stated where it is used.",
}
TERMS = {
    "Step": (
        "From the earliest begin to the latest end over all ranks, each after a barrier. Time zero is its"
        " begin. The step shown is the timed one of median duration: neither a warm-up step nor the one "
        "that watched memory."
    ),
    "Computation lane": (
        "What a rank’s own thread does. Each instant is one of forward, backward (where it is split: "
        "input and weight gradient), optimizer, host, blocked inside a wait, or idle."
    ),
    "Communication": (
        "A rank’s collectives, wait and transfer, and its point-to-point transfers. Always a union of "
        "intervals, never a sum, and told by operation, never by stream."
    ),
    "Wait and transfer": (
        "A collective is wait from a rank’s own arrival to the last arrival, then transfer until its end."
        " So the rank that all wait for shows the shortest collective. Of a send with its receive only "
        "the transfer counts: before the send has happened the receiver is idle."
    ),
    "Exposed communication": "The length of (union of communication) minus (union of computation).",
    "Bubble": (
        "Idle time of a pipeline over its common span, from the first forward to the last backward of any"
        " stage. *Bubble fraction* is idle over total, *bubble overhead* idle over ideal. Papers print "
        "both as “the bubble”: always say which."
    ),
    "Payload and wire bytes": (
        "Payload is the full tensor, gathered and unreduced. Wire bytes are what one rank sends under the"
        " ring algorithm: all-reduce $2\\frac{n-1}{n}S$, all-gather and reduce-scatter $\\frac{n-1}{n}S$."
    ),
    "Link": (
        "Calls are priced by a ring over the calibrated link: a latency and a rate, fitted to the link’s "
        "calibration run. A message leaves when it is sent, whether or not its receiver already waits for it."
    ),
    "Ratio": (
        "Communication alone divided by computation alone, of one rank and step. It has no unit, and it "
        "decides how a scheme behaves."
    ),
    "Replay error": (
        "The replayed step over the recorded one, minus one, with the recorded durations. These are "
        "differences of recorded times (a call’s is from the last thing it depended on to its end), so "
        "the error is near zero unless an edge contradicts the recording: unless something is made to "
        "wait for what ended later. So it can show calls that are tied to the wrong ones, where that "
        "moves the end of the step. It cannot show that an edge is missing, nor how right the durations "
        "of the isolated mode are. Beside it stands the error with the same durations and the edges "
        "between ranks removed: the difference is what these edges explain."
    ),
}
UNITS = {"ns": "a time", "B": "bytes", "B/ns": "a rate", "": "a pure number"}


class Documented(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., object]: ...
    @property
    def unit(self) -> str: ...
    @property
    def summary(self) -> str: ...


def definitions() -> Page:
    data = DefinitionsData(
        labels=tuple(_term(name, text) for name, text in LABELS.items()),
        terms=tuple(_term(name, text) for name, text in TERMS.items()),
        metrics=_entries(METRICS, hidden=1),
        facts=_entries(FACTS, hidden=1),
        formulas=_entries(FORMULAS, hidden=0),
    )
    return Page(
        url=DEFINITIONS, template="definitions.html", title="Definitions", data=data,
        description="What every number of this book means and how it is computed.",
    )  # fmt: skip


def _term(name: str, text: str) -> Term:
    return Term(id=markdown.slug(name), name=name, text=markdown.inline(text, _nowhere))


def _entries(vocabulary: Mapping[str, Documented], *, hidden: int) -> tuple[Entry, ...]:
    """Entries in the order of the vocabulary.

    `hidden` is the number of leading parameters that an expression does not give.
    """
    found = []
    for item in vocabulary.values():
        doc = getattr(item, "doc", "") or item.summary
        source = getattr(item, "source", "")
        if source:
            doc = f"{doc}\n\nSource: {source}."
        parameters = list(inspect.signature(item.function).parameters.values())[hidden:]
        words = [
            p.name if p.default is p.empty or p.default is None else f"{p.name}={p.default}"
            for p in parameters
        ]
        found.append(
            Entry(
                name=item.name, unit=UNITS[item.unit], call=f"{item.name}({', '.join(words)})",
                doc=markdown.block(doc, _nowhere),
            )
        )  # fmt: skip
    return tuple(found)


def _nowhere(href: str) -> str:
    return href
