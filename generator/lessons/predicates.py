"""The language of `focus`: which spans and calls of a timeline are meant.

`phase == 'backward' and layer == 3` is a predicate over the labels of an event. A label that an
event does not have (a layer outside of the blocks) is equal to nothing and on no side of a number.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from generator.errors import did_you_mean
from generator.lessons.syntax import Written, parse, written
from generator.lessons.vocabulary import OPERATIONS, PHASES, TEXT_FILTERS
from generator.timeline.spans import COMPUTATION, Activity, Call, RankTimeline, Timeline

Label = str | int | None

#: In the order of their numbers in a lane.
MODULES = TEXT_FILTERS["module"]
ACTIVITIES = tuple(a.name.lower() for a in Activity)
#: Labels that are text, and what they can say; groups are named by the runs.
_TEXT: dict[str, tuple[str, ...]] = {
    "phase": PHASES,
    "op": OPERATIONS,
    "activity": ACTIVITIES,
    "module": MODULES,
    "group": (),
}
_NUMBERS = ("layer", "microbatch", "chunk", "rank")
NAMES = (*_TEXT, *_NUMBERS)

_ALLOWED: tuple[type[ast.AST], ...] = (
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.Compare,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
)
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: _same(a, b),
    ast.NotEq: lambda a, b: not _same(a, b),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: any(_same(a, item) for item in b),
    ast.NotIn: lambda a, b: not any(_same(a, item) for item in b),
}
_MISSING_IS = (ast.NotEq, ast.NotIn)
_EITHER_WAY = (ast.Eq, ast.NotEq)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A checked predicate; an empty one matches nothing."""

    text: str
    tree: ast.expr | None


def parse_predicate(text: str, *, path: Path | None = None, line: int | None = None) -> Predicate:
    """Read and check a predicate. Raises UserError with file, line and character."""
    source = written(text, path, line)
    if not source.text:
        return Predicate("", None)
    tree = parse(source, _ALLOWED)
    _check(source, tree)
    return Predicate(source.text, tree)


def matches(predicate: Predicate, **labels: Label) -> bool:
    """Whether an event with these labels is meant. None, "" and -1 say that it has no such label."""
    return predicate.tree is not None and _holds(predicate.tree, labels)


def match_spans(predicate: Predicate, timeline: Timeline, lane: RankTimeline) -> npt.NDArray[np.bool_]:
    """Which spans of a rank's computation lane are meant: bool [spans]."""
    spans = lane.computation
    kept: dict[tuple[int, ...], bool] = {}
    found = np.zeros(len(spans), dtype=np.bool_)
    columns = (spans.activity, spans.layer, spans.microbatch, spans.module, spans.chunk, spans.call)
    for i, key in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        # A lane has many spans and few different labels.
        if key not in kept:
            kept[key] = matches(predicate, rank=lane.rank, **_span_labels(timeline, *key))
        found[i] = kept[key]
    return found


def match_calls(predicate: Predicate, timeline: Timeline, rank: int) -> npt.NDArray[np.bool_]:
    """Which calls of a timeline are meant as seen by a rank that takes part in them: bool [calls]."""
    return np.array(
        [
            any(m.rank == rank for m in call.members) and matches(predicate, rank=rank, **_call_labels(call))
            for call in timeline.calls
        ],
        dtype=np.bool_,
    )


def matches_any(predicate: Predicate, timeline: Timeline) -> bool:
    """Whether a predicate means any span or call of a timeline."""
    return any(
        match_spans(predicate, timeline, lane).any() or match_calls(predicate, timeline, lane.rank).any()
        for lane in timeline.ranks
    )


def _span_labels(
    timeline: Timeline, activity: int, layer: int, microbatch: int, module: int, chunk: int, call: int
) -> dict[str, Label]:
    named = Activity(activity)
    labels: dict[str, Label] = _call_labels(timeline.calls[call]) if call >= 0 else {}
    labels |= {"activity": named.name.lower(), "layer": layer, "microbatch": microbatch, "chunk": chunk}
    if module >= 0:
        labels["module"] = MODULES[module]
    if named in COMPUTATION:
        labels["phase"] = named.name.lower()
    return labels


