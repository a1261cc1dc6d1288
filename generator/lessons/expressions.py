"""The language of answers: arithmetic over the metrics of timelines, facts of runs and closed forms.

`exposed_comm(rank=0) / step_time()` is evaluated over a Scope. Every metric takes, besides its own
filters, `run`, `mode`, `step` and `what_if` (the step laid out again with something changed, as in
`step_time(what_if='bandwidth=2000')`); `rank='each'` gives one value a rank, for min, max, sum and mean.
Names are checked before anything is computed, values carry units, a formula is given values of the kind
that it asks for, and a value knows whether it was recorded, reconstructed or follows from a formula.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simpleeval import SimpleEval

from generator.errors import UserError, did_you_mean
from generator.lessons.arithmetic import FUNCTIONS, OPERATORS, ZERO, Wrong, exact, guarded, plain, truth
from generator.lessons.closed_forms import closed_form
from generator.lessons.scope import Scope
from generator.lessons.syntax import Written, parse, written
from generator.lessons.vocabulary import (
    FREE_TEXT,
    MODES,
    TEXT_FILTERS,
    Fact,
    Vocabulary,
    filters_of,
    metric_label,
)
from generator.runs.manifest import Manifest
from generator.timeline.whatif_text import NOTHING, parse_what_if
from generator.units import UNITS, quantity

if TYPE_CHECKING:
    from pint import Quantity

#: Names that stand for one of a unit, so that `exposed_comm() < 1 * ms` can be written.
_UNIT_NAMES = tuple(u for u in UNITS if u.isidentifier())
_NAMES = {"true", "false", *_UNIT_NAMES}

_ALLOWED: tuple[type[ast.AST], ...] = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.keyword,
    ast.Load,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_OPERATOR_WORDS = "+ - * / // % **, comparisons, and, or, not"


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression came to."""

    #: A quantity with its unit, or true or false.
    result: Quantity[Any] | bool
    #: "recorded", "reconstructed", "what-if" or "formula": the least direct of what went in.
    label: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One metric, fact or formula that an expression calls."""

    name: str
    #: "metric", "fact" or "formula".
    kind: str
    #: The run that was asked for by name; empty for the page's own.
    run: str
    mode: str
    #: Text of what is changed; empty for the step as it is.
    what_if: str = ""


def evaluate(text: str, scope: Scope, *, path: Path | None = None, line: int | None = None) -> Value:
    """The value of an expression. Raises UserError with file, line and character for anything wrong."""
    source = written(text, path, line)
    tree = _checked(source, scope.vocabulary)
    for call, reference in _references(source, tree, scope.vocabulary):
        _check_run(source, call, reference, scope)
    result = _Evaluator(source, scope).run(tree)
    if result is ZERO:
        result = quantity(0)
    if isinstance(result, list):
        raise source.error("has one value a rank", "Take the min, max, sum or mean of them.")
    if not isinstance(result, bool) and not _finite(result.magnitude):
        raise source.error("does not come to a finite number", "Ask for something that the run has.")
    return Value(result, _label(source, tree, scope.vocabulary))


def references(
    text: str, vocabulary: Vocabulary, *, path: Path | None = None, line: int | None = None
) -> tuple[Reference, ...]:
    """What an expression calls, after its names and keyword arguments were checked. Raises UserError."""
    source = written(text, path, line)
    tree = _checked(source, vocabulary)
    return tuple(reference for _, reference in _references(source, tree, vocabulary))


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


# --- before anything is computed ------------------------------------------------------------------


def _checked(source: Written, vocabulary: Vocabulary) -> ast.expr:
    tree = parse(source, _ALLOWED)
    arguments = {id(k.value) for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords}
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _check_call(source, node, vocabulary)
        elif isinstance(node, ast.Name) and id(node) not in called and node.id not in _NAMES:
            if node.id in _words(vocabulary):
                raise source.error(f"'{node.id}' is not called", f"Write {node.id}().", node)
            raise source.error(
                f"unknown name '{node.id}'", did_you_mean(node.id, _NAMES | _words(vocabulary)), node
            )
        elif isinstance(node, ast.Constant):
            _check_constant(source, node, id(node) in arguments)
        elif isinstance(node, ast.operator | ast.unaryop | ast.cmpop) and type(node) not in OPERATORS:
            raise source.error(
                "an operator that is not part of the language", f"Use {_OPERATOR_WORDS}.", node
            )
    return tree


def _words(vocabulary: Vocabulary) -> set[str]:
    return {*vocabulary.metrics, *vocabulary.formulas, *vocabulary.facts, *FUNCTIONS}


def _check_constant(source: Written, node: ast.Constant, is_argument: bool) -> None:
    if isinstance(node.value, str):
        if not is_argument:
            raise source.error("text stands alone", "Text is only for arguments such as op='send'.", node)
    elif isinstance(node.value, bool):
        raise source.error(f"'{node.value}' is not a word of the language", "Write true or false.", node)
    elif type(node.value) not in (int, float):
        raise source.error("this is neither a number nor text", "Use numbers and quoted text.", node)


def _check_call(source: Written, node: ast.Call, vocabulary: Vocabulary) -> None:
    if not isinstance(node.func, ast.Name):
        raise source.error("only a name can be called", "Call a metric, a fact or a formula.", node)
    name = node.func.id
    if name in FUNCTIONS:
        if node.keywords:
            raise source.error(f"{name} takes no '{node.keywords[0].arg}'", "Remove it.", node.keywords[0])
        if not node.args:
            raise source.error(f"{name} needs a value", f"Write {name}(…).", node)
        if name in ("abs", "round") and len(node.args) > 1:
            raise source.error(f"{name} takes one value", "Remove the others.", node.args[1])
        return
    known = _parameters(name, vocabulary)
    if known is None:
        raise source.error(f"unknown metric '{name}'", did_you_mean(name, _words(vocabulary)), node)
    seen = set()
    for keyword in node.keywords:
        if keyword.arg is None:
            raise source.error("two stars are not part of the language", "Name each argument.", keyword)
        if keyword.arg not in known:
            takes = did_you_mean(keyword.arg, known) if known else f"{name} takes none."
            raise source.error(f"{name} takes no '{keyword.arg}'", takes, keyword)
        seen.add(keyword.arg)
        if name not in vocabulary.formulas:
            _check_filter(source, keyword)
    if name in vocabulary.formulas:
        try:
            inspect.signature(vocabulary.formulas[name].function).bind(*node.args, **dict.fromkeys(seen))
        except TypeError:
            raise source.error(
                f"{name} needs {len(known)} values", f"Write {name}({', '.join(known)}).", node
            ) from None
    elif node.args:
        raise source.error(f"{name} takes named arguments only", _usage(name, known), node.args[0])


def _usage(name: str, known: tuple[str, ...]) -> str:
    return f"Write {name}({', '.join(f'{k}=…' for k in known)}); each may be left out."


def _parameters(name: str, vocabulary: Vocabulary) -> tuple[str, ...] | None:
    if name in vocabulary.metrics:
        return (*filters_of(vocabulary.metrics[name].function), "run", "mode", "step", "what_if")
    if name in vocabulary.facts:
        return (*filters_of(vocabulary.facts[name].function), "run")
    if name in vocabulary.formulas:
        return tuple(inspect.signature(vocabulary.formulas[name].function).parameters)
    return None


def _check_filter(source: Written, keyword: ast.keyword) -> None:
    """A filter's value must be written out: text of a known list, or a number that is not negative."""
    name, node = str(keyword.arg), keyword.value
    choices = TEXT_FILTERS.get(name)
    if choices or name in FREE_TEXT:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            raise source.error(f"'{name}' must be text", f"Write {name}='…'.", keyword)
        if choices and node.value not in choices:
            raise source.error(f"unknown {name} '{node.value}'", did_you_mean(node.value, choices), node)
        if name == "what_if":
            _check_what_if(source, node)
    elif name == "rank" and isinstance(node, ast.Constant) and node.value == "each":
        return
    elif not (isinstance(node, ast.Constant) and type(node.value) is int):
        also = " or 'each'" if name == "rank" else ""
        raise source.error(f"'{name}' must be a whole number{also}", f"Write {name}=0.", keyword)


