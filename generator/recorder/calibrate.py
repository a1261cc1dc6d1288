"""Calibrate a link: how long each operation takes over it when nobody computes.

A call's time is from the last member's arrival to the last member's end: before all have arrived
there is nothing to transfer. All clocks are the host's monotonic clock, so ranks can be compared.

Where ranks share nodes, a pair between two nodes is measured while every rank of these nodes is in such
a pair: in training they all communicate at the same time, over the same interface.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
import torch.distributed as dist

from generator.recorder.launch import Desk, launch
from generator.recorder.links import Links, sent_bytes
from generator.recorder.log import wall_ns
from generator.recorder.progress import Progress
from generator.recorder.rank import calm_loops, join_group
from generator.recorder.spec import RunSpec
from generator.runs.manifest import LinkRow, nodes_of

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
#: Payloads in bytes: the full (gathered, unreduced) tensor; only those that a link passes in this time.
SIZES = tuple(1 << exponent for exponent in (10, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24))
_LONGEST_MS = 120
_ELEMENT_BYTES = 4
_WARMUP = 2


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table."""

    op: str
    bytes: int
    #: The groups that run it at the same time, by their ranks; all of one shape.
    teams: tuple[tuple[int, ...], ...]
    #: Nodes that a team is spread over; 0 where every rank is a node of its own.
    nodes: int = 0

    @property
    def members(self) -> int:
        return len(self.teams[0])

    def team_of(self, rank: int) -> tuple[int, ...] | None:
        """The team that a rank is in, if any."""
        return next((team for team in self.teams if rank in team), None)

    @property
    def together(self) -> tuple[int, ...]:
        """All ranks that take part."""
        return tuple(sorted(rank for team in self.teams for rank in team))

    @property
    def repeats(self) -> int:
        return 31 if self.bytes < 1 << 20 else 15


@dataclass(frozen=True, slots=True)
class Timing:
    """What one member saw of a case: begin and end of each repeat, and what its interface sent a call."""

    begin_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    sent_bytes: float


def cases(ranks: int, rate_mbit: int = 0, ranks_per_node: int = 1) -> list[Case]:
    """Every collective among all ranks and in pairs, and sends in pairs: inside a node and between two."""
    everyone = (tuple(range(ranks)),)
    pairs: list[tuple[tuple[int, ...], ...]] = [((0, 1),)]
    if ranks_per_node > 1:
        pairs.append(tuple((rank, rank + ranks_per_node) for rank in range(ranks_per_node)))
    shapes = [everyone, *pairs] if ranks > 2 else pairs
    sizes = [size for size in SIZES if size * 8 <= rate_mbit * 1e3 * _LONGEST_MS or not rate_mbit]
    return [
        Case(op, size, teams, nodes_of(teams[0], ranks_per_node))
        for op, groups in (*((op, shapes) for op in COLLECTIVES), ("send", pairs))
        for teams, size in product(groups, sizes)
    ]


def measure(
    spec: RunSpec, links: Links, folder: Path, progress: Progress, *, stall_s: float = 120.0
) -> tuple[LinkRow, ...]:
    """Measure all cases with one process a rank; raises UserError where a rank fails or hangs."""
    listed = cases(spec.world_size, spec.rate_mbit, spec.ranks_per_node)
    seen: list[list[Timing | None]] = launch(
        partial(_rank, listed, links, folder, spec.world_size),
        spec.world_size,
        len(listed),
        what=spec.id,
        progress=progress,
        stall_s=stall_s,
    )
    return tuple(_row(case, timings) for case, timings in zip(listed, zip(*seen, strict=True), strict=True))


def _row(case: Case, by_rank: Sequence[Timing | None]) -> LinkRow:
    # Of teams that share an interface one may be served before the other: what both take is the measure.
    everyone = [t for t in by_rank if t is not None]
    durations = [
        max(ends) - max(begins)
        for begins, ends in zip(
            zip(*(t.begin_ns for t in everyone), strict=True),
            zip(*(t.end_ns for t in everyone), strict=True),
            strict=True,
        )
    ]
    low, median, high = statistics.quantiles(durations, n=4, method="inclusive")
    timings = [t for rank in case.teams[0] if (t := by_rank[rank]) is not None]
    # A send's bytes are the sender's; its receiver only acknowledges.
    sent = timings[0].sent_bytes if case.op == "send" else statistics.fmean(t.sent_bytes for t in timings)
    return LinkRow(
        case.op,
        case.members,
        case.bytes,
        round(median),
        round(low),
        round(high),
        len(durations),
        max(0, round(sent)),
        case.nodes,
    )


def _rank(listed: list[Case], links: Links, folder: Path, world_size: int, desk: Desk) -> list[Timing | None]:
    """One rank's part; None for the cases that it is no member of."""
    join_group(links, folder, desk.rank, world_size)
    groups = {
        ranks: dist.new_group(list(ranks))
        for ranks in sorted({team for case in listed for team in (*case.teams, case.together)})
    }
    calm_loops()
    everyone = dist.group.WORLD
    result: list[Timing | None] = []
    for number, case in enumerate(listed):
        desk.report(f"{case.op} of {case.bytes} B among {case.members}")
        team = case.team_of(desk.rank)
        result.append(_time(case, team, groups[team], groups[case.together], desk.rank) if team else None)
        dist.barrier(everyone)
        desk.finished(number + 1)
    return result


def _time(
    case: Case, team: tuple[int, ...], group: dist.ProcessGroup, together: dist.ProcessGroup, rank: int
) -> Timing:
    call = _call(case, team, group, rank)
    for _ in range(_WARMUP):
        call()
    # What the barriers between the repeats send is measured alone and taken off.
    barrier_bytes = _sent_by(lambda: dist.barrier(together), case.repeats, together)
    begins, ends = [], []

    def timed() -> None:
        dist.barrier(together)
        begins.append(wall_ns())
        call()
        ends.append(wall_ns())

    sent = _sent_by(timed, case.repeats, together) - barrier_bytes
    return Timing(tuple(begins), tuple(ends), sent)


def _sent_by(action: Callable[[], None], repeats: int, group: dist.ProcessGroup) -> float:
    """Bytes that the interface sends for one action, as a mean over repeats."""
    dist.barrier(group)
    before = sent_bytes()
    for _ in range(repeats):
        action()
    dist.barrier(group)
    return (sent_bytes() - before) / repeats


def _call(case: Case, team: tuple[int, ...], group: dist.ProcessGroup, rank: int) -> Callable[[], None]:
    """The operation on buffers of its own; returns when this rank's part is complete."""
    # Zeros, which stay what they are when they are summed again and again.
    full = torch.zeros(case.bytes // _ELEMENT_BYTES)
    part = torch.ones(len(full) // case.members)
    other = torch.empty_like(full)
    first, second = team[:2]
    calls: dict[str, Callable[[], None]] = {
        "all_reduce": lambda: dist.all_reduce(full, group=group),
        "all_gather": lambda: dist.all_gather_single(full, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_single(part, full, group=group),
        "all_to_all": lambda: dist.all_to_all_single(other, full, group=group),
        "broadcast": lambda: dist.broadcast(full, src=first, group=group),
        "send": lambda: (
            dist.send(full, second, group=group) if rank == first else dist.recv(full, first, group=group)
        ),
    }
    return calls[case.op]
