"""The definitions page: labels and terms, and the vocabulary from the docstrings that define it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from markupsafe import Markup

from generator.lessons.vocabulary import FACTS, Fact
from generator.publish import markdown
from generator.publish.equations import equation, symbol
from generator.publish.mathml import math
from generator.publish.model import DefinitionsData, Entry, Page, Subject, Symbol, Term
from generator.publish.urls import DEFINITIONS
from generator.timeline.formulas import FORMULAS, Formula
from generator.timeline.metrics import METRICS, Metric
from generator.units import quantity, show

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
UNITS = {
    "ns": "a time",
    "B": "bytes",
    "FLOP": "operations",
    "B/ns": "bytes per time",
    "FLOP/ns": "operations per time",
    "": "a pure number",
}
#: Units in which an example is written, the largest first, and what each is of the stored one.
_SCALES = {
    "ns": {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1},
    "B": {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1},
    "FLOP": {"TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6, "FLOP": 1},
    "B/ns": {"GB / s": 1, "MB / s": 1e-3},
    "FLOP/ns": {"TFLOP / s": 1e3, "GFLOP / s": 1},
}
_FACTS = "What a run’s manifest states, or a calibration’s table. They take `run`, and some a filter."
#: The end of a first sentence that only repeats the equation below it.
_REPEATED = re.compile(r": [^:]*\.$")
#: Length of TeX from which on an equation may be wider than a phone.
_WIDE = 64
_WORD = re.compile(r"[A-Za-z]{4,}")


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
        metrics=_subjects(METRICS.values(), "metrics", _metric),
        facts=Subject(
            id="facts", title="Facts of a run", intro=markdown.block(_FACTS, _nowhere),
            entries=tuple(_fact(fact) for fact in FACTS.values()),
        ),
        formulas=_subjects(FORMULAS.values(), "formulas", _formula),
    )  # fmt: skip
    return Page(
        url=DEFINITIONS, template="definitions.html", title="Definitions", data=data,
        description="What every number of this book means and how it is computed.",
    )  # fmt: skip


def _term(name: str, text: str) -> Term:
    return Term(id=markdown.slug(name), name=name, text=markdown.inline(text, _nowhere))


Word = TypeVar("Word", Metric, Formula)


def _subjects(words: Iterable[Word], kind: str, entry: Callable[[Word], Entry]) -> tuple[Subject, ...]:
    """The words by subject, each introduced by what the module that defines them says of itself."""
    found: dict[str, list[Word]] = {}
    for word in words:
        found.setdefault(word.subject, []).append(word)
    return tuple(
        Subject(
            id=f"{kind}-{markdown.slug(title)}",
            title=title,
            intro=markdown.block(inspect.getdoc(inspect.getmodule(members[0].function)) or "", _nowhere),
            entries=tuple(entry(word) for word in members),
        )
        for title, members in found.items()
    )


def _fact(fact: Fact) -> Entry:
    found = _entry(fact, hidden=1)
    # Most facts are counts, which goes without saying.
    return replace(found, unit=found.unit if fact.unit else "", label=fact.label)


def _metric(metric: Metric) -> Entry:
    return replace(_entry(metric, hidden=1), label=metric.label)


def _formula(formula: Formula) -> Entry:
    tex = equation(formula.function)
    first = formula.summary
    repeated = _REPEATED.search(first)
    if tex and repeated and not set(_WORD.findall(repeated[0])) - set(formula.parameters):
        first = first[: repeated.start()] + "."
    return replace(
        _entry(formula, hidden=0),
        summary=markdown.inline(first, _nowhere),
        equation=math(tex, display=True) if tex else Markup(""),
        wide=len(tex) > _WIDE,
        symbols=tuple(
            Symbol(math(symbol(p), display=False), p, UNITS[unit] if unit else "")
            for p, unit in formula.units.items()
            if tex and (symbol(p) != p or unit)
        ),
        example=_example(formula),
        value=show(quantity(formula.function(*formula.example), formula.unit)),
        source=markdown.inline(f"{formula.source[0].upper()}{formula.source[1:]}.", _nowhere),
    )


def _example(formula: Formula) -> str:
    """A call of a formula, as an author would write it."""
    given = zip(formula.example, formula.units.values(), strict=False)
    return f"{formula.name}({', '.join(_written(value, unit) for value, unit in given)})"


def _written(value: float, unit: str) -> str:
    for name, factor in _SCALES.get(unit, {}).items():
        if value >= factor:
            return f"{value / factor:g} * {name}"
    return f"{value}"


def _entry(item: Documented, *, hidden: int) -> Entry:
    """`hidden` is the number of leading parameters that an expression does not give."""
    parameters = list(inspect.signature(item.function).parameters.values())[hidden:]
    words = [
        p.name if p.default is p.empty or p.default is None else f"{p.name}={p.default!r}" for p in parameters
    ]
    return Entry(
        name=item.name,
        arguments=f"({', '.join(words)})",
        unit=UNITS[item.unit],
        summary=markdown.inline(item.summary, _nowhere),
        doc=markdown.block(getattr(item, "doc", "").partition("\n\n")[2], _nowhere),
        label=getattr(item, "label", ""),
    )


def _nowhere(href: str) -> str:
    return href