def _call_labels(call: Call) -> dict[str, Label]:
    return {
        "op": call.op,
        "group": call.group,
        "phase": call.phase,
        "layer": call.layer,
        "microbatch": call.microbatch,
    }


def _check(source: Written, node: ast.expr) -> None:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            _check(source, value)
    elif isinstance(node, ast.UnaryOp):
        _check(source, node.operand)
    elif isinstance(node, ast.Compare):
        _check_comparison(source, node)
    else:
        raise source.error("a label is not compared", "Write for example phase == 'backward'.", node)


def _check_comparison(source: Written, node: ast.Compare) -> None:
    operands = [node.left, *node.comparators]
    names = [n for n in operands if isinstance(n, ast.Name)]
    for name in names:
        if name.id not in NAMES:
            raise source.error(f"unknown label '{name.id}'", did_you_mean(name.id, NAMES), name)
    if len(names) != 1:
        raise source.error("a comparison needs one label", "Compare a label with a value.", node)
    label = names[0].id
    for op in node.ops:
        if label in _TEXT and isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            raise source.error(f"'{label}' is text and has no order", "Use == or in.", node)
        if isinstance(op, ast.In | ast.NotIn) and not (
            node.left is names[0] and len(operands) == 2 and isinstance(operands[1], ast.Tuple | ast.List)
        ):
            raise source.error("'in' needs a list", f"Write {label} in (…, …).", node)
    for other in operands:
        if isinstance(other, ast.Tuple | ast.List):
            if not isinstance(node.ops[0], ast.In | ast.NotIn):
                raise source.error("a list is compared", f"Write {label} in (…, …).", other)
            for item in other.elts:
                _check_value(source, label, item)
        elif other is not names[0]:
            _check_value(source, label, other)


def _check_value(source: Written, label: str, node: ast.expr) -> None:
    value = node.value if isinstance(node, ast.Constant) else None
    if label in _NUMBERS:
        if type(value) is not int:
            raise source.error(f"'{label}' is a whole number", f"Write {label} == 0.", node)
    elif not isinstance(value, str):
        raise source.error(f"'{label}' is text", f"Write {label} == '…'.", node)
    elif _TEXT[label] and value not in _TEXT[label]:
        raise source.error(f"unknown {label} '{value}'", did_you_mean(value, _TEXT[label]), node)


def _holds(node: ast.expr, labels: dict[str, Label]) -> bool:
    if isinstance(node, ast.BoolOp):
        each = (_holds(value, labels) for value in node.values)
        return all(each) if isinstance(node.op, ast.And) else any(each)
    if isinstance(node, ast.UnaryOp):
        return not _holds(node.operand, labels)
    assert isinstance(node, ast.Compare)
    operands = [node.left, *node.comparators]
    if len(operands) == 2 and isinstance(operands[1], ast.Name) and isinstance(node.ops[0], _EITHER_WAY):
        operands.reverse()  # a label and a value, in this order
    values = [_operand(n, labels) for n in operands]
    return all(
        isinstance(op, _MISSING_IS) if a is None or b is None else _COMPARE[type(op)](a, b)
        for op, a, b in zip(node.ops, values, values[1:], strict=False)
    )


def _same(label: Any, value: Any) -> bool:
    """Whether a label is what is asked for. Of a backward that is cut in two both parts are backward."""
    return bool(label == value) or (value == "backward" and label in ("backward_input", "backward_weight"))


def _operand(node: ast.expr, labels: dict[str, Label]) -> Any:
    if isinstance(node, ast.Name):
        value = labels.get(node.id)
        return None if value in (None, "", -1) else value
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_operand(item, labels) for item in node.elts)
    assert isinstance(node, ast.Constant)
    return node.value
