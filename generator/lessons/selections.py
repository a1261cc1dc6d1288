"""Which events of a timeline are meant: a predicate over them, or the first, last … of those it is true of.

`first(op == 'all_reduce' and exposed > 0.5)` is, on every rank, the first such call. What an order is
over follows from the labels that are named: over calls with `op`, `group` or `exposed`, over layers with
`layer` or `module`, else over whole blocks, such as the backward of a micro-batch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from generator.errors import did_you_mean
from generator.lessons import events
from generator.lessons.events import Event
from generator.lessons.predicates import (
    ALLOWED,
    EVENTS,
    GAPS,
    Label,
    Language,
    Predicate,
    check_predicate,
    matches,
    names_in,
)
from generator.lessons.syntax import parse, written
from generator.timeline.spans import Timeline

#: Of one rank's events, in order of time.
ORDERS: dict[str, Callable[[Sequence[Event]], Sequence[Event]]] = {
    "first": lambda found: found[:1],
    "last": lambda found: found[-1:],
    "rest": lambda found: found[1:],
    "longest": lambda found: [max(found, key=lambda e: e.duration_ns)],
    "shortest": lambda found: [min(found, key=lambda e: e.duration_ns)],
}
_OF_CALLS = {"op", "group", "exposed"}
_OF_LAYERS = {"layer", "module"}


@dataclass(frozen=True, slots=True)
class Selection:
    """A checked selection; an empty one means nothing."""

    text: str
    #: One of ORDERS, or empty for all.
    order: str
    predicate: Predicate
    language: Language

    def __bool__(self) -> bool:
        return bool(self.text)


def parse_selection(
    text: str, *, path: Path | None = None, line: int | None = None, language: Language = EVENTS
) -> Selection:
    """Read and check a selection. Raises UserError with file, line and character."""
    source = written(text, path, line)
    if not source.text:
        return Selection("", "", Predicate("", None), language)
    tree, order = parse(source, (*ALLOWED, ast.Call, ast.keyword)), ""
    if isinstance(tree, ast.Call):
        order = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if order not in ORDERS:
            raise source.error(f"unknown function '{order}'", did_you_mean(order, ORDERS), tree)
        if tree.keywords or len(tree.args) > 1:
            raise source.error(
                f"'{order}' takes one predicate", "Compare with ==, and join by 'and' or 'or'.", tree
            )
        if not tree.args:
            return Selection(source.text, order, Predicate("", None), language)
        tree = tree.args[0]
    if inner := next((n for n in ast.walk(tree) if isinstance(n, ast.Call)), None):
        raise source.error(
            "a function stands inside a predicate",
            f"Put it around all of it: {'(…), '.join(ORDERS)}(…).",
            inner,
        )
    check_predicate(source, tree, language)
    return Selection(source.text, order, Predicate(source.text, tree), language)


def select(selection: Selection, timeline: Timeline) -> tuple[Event, ...]:
    """The events that are meant, rank by rank and in order of time."""
    if not selection:
        return ()
    everything = candidates(selection, timeline)
    if selection.predicate.tree is not None:
        everything = tuple(e for e in everything if matches(selection.predicate, **e.labels))
    if not selection.order:
        return everything
    found: list[Event] = []
    for _, mine in groupby(everything, key=lambda e: e.rank):
        found += ORDERS[selection.order](list(mine))
    return tuple(found)


def candidates(selection: Selection, timeline: Timeline) -> tuple[Event, ...]:
    """All events that a selection chooses among."""
    if selection.language is GAPS:
        return tuple(events.gaps(timeline))
    names = names_in(selection.predicate)
    pieces = events.spans(timeline, all_activities="activity" in names)
    if names & _OF_LAYERS:
        found = list(events.joined(sorted(pieces, key=_row), _row))
    else:
        found = list(events.joined(pieces, _block))
    if names & _OF_CALLS:
        # A predicate such as "phase == 'backward' or op == 'send'" means both.
        found += events.calls(timeline)
    return tuple(sorted(found, key=lambda e: (e.rank, e.begin_ns)))


def _row(event: Event) -> tuple[int, tuple[int, ...]]:
    return event.rank, event.rows


def _block(event: Event) -> tuple[Label, ...]:
    return event.rank, *(event.labels.get(k) for k in ("activity", "microbatch", "chunk", "op"))