def _check_what_if(source: Written, node: ast.Constant) -> None:
    try:
        changed = parse_what_if(str(node.value))
    except UserError as error:
        raise source.error(error.what, error.remedy, node) from None
    if changed == NOTHING:
        raise source.error("this what-if changes nothing", "Leave 'what_if' out.", node)


def _references(
    source: Written, tree: ast.expr, vocabulary: Vocabulary
) -> Iterator[tuple[ast.Call, Reference]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        kind = (
            "metric"
            if name in vocabulary.metrics
            else "fact"
            if name in vocabulary.facts
            else "formula"
            if name in vocabulary.formulas
            else ""
        )
        if kind:
            given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            named = kind != "formula"
            yield (
                node,
                Reference(
                    name,
                    kind,
                    str(given.get("run", "")) if named else "",
                    str(given.get("mode", MODES[0])) if kind == "metric" else "",
                    str(given.get("what_if", "")) if kind == "metric" else "",
                ),
            )


def _check_run(source: Written, node: ast.Call, reference: Reference, scope: Scope) -> None:
    if reference.kind == "formula":
        return
    run = reference.run or scope.default_run
    if run not in scope.manifests:
        raise source.error(f"unknown run '{run}'", did_you_mean(run, scope.manifests), node)
    if reference.kind == "metric" and not scope.manifests[run].has_steps:
        raise source.error(
            f"the run '{run}' is a {scope.manifests[run].kind} and has no steps",
            "Name a run with steps.",
            node,
        )


def _label(source: Written, tree: ast.expr, vocabulary: Vocabulary) -> str:
    found = set()
    for _, r in _references(source, tree, vocabulary):
        if r.kind == "metric":
            label = metric_label(vocabulary.metrics[r.name], r.mode)
            # What was counted or held stays so; only times follow from what is changed.
            found.add("what-if" if r.what_if and label != "formula" else label)
        elif r.kind == "fact":
            found.add(vocabulary.facts[r.name].label or "formula")
    if found <= {"formula"}:
        return "formula"
    if "what-if" in found:
        return "what-if"
    return "recorded" if found <= {"formula", "recorded"} else "reconstructed"


# --- evaluation -----------------------------------------------------------------------------------


class _Evaluator:
    """simpleeval with our operators and words, and the node at which an error came up."""

    def __init__(self, source: Written, scope: Scope) -> None:
        self._source = source
        self._scope = scope
        self._at: ast.AST | None = None

    def run(self, tree: ast.expr) -> Any:
        vocabulary = self._scope.vocabulary
        functions = dict(FUNCTIONS)
        # Of a long vocabulary an expression names a few words.
        said = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        functions |= {name: self._metric(name) for name in said & vocabulary.metrics.keys()}
        functions |= {name: self._fact(name) for name in said & vocabulary.facts.keys()}
        functions |= {name: closed_form(name, vocabulary.formulas[name])
                      for name in said & vocabulary.formulas.keys()}  # fmt: skip
        names = {"true": True, "false": False, **{u: quantity(1, u) for u in said.intersection(_UNIT_NAMES)}}
        engine = SimpleEval(operators=OPERATORS, functions=functions, names=names)
        handlers: dict[type[ast.AST], Callable[[Any], Any]] = {
            kind: engine.nodes[kind]
            for kind in (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.keyword)
        }
        handlers[ast.BoolOp] = lambda node: self._decide(engine, node)
        # Only what the check lets through can be evaluated at all, and every handler notes its place.
        engine.nodes = {kind: self._placed(handler) for kind, handler in handlers.items()}
        engine.nodes[ast.Constant] = self._constant
        try:
            return engine.eval(self._source.text, previously_parsed=tree)
        except Wrong as error:
            raise self._source.error(error.what, error.remedy, self._at) from None

    def _placed(self, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(node: ast.AST) -> Any:
            try:
                return handler(node)
            except Wrong:
                if self._at is None:
                    self._at = node
                raise

        return call

    def _decide(self, engine: SimpleEval, node: ast.BoolOp) -> bool:
        """`and` and `or`: as in Python, but only between truth values."""
        stop = isinstance(node.op, ast.Or)
        return (
            stop
            if any(truth(engine.eval("", previously_parsed=part)) is stop for part in node.values)
            else not stop
        )

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str):
            return node.value
        return quantity(node.value) if node.value else ZERO  # type: ignore[arg-type]

    def _metric(self, name: str) -> Callable[..., Any]:
        metric = self._scope.vocabulary.metrics[name]

        def call(
            run: str = "", mode: str = MODES[0], step: Any = None, what_if: str = "", **filters: Any
        ) -> Any:
            run = run or self._scope.default_run
            timeline = self._timeline(run, mode, None if step is None else plain(step), what_if)
            given = {k: plain(v) for k, v in filters.items()}
            known = [r.rank for r in timeline.ranks]
            if given.get("rank") == "each":
                return [self._measure(metric, timeline, given | {"rank": r}) for r in known]
            if given.get("rank", known[0]) not in known:
                raise Wrong(
                    f"there is no rank {given['rank']} in the run '{run}'",
                    f"Its ranks are {known[0]} to {known[-1]}.",
                )
            model = self._scope.manifests[run].model
            if model and not 0 <= given.get("layer", 0) < model.layers:
                raise Wrong(
                    f"there is no layer {given['layer']} in the run '{run}'",
                    f"Its layers are 0 to {model.layers - 1}.",
                )
            return self._measure(metric, timeline, given)

        return call

    def _timeline(self, run: str, mode: str, step: int | None, what_if: str) -> Any:
        """The representative step of a run, or another that was not spent on watching memory."""
        changed = {"what_if": what_if} if what_if else {}
        if step is None:
            return guarded(lambda: self._scope.timelines(run, mode, **changed))
        usable = [s.index for s in self._scope.manifests[run].steps if not s.detail]
        if step not in usable:
            raise Wrong(
                f"the run '{run}' has no step {step} whose times can be used",
                f"Its steps are {', '.join(map(str, usable))}.",
            )
        return guarded(lambda: self._scope.timelines(run, mode, step, **changed))

    def _measure(self, metric: Any, timeline: Any, filters: dict[str, Any]) -> Any:
        return guarded(lambda: quantity(exact(metric.function(timeline, **filters)), metric.unit))

    def _fact(self, name: str) -> Callable[..., Any]:
        fact = self._scope.vocabulary.facts[name]

        def call(run: str = "", **filters: Any) -> Any:
            manifest = self._scope.manifests[run or self._scope.default_run]
            given = {k: plain(v) for k, v in filters.items()}
            if given.get("rank") == "each":
                return [self._stated(fact, manifest, {"rank": r}) for r in range(manifest.world_size)]
            if not 0 <= given.get("rank", 0) < max(1, manifest.world_size):
                raise Wrong(
                    f"there is no rank {given['rank']} in the run '{manifest.id}'",
                    f"Its ranks are 0 to {manifest.world_size - 1}.",
                )
            return self._stated(fact, manifest, given)

        return call

    def _stated(self, fact: Fact, manifest: Manifest, filters: dict[str, Any]) -> Any:
        return guarded(lambda: quantity(exact(fact.function(manifest, **filters)), fact.unit))
