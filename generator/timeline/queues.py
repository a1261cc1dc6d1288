"""Which calls can be one at all: those of one queue, a process group or a sender and its receiver.

A group is known by its members and its name. Two disjoint groups may have one name. One group may
have several: names are made by each process, as numbers, hashes or by hand. Ranks that share members
but no name are then of one group where each has one such name; where several groups have the same
members and no common names, it is found by trying which calls go together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from generator.runs.run import MISSING
from generator.timeline.alignment import Fit, fit
from generator.timeline.arrivals import Arrival


class Naming(Enum):
    """How the calls of different ranks were found to be of one group."""

    NAME = "one name"
    MEMBERS = "same members"
    CALLS = "same members and like calls"
    #: Several groups fit: the closest in time was taken.
    GUESS = "same members, and several groups fit"
    #: The trace does not tell who is in the group: all who call in it are.
    UNTOLD = "members not told"


@dataclass(frozen=True, slots=True)
class Queue:
    """The calls of one group, or of one sender to one receiver under one tag, by rank and in order."""

    #: The name that the lowest of the ranks uses.
    name: str
    #: Ranks that must take part in each call.
    expected: tuple[int, ...]
    naming: Naming
    calls: dict[int, list[Arrival]]


#: Rank to its calls, all under one name or under names that are one group's.
_Lists = dict[int, list[Arrival]]


@dataclass(frozen=True, slots=True)
class _Party:
    """Ranks that are of one group, while it is being found out."""

    lists: _Lists
    naming: Naming = Naming.NAME

    @property
    def first(self) -> tuple[int, int, int]:
        """The earliest call, for an order that does not depend on names."""
        return min((calls[0].issue_ns, rank, calls[0].call) for rank, calls in self.lists.items())

    @property
    def members(self) -> set[tuple[int, ...]]:
        """The group's members, as each of the ranks tells them."""
        return {tuple(sorted(calls[0].ranks)) for calls in self.lists.values()} - {()}

    def may_be(self, other: _Party) -> bool:
        """Whether they can be one group: no rank is in both, and no members in one and not the other."""
        return not self.lists.keys() & other.lists.keys() and len(self.members | other.members) < 2


def queues(calls: Iterable[Arrival]) -> Iterator[Queue]:
    """Sort calls of all ranks into queues; every one ends up in exactly one."""
    by_key: dict[tuple[object, ...], dict[str, _Lists]] = defaultdict(dict)
    ordered = sorted(calls, key=lambda a: (a.rank, a.issue_ns, a.call))
    memberships = _memberships(ordered)
    for a in ordered:
        by_name = by_key[_key(a, memberships)]
        by_name.setdefault(a.group, {}).setdefault(a.rank, []).append(a)
    for by_name in by_key.values():
        for party in _parties([_Party(lists) for lists in by_name.values()]):
            yield _queue(party)


def _queue(party: _Party) -> Queue:
    lowest = party.lists[min(party.lists)][0]
    naming = party.naming
    expected: tuple[int, ...]
    if lowest.point_to_point:
        known = MISSING not in (lowest.src, lowest.dst)
        expected = (lowest.src, lowest.dst) if known else (lowest.rank,)
    else:
        told = (a.ranks for rank in sorted(party.lists) for a in party.lists[rank] if a.ranks)
        expected = next(told, ())
        if not expected:
            expected, naming = tuple(sorted(party.lists)), Naming.UNTOLD
    return Queue(lowest.group, expected, naming, party.lists)


def _memberships(calls: Iterable[Arrival]) -> dict[str, set[tuple[int, ...]]]:
    """The members of groups by name, as any rank tells them."""
    told: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for a in calls:
        if a.ranks:
            told[a.group].add(a.ranks)
    return {name: {tuple(sorted(ranks)) for ranks in found} for name, found in told.items()}


def _members(call: Arrival, memberships: Mapping[str, set[tuple[int, ...]]]) -> tuple[int, ...]:
    """Members of a call's group, rising; if its own rank does not tell, as the others do; else empty."""
    if call.ranks:
        return tuple(sorted(call.ranks))
    found = [ranks for ranks in memberships.get(call.group, ()) if call.rank in ranks]
    return found[0] if len(found) == 1 else ()


def _key(call: Arrival, memberships: Mapping[str, set[tuple[int, ...]]]) -> tuple[object, ...]:
    """What calls of one queue have in common, whatever their ranks call it."""
    if not call.point_to_point:
        members = _members(call, memberships)
        # Of groups whose members nobody tells there is only the name to go by.
        return ("group", members) if members else ("untold", call.group)
    if MISSING in (call.src, call.dst):
        return ("alone", call.rank, call.call)
    return ("message", call.src, call.dst, call.tag)


def _parties(named: list[_Party]) -> list[_Party]:
    """Who is of one group, of ranks that have the same members under several names."""
    if len(named) == 1:
        return named
    present = {rank for party in named for rank in party.lists}
    # A name that all use is one group's.
    whole = [party for party in named if party.lists.keys() == present]
    rest = sorted((p for p in named if p.lists.keys() != present), key=lambda p: p.first)
    if len(rest) > 1 and all(a.may_be(b) for a, b in combinations(rest, 2)):
        rest = [_Party({r: calls for p in rest for r, calls in p.lists.items()}, Naming.MEMBERS)]
    return whole + _by_calls(rest)


def _by_calls(parties: list[_Party]) -> list[_Party]:
    """Join parties that have no rank in common, those first whose calls go together best.

    Where one fits several others equally well, the closest in time is a guess, and so is all that is
    left over from it.
    """
    naming = Naming.CALLS
    while offers := _offers(parties):
        least = min(offer.fit.gaps for offer in offers)
        best = [offer for offer in offers if offer.fit.gaps == least]
        sure = [o for o in best if not any(_rivals(o, other, parties) for other in best)]
        if not sure:
            naming = Naming.GUESS
        chosen = min(sure or best, key=lambda o: (o.fit.distance_ns, sorted(o.pair)))
        i, j = sorted(chosen.pair)
        joined = _Party(parties[i].lists | parties[j].lists, naming)
        parties = [joined if k == i else p for k, p in enumerate(parties) if k != j]
    return parties


@dataclass(frozen=True, slots=True)
class _Offer:
    """Two parties that can be one group, and how well they fit."""

    pair: frozenset[int]
    fit: Fit


def _offers(parties: list[_Party]) -> list[_Offer]:
    found = []
    for (i, one), (j, other) in combinations(enumerate(parties), 2):
        if one.may_be(other):
            a, b = one.lists[min(one.lists)], other.lists[min(other.lists)]
            found.append(_Offer(frozenset((i, j)), fit(a, b)))
    return found


def _rivals(one: _Offer, other: _Offer, parties: list[_Party]) -> bool:
    """Whether a party can follow one of two offers and not both."""
    if len(one.pair & other.pair) != 1:
        return False
    (i,), (j,) = one.pair - other.pair, other.pair - one.pair
    return not parties[i].may_be(parties[j])
