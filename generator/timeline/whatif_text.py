"""A what-if as a value and as text: what of a step is to cost how much.

The text is what an exercise says and what stands in a page's address, so it has only characters that need
no escape there: items with commas between them, in any order,

    rank2=1200      rank 2 works 1.2 times as long
    backward=500    so does a phase: forward, backward (its parts too), backward_input, backward_weight,
                    optimizer, host
    layer3=2000     and the computation of a layer
    latency=0       the latency of every call
    bandwidth=2000  the link's bandwidth
    free            communication costs nothing; free=send: those calls alone
    async=send      nobody waits for these calls before the end of the step
    block=send      who issues such a call stands still until it is complete
    balance         all ranks share the work evenly

Factors are per mille, 0 to 100000 (of the bandwidth from 1). Several operations are several items. The
empty text changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from generator.errors import UserError, did_you_mean

#: Phases by the number of their activity; the word "backward" also means the two after it.
PHASES = ("forward", "backward", "backward_input", "backward_weight", "optimizer", "host")
#: Largest factor, per mille.
MOST = 100_000
_UNCHANGED = 1000
_OPERATION = re.compile(r"[a-z0-9_]+")
_NUMBERED = re.compile(r"(rank|layer)(0|[1-9][0-9]{0,8})")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
Key = TypeVar("Key", int, str)
_HOW = "Write it as in 'rank2=1200, bandwidth=2000, async=all_reduce'."


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Other costs for a step; factors are per mille, and those of 1000 are dropped.

    Raises UserError for a factor out of range, an unknown phase, what is no operation's name, and an
    operation that shall be asynchronous and blocking.
    """

    #: Rank to the factor of all its work, its host time too.
    ranks: Mapping[int, int] = field(default_factory=dict)
    #: Phase to the factor of its work, on every rank.
    phases: Mapping[str, int] = field(default_factory=dict)
    #: Layer to the factor of its computation.
    layers: Mapping[int, int] = field(default_factory=dict)
    #: Factor of the latency part of every call.
    latency: int = _UNCHANGED
    #: Factor of the link's bandwidth; the transfer part of every call is divided by it.
    bandwidth: int = _UNCHANGED
    #: Whether communication costs nothing: all of it, or that of some operations.
    free: bool = False
    free_ops: frozenset[str] = frozenset()
    #: Operations that nobody waits for before the step's end, whether or not their result is needed: an
    #: upper bound of what overlap can win.
    asynchronous: frozenset[str] = frozenset()
    #: Operations whose issuer stands still until the call is complete.
    blocking: frozenset[str] = frozenset()
    #: Whether the work is shared evenly by the ranks.
    balance: bool = False

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.phases) - set(PHASES)):
            raise UserError(f"there is no phase '{unknown[0]}'", remedy=did_you_mean(unknown[0], PHASES))
        for numbers in (self.ranks, self.layers):
            for number in numbers:
                _in_range("the number of a rank or a layer", number, 0, 10**9 - 1)
        for factors in (self.ranks, self.phases, self.layers):
            for name, per_mille in factors.items():
                _in_range(f"the factor of {name}", per_mille, 0, MOST)
        _in_range("the factor of latency", self.latency, 0, MOST)
        _in_range("the factor of bandwidth", self.bandwidth, 1, MOST)
        for op in sorted(self.free_ops | self.asynchronous | self.blocking):
            if not _OPERATION.fullmatch(op):
                raise UserError(f"'{op}' is not the name of an operation", remedy="One is 'all_reduce'.")
        if both := sorted(self.asynchronous & self.blocking):
            raise UserError(f"{both[0]} cannot be asynchronous and blocking", remedy="Choose one of them.")
        # What changes nothing is left out, so that equal what-ifs are equal values.
        for name in ("ranks", "phases", "layers"):
            factors = {k: v for k, v in sorted(getattr(self, name).items()) if v != _UNCHANGED}
            object.__setattr__(self, name, factors)
        for name in ("free_ops", "asynchronous", "blocking"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        if self.free:
            object.__setattr__(self, "free_ops", frozenset())

    def __hash__(self) -> int:
        return hash(what_if_text(self))


def _in_range(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UserError(f"{what} is {value}", remedy=f"It may be {least} to {most}.")


def what_if_text(what_if: WhatIf) -> str:
    """The one text of a what-if; equal what-ifs have equal texts."""
    items = [f"rank{rank}={per_mille}" for rank, per_mille in what_if.ranks.items()]
    items += [f"{phase}={what_if.phases[phase]}" for phase in PHASES if phase in what_if.phases]
    items += [f"layer{layer}={per_mille}" for layer, per_mille in what_if.layers.items()]
    items += [f"latency={what_if.latency}"] if what_if.latency != _UNCHANGED else []
    items += [f"bandwidth={what_if.bandwidth}"] if what_if.bandwidth != _UNCHANGED else []
    items += ["free"] if what_if.free else [f"free={op}" for op in sorted(what_if.free_ops)]
    items += [f"async={op}" for op in sorted(what_if.asynchronous)]
    items += [f"block={op}" for op in sorted(what_if.blocking)]
    items += ["balance"] if what_if.balance else []
    return ",".join(items)


#: The step as it is.
NOTHING = WhatIf()


def parse_what_if(text: str) -> WhatIf:
    """The what-if of a text. Raises UserError for unknown items and repeated factors."""
    read = _Reader()
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        read.item(name, value if equals else None)
    return WhatIf(
        ranks=read.ranks,
        phases=read.phases,
        layers=read.layers,
        latency=read.links.get("latency", _UNCHANGED),
        bandwidth=read.links.get("bandwidth", _UNCHANGED),
        free="" in read.ops["free"],
        free_ops=frozenset(read.ops["free"] - {""}),
        asynchronous=frozenset(read.ops["async"]),
        blocking=frozenset(read.ops["block"]),
        balance=read.balance,
    )


class _Reader:
    """What has been read of a text."""

    def __init__(self) -> None:
        self.ranks: dict[int, int] = {}
        self.phases: dict[str, int] = {}
        self.layers: dict[int, int] = {}
        self.links: dict[str, int] = {}
        self.ops: dict[str, set[str]] = {"free": set(), "async": set(), "block": set()}
        self.balance = False

    def item(self, name: str, value: str | None) -> None:
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            into = self.ranks if numbered[1] == "rank" else self.layers
            _once(into, int(numbered[2]), name, value)
        elif name in PHASES:
            _once(self.phases, name, name, value)
        elif name in ("latency", "bandwidth"):
            _once(self.links, name, name, value)
        elif name in self.ops:
            if not value and not (name == "free" and value is None):
                raise UserError(f"'{name}' needs an operation", remedy=f"Write it as in '{name}=all_reduce'.")
            self.ops[name].add(value or "")
        elif name == "balance" and value is None:
            self.balance = True
        else:
            raise UserError(f"a what-if has no '{name}'", remedy=_remedy(name))


def _once(into: dict[Key, int], key: Key, name: str, value: str | None) -> None:
    if key in into:
        raise UserError(f"'{name}' is given twice", remedy="Give it once.")
    if value is None or not _NUMBER.fullmatch(value):
        raise UserError(f"'{name}' needs a whole number, per mille", remedy=_HOW)
    into[key] = int(value)


def _remedy(name: str) -> str:
    known = (*PHASES, "latency", "bandwidth", "free", "async", "block", "balance", "rank0", "layer0")
    if name == "balance":
        return "'balance' has no value."
    near = did_you_mean(name, known)
    return near if near.startswith("Did") else f"{near} {_HOW}"
