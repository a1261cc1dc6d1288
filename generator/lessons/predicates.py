"""The language of `focus` and `pick`: a predicate over the labels of an event, or of a gap.

In `phase == 'backward' and layer == 3` a label that an event does not have (a layer outside of the
blocks) is equal to nothing and on no side of a number. What the events of a timeline are, and which
labels they have, is in generator.lessons.events.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.errors import did_you_mean
from generator.lessons.syntax import Written, parse, written
from generator.lessons.vocabulary import OPERATIONS, PHASES, TEXT_FILTERS
from generator.timeline.spans import Activity

Label = str | int | float | None

#: In the order of their numbers in a lane.
MODULES = TEXT_FILTERS["module"]
ACTIVITIES = tuple(a.name.lower() for a in Activity)


@dataclass(frozen=True, slots=True)
class Language:
    """The labels that a predicate can ask about."""

    #: Labels that are text, and what they can say; nothing where the runs name it.
    text: Mapping[str, tuple[str, ...]]
    whole: tuple[str, ...]
    #: Labels that are a number from 0 to 1.
    shares: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.text, *self.whole, *self.shares)


EVENTS = Language(
    text={"phase": PHASES, "op": OPERATIONS, "activity": ACTIVITIES, "module": MODULES, "group": ()},
    whole=("layer", "microbatch", "chunk", "rank"),
    shares=("exposed",),
)
#: A gap lies between a block of one phase and one of another; the first and the last have one side only.
GAPS = Language(text={"after": PHASES, "before": PHASES}, whole=("rank",))

ALLOWED: tuple[type[ast.AST], ...] = (
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


def parse_predicate(
    text: str, *, path: Path | None = None, line: int | None = None, language: Language = EVENTS
) -> Predicate:
    """Read and check a predicate. Raises UserError with file, line and character."""
    source = written(text, path, line)
    if not source.text:
        return Predicate("", None)
    tree = parse(source, ALLOWED)
    check_predicate(source, tree, language)
    return Predicate(source.text, tree)


def names_in(predicate: Predicate) -> frozenset[str]:
    """The labels that a predicate asks about."""
    tree = predicate.tree
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) if tree else frozenset()


def matches(predicate: Predicate, **labels: Label) -> bool:
    """Whether an event with these labels is meant. None, "" and -1 say that it has no such label."""
    return predicate.tree is not None and _holds(predicate.tree, labels)


def check_predicate(source: Written, node: ast.expr, language: Language) -> None:
    """Refuse what is not a predicate in a language. Raises UserError."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            check_predicate(source, value, language)
    elif isinstance(node, ast.UnaryOp):
        check_predicate(source, node.operand, language)
    elif isinstance(node, ast.Compare):
        _check_comparison(source, node, language)
    else:
        raise source.error("a label is not compared", "Write for example phase == 'backward'.", node)


def _check_comparison(source: Written, node: ast.Compare, language: Language) -> None:
    operands = [node.left, *node.comparators]
    names = [n for n in operands if isinstance(n, ast.Name)]
    for name in names:
        if name.id not in language.names:
            raise source.error(f"unknown label '{name.id}'", did_you_mean(name.id, language.names), name)
    if len(names) != 1:
        raise source.error("a comparison needs one label", "Compare a label with a value.", node)
    label = names[0].id
    for op in node.ops:
        if label in language.text and isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
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
                _check_value(source, label, item, language)
        elif other is not names[0]:
            _check_value(source, label, other, language)


def _check_value(source: Written, label: str, node: ast.expr, language: Language) -> None:
    value = node.value if isinstance(node, ast.Constant) else None
    if label in language.whole:
        if type(value) is not int:
            raise source.error(f"'{label}' is a whole number", f"Write {label} == 0.", node)
    elif label in language.shares:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise source.error(f"'{label}' is a share from 0 to 1", f"Write {label} > 0.5.", node)
    elif not isinstance(value, str):
        raise source.error(f"'{label}' is text", f"Write {label} == '…'.", node)
    elif language.text[label] and value not in language.text[label]:
        raise source.error(f"unknown {label} '{value}'", did_you_mean(value, language.text[label]), node)


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
