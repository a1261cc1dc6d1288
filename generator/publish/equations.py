"""A formula's equation, read off the code that computes it: so that the page cannot say anything else."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

#: How parameters are written in an equation, where their name is a word.
SYMBOLS = {
    "all_backward": r"\Sigma B",
    "all_forward": r"\Sigma F",
    "backward": "B",
    "backward_input": "I",
    "backward_weight": "W",
    "buckets": "k",
    "element": "w",
    "every": "K",
    "experts": "E",
    "exposed": r"T_{\mathrm{exposed}}",
    "forward": "F",
    "heads": "a",
    "latency": r"\alpha",
    "layers": "L",
    "longest_backward": r"\max B",
    "longest_forward": r"\max F",
    "mask": r"w_{\mathrm{mask}}",
    "nodes": "M",
    "operations": "A",
    "parameters": r"\Psi",
    "part": "F",
    "passes": "m",
    "pause": "g",
    "peak": r"A_{\mathrm{peak}}",
    "rank": "i",
    "ranks": "N",
    "rate": r"\beta",
    "reductions": "r",
    "root": r"\Psi_{\mathrm{root}}",
    "shards": "G",
    "sigma": r"\sigma",
    "size": "S",
    "stage": "i",
    "step": "T",
    "syncs": "k",
    "time": "T",
    "tokens": "T",
    "transfer": "C",
    "unit": r"\Psi_{\mathrm{unit}}",
    "units": "u",
    "vocabulary": "V",
}
#: Strength of what an expression is made of, so that parentheses stand only where they must.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


class _NotAnEquation(Exception):
    """The code is not one expression of arithmetic."""


def equation(function: Callable[..., Any]) -> str:
    """TeX of what a function returns, with what it names on the way; empty where it is no equation."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    *named, last = [s for s in _definition(tree).body if not _is_docstring(s)]
    try:
        parts = [_returned(last), *(_named(s) for s in named)]
    except _NotAnEquation:
        return ""
    return r",\quad ".join(parts)


def _returned(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Return) or statement.value is None:
        raise _NotAnEquation
    return _tex(statement.value)[0]


def _named(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        raise _NotAnEquation
    return f"{symbol(statement.targets[0].id)} = {_tex(statement.value)[0]}"


def symbol(parameter: str) -> str:
    """How a parameter is written in an equation, as TeX."""
    return SYMBOLS.get(parameter, parameter)


def _definition(tree: ast.Module) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tex(node: ast.expr) -> tuple[str, int]:
    """TeX of an expression and its strength."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return str(node.value), _ATOM
    if isinstance(node, ast.Name):
        return symbol(node.id), _ATOM
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        right = _within(node.right, _SUM if sign == "+" else _PRODUCT)
        return f"{_within(node.left, _SUM)} {sign} {right}", _SUM
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return _product(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return f"{_within(node.left, _ATOM)}^{{{_tex(node.right)[0]}}}", _POWER
    if isinstance(node, ast.IfExp):
        return _cases(node), _ATOM
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        inner = ",\\; ".join(_tex(a)[0] for a in node.args)
        return rf"\{node.func.id}({inner})", _ATOM
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sqrt":
        return rf"\sqrt{{{_tex(node.args[0])[0]}}}", _ATOM
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.func.id.startswith("_"):
        inner = ",\\, ".join(_tex(a)[0] for a in node.args)
        return rf"\text{{{node.func.id.replace('_', ' ')}}}({inner})", _ATOM
    raise _NotAnEquation


def _within(node: ast.expr, strength: int) -> str:
    """TeX of a part of an expression, in parentheses where it is weaker than what it stands in."""
    text, own = _tex(node)
    return text if own >= strength else f"({text})"


def _cases(node: ast.IfExp) -> str:
    if not isinstance(node.test, ast.Name):
        raise _NotAnEquation
    when = f"if {node.test.id.replace('_', ' ')}"
    return (
        rf"\begin{{cases}} {_tex(node.body)[0]} & \text{{{when}}} \\"
        rf" {_tex(node.orelse)[0]} & \text{{otherwise}} \end{{cases}}"
    )


def _product(node: ast.expr) -> tuple[str, int]:
    """A chain of factors: what is multiplied above the line, what is divided by below it."""
    above: list[ast.expr] = []
    below: list[ast.expr] = []
    _factors(node, above, below)
    if not below:
        return _row(above), _PRODUCT
    # One sum over one letter stands alone, what it is multiplied by before it: 8bsh (t − 1)/t.
    sums: list[ast.expr] = [f for f in above if isinstance(f, ast.BinOp | ast.IfExp)]
    on_line = sums if len(sums) == 1 and len(below) == 1 else above
    before = [f for f in above if f not in on_line]
    fraction = rf"\frac{{{_row(on_line)}}}{{{_row(below)}}}"
    return (f"{_row(before)} {fraction}" if before else fraction), _PRODUCT


def _factors(node: ast.expr, above: list[ast.expr], below: list[ast.expr]) -> None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        _factors(node.left, above, below)
        _factors(node.right, above, below)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        _factors(node.left, above, below)
        _factors(node.right, below, above)
    else:
        above.append(node)


def _row(factors: list[ast.expr]) -> str:
    """Factors side by side; the same one twice is a power. One alone needs no parentheses."""
    if len(factors) == 1:
        return _tex(factors[0])[0]
    numbers_first = sorted(factors, key=lambda f: not isinstance(f, ast.Constant))
    texts = [_within(f, _PRODUCT) for f in numbers_first]
    shown = []
    for text in dict.fromkeys(texts):
        times = texts.count(text)
        shown.append(text if times == 1 else f"{text}^{{{times}}}")
    return r" \, ".join(shown)
