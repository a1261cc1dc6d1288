"""Scripts on their way to readers: without comments and spaces, and with short names for what is local.

The readable sources stay in the project. Names of properties, globals and whatever a script does not
declare itself are never touched, so what modules offer one another keeps its name.

Every variable is renamed where it is declared and where it is meant. A scope takes the first letters that
mean nothing else inside of it, so the same few stand everywhere, which packs well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import count, pairwise

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from generator.errors import UserError

_FUNCTIONS = frozenset(
    ("arrow_function", "function_declaration", "function_expression", "generator_function",
     "generator_function_declaration", "method_definition")
)  # fmt: skip
_SCOPES = _FUNCTIONS | frozenset(
    (
        "program",
        "statement_block",
        "for_statement",
        "for_in_statement",
        "catch_clause",
        "switch_body",
        "class",
    )
)
_DECLARED = frozenset(("function_declaration", "generator_function_declaration", "class_declaration"))
#: What a name can stand in, where it is read or bound.
_SHORT = ("shorthand_property_identifier", "shorthand_property_identifier_pattern")
_NAMES = frozenset(("identifier", *_SHORT))
#: Inside these every byte counts.
_VERBATIM = frozenset(("string", "template_string", "regex"))
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: Words of the language with no more letters than names get.
_RESERVED = frozenset((b"do", b"if", b"in", b"of", b"as"))
#: Where a line may go on: after a token that ends so, before one that begins so.
_GOES_ON_AFTER, _GOES_ON_BEFORE = b"{([,;:?=&|<>*!", b")]},.;:?=&|"


@dataclass(slots=True, eq=False)
class _Scope:
    around: _Scope | None
    function: bool
    #: What it declares, and how often that is named; once renamed, its new name.
    uses: dict[bytes, int] = field(default_factory=dict)
    names: dict[bytes, bytes] = field(default_factory=dict)
    #: Names of scopes around it that mean something inside of it: scope and name.
    outer: set[tuple[_Scope, bytes]] = field(default_factory=set)
    inside: list[_Scope] = field(default_factory=list)


@lru_cache(maxsize=4)
def slim(script: bytes) -> bytes:
    """A script that does the same in fewer bytes. Raises UserError where it cannot be read."""
    root = _parser().parse(script).root_node
    if root.has_error:
        line = next(n.start_point.row for n in _walk(root) if n.is_error or n.is_missing) + 1
        raise UserError(f"line {line} of the joined scripts is not JavaScript", remedy="Mend it.")
    whole = _Scope(None, function=True)
    scopes: dict[int, _Scope] = {}
    _declare(root, whole, scopes)
    free: set[bytes] = set()
    for node in _walk(root):
        if node.type in _NAMES:
            _use(node.text or b"", scopes[node.id], free)
    for scope in whole.inside:
        _rename(scope, free | whole.uses.keys())
    return _written(script, root, scopes, whole)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_javascript.language()))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


# ---- who is who


def _declare(node: Node, scope: _Scope, scopes: dict[int, _Scope]) -> None:
    """Note the scope of every node, and what each scope declares."""
    own = scope
    if node.type in _SCOPES and node.parent is not None and not _is_body(node):
        own = _Scope(scope, function=node.type in _FUNCTIONS)
        scope.inside.append(own)
    scopes[node.id] = own
    name = node.child_by_field_name("name")
    if name is not None:
        if node.type in _DECLARED:
            scope.uses[name.text or b""] = 0
        elif node.type in ("function_expression", "class"):
            own.uses[name.text or b""] = 0
    if node.type == "variable_declarator":
        kind = node.parent.type if node.parent else ""
        _bind(node.child_by_field_name("name"), _function(own) if kind == "variable_declaration" else own)
    elif node.type in _FUNCTIONS:
        _bind(node.child_by_field_name("parameters") or node.child_by_field_name("parameter"), own)
    elif node.type == "catch_clause":
        _bind(node.child_by_field_name("parameter"), own)
    elif node.type == "for_in_statement" and (kind_node := node.child_by_field_name("kind")):
        _bind(node.child_by_field_name("left"), _function(own) if kind_node.text == b"var" else own)
    for child in node.children:
        outside = node.type in _DECLARED and child == name
        _declare(child, scope if outside else own, scopes)


def _is_body(node: Node) -> bool:
    """Whether a block may not declare again what stands in the brackets before it."""
    around = node.parent.type if node.parent else ""
    return node.type == "statement_block" and (around in _FUNCTIONS or around == "catch_clause")


def _function(scope: _Scope) -> _Scope:
    while not scope.function and scope.around:
        scope = scope.around
    return scope


def _bind(pattern: Node | None, scope: _Scope) -> None:
    """Enter the names of a pattern; its default values are no names of it."""
    if pattern is None:
        return
    if pattern.type in ("identifier", "shorthand_property_identifier_pattern"):
        scope.uses[pattern.text or b""] = 0
        return
    fields = {"assignment_pattern": "left", "object_assignment_pattern": "left", "pair_pattern": "value"}
    if part := fields.get(pattern.type):
        _bind(pattern.child_by_field_name(part), scope)
        return
    for child in pattern.named_children:
        if child.type != "comment":
            _bind(child, scope)


def _found(name: bytes, scope: _Scope | None) -> _Scope | None:
    """The scope that declares what a name means in another."""
    while scope is not None and name not in scope.uses:
        scope = scope.around
    return scope


def _use(name: bytes, scope: _Scope, free: set[bytes]) -> None:
    meant = _found(name, scope)
    if meant is None:
        free.add(name)
        return
    meant.uses[name] += 1
    at: _Scope | None = scope
    while at is not None and at is not meant:
        at.outer.add((meant, name))
        at = at.around


def _rename(scope: _Scope, free: set[bytes]) -> None:
    taken = free | {there.names[name] for there, name in scope.outer if there.names}
    letters = (short for short in map(_letters, count()) if short not in taken | _RESERVED)
    # The most used first; among equals in the order of the script, so that the same gives the same.
    for name, _ in sorted(scope.uses.items(), key=lambda item: -item[1]):
        scope.names[name] = next(letters)
    for inner in scope.inside:
        _rename(inner, free)


def _letters(number: int) -> bytes:
    text = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, len(_LETTERS))
        text = _LETTERS[letter] + text
    return text.encode()


# ---- writing


def _written(script: bytes, root: Node, scopes: dict[int, _Scope], whole: _Scope) -> bytes:
    out = bytearray()
    end, said = 0, b""
    for (leaf, verbatim), (following, _) in pairwise([*_leaves(root, within=False), (root, False)]):
        gap = script[end : leaf.start_byte]
        token = script[leaf.start_byte : leaf.end_byte]
        if not verbatim and (_is_idle(leaf, following) or _goes_on(leaf)):
            end = leaf.end_byte
            continue
        if leaf.type == ";" and _goes_on(following):
            token = b","
        elif leaf.type == "const":
            token = b"let"
        if leaf.type in _NAMES:
            scope = _found(token, scopes[leaf.id])
            if scope is not None and scope is not whole:
                short = scope.names[token]
                token = token + b":" + short if leaf.type in _SHORT else short
        out += gap if verbatim else _gap(said, b"\n" in gap, token)
        out += token
        end, said = leaf.end_byte, token or said
    return bytes(out) + b"\n"


def _is_idle(leaf: Node, following: Node) -> bool:
    """Whether a comma or a semicolon only precedes the end of what it stands in."""
    around = leaf.parent.type if leaf.parent else ""
    if leaf.type == ";":
        return following.type == "}" and around not in ("empty_statement", "for_statement")
    return leaf.type == "," and following.type in ("}", ")")


def _goes_on(leaf: Node) -> bool:
    """Whether a `const` or `let` can go on with the declaration before it."""
    own = leaf.parent
    if own is None or own.type != "lexical_declaration" or own.children[0] != leaf:
        return False
    before = own.prev_sibling
    while before is not None and before.type == "comment":
        before = before.prev_sibling
    return before is not None and before.type == own.type and before.children[-1].type == ";"


def _leaves(node: Node, *, within: bool) -> Iterator[tuple[Node, bool]]:
    """All tokens in order, each with whether what is before it must stay as it is."""
    if node.type == "comment":
        return
    if not node.children or node.type in ("string", "regex"):
        yield node, within
        return
    if node.type != "template_string":
        inside = within and node.type != "template_substitution"
        for i, child in enumerate(node.children):
            for leaf, verbatim in _leaves(child, within=inside):
                yield leaf, verbatim or (within and i == 0)
        return
    for i, child in enumerate(node.children):
        for k, (leaf, verbatim) in enumerate(_leaves(child, within=i > 0)):
            yield leaf, verbatim or (i > 0 and k == 0)


def _gap(before: bytes, new_line: bool, after: bytes) -> bytes:
    """What must stand between two tokens."""
    if not before:
        return b""
    a, b = before[-1:], after[:1]
    if new_line:
        return b"" if a in _GOES_ON_AFTER or (b and b in _GOES_ON_BEFORE) else b"\n"
    both = a + b
    return (
        b" "
        if all(c.isalnum() or c in "_$" for c in both.decode(errors="replace"))
        or both in (b"++", b"--", b"//")
        else b""
    )
