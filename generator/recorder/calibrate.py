"""Calibrate a link: how long each operation takes over it when nobody computes.

A call's time is from the last member's arrival to the last member's end: before all have arrived
there is nothing to transfer. All clocks are the host's monotonic clock, so ranks can be compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
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
from generator.recorder.rank import join_group
from generator.recorder.spec import RunSpec
from generator.runs.manifest import LinkRow

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
#: Payloads in bytes: the full (gathered, unreduced) tensor.
SIZES = tuple(1 << exponent for exponent in (10, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24))
_ELEMENT_BYTES = 4
_WARMUP = 2


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table."""

    op: str
    members: int
    bytes: int

    @property
    def repeats(self) -> int:
        return 31 if self.bytes < 1 << 20 else 15


@dataclass(frozen=True, slots=True)
class Timing:
    """What one member saw of a case: begin and end of each repeat, and what its interface sent a call."""

    begin_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    sent_bytes: float


def cases(ranks: int) -> list[Case]:
    """Every collective among all ranks and among two, and a send between two."""
    group_sizes = sorted({2, ranks}, reverse=True)
    listed = [Case(*c) for c in product(COLLECTIVES, group_sizes, SIZES)]
    return [*listed, *(Case("send", 2, size) for size in SIZES)]


def measure(
    spec: RunSpec, links: Links, folder: Path, progress: Progress, *, stall_s: float = 120.0
) -> tuple[LinkRow, ...]:
    """Measure all cases with one process a rank; raises UserError where a rank fails or hangs."""
    listed = cases(spec.world_size)
    seen: list[list[Timing | None]] = launch(
        partial(_rank, listed, links, folder, spec.world_size), spec.world_size, len(listed),
        what=spec.id, progress=progress, stall_s=stall_s)
    return tuple(
        _row(case, [t for t in timings if t is not None])
        for case, timings in zip(listed, zip(*seen, strict=True), strict=True))


def _row(case: Case, timings: list[Timing]) -> LinkRow:
    durations = [
        max(ends) - max(begins)
        for begins, ends in zip(
            zip(*(t.begin_ns for t in timings), strict=True),
            zip(*(t.end_ns for t in timings), strict=True), strict=True)
    ]
    low, median, high = statistics.quantiles(durations, n=4, method="inclusive")
    # A send's bytes are the sender's; its receiver only acknowledges.
    sent = timings[0].sent_bytes if case.op == "send" else statistics.fmean(t.sent_bytes for t in timings)
    return LinkRow(
        case.op, case.members, case.bytes, round(median), round(low), round(high), len(durations),
        max(0, round(sent)))


def _rank(
    listed: list[Case], links: Links, folder: Path, world_size: int, desk: Desk
) -> list[Timing | None]:
    """One rank's part; None for the cases that it is no member of."""
    join_group(links, folder, desk.rank, world_size)
    groups = {n: dist.new_group(list(range(n))) for n in sorted({case.members for case in listed})}
    everyone = dist.group.WORLD
    result: list[Timing | None] = []
    for number, case in enumerate(listed):
        desk.report(f"{case.op} of {case.bytes} B among {case.members}")
        if desk.rank < case.members:
            result.append(_time(case, groups[case.members], desk.rank))
        else:
            result.append(None)
        dist.barrier(everyone)
        desk.finished(number + 1)
    return result


def _time(case: Case, group: dist.ProcessGroup, rank: int) -> Timing:
    call = _call(case, group, rank)
    for _ in range(_WARMUP):
        call()
    # What the barriers between the repeats send is measured alone and taken off.
    barrier_bytes = _sent_by(lambda: dist.barrier(group), case.repeats, group)
    begins, ends = [], []

    def timed() -> None:
        dist.barrier(group)
        begins.append(wall_ns())
        call()
        ends.append(wall_ns())

    sent = _sent_by(timed, case.repeats, group) - barrier_bytes
    return Timing(tuple(begins), tuple(ends), sent)


def _sent_by(action: Callable[[], None], repeats: int, group: dist.ProcessGroup) -> float:
    """Bytes that the interface sends for one action, as a mean over repeats."""
    dist.barrier(group)
    before = sent_bytes()
    for _ in range(repeats):
        action()
    dist.barrier(group)
    return (sent_bytes() - before) / repeats


def _call(case: Case, group: dist.ProcessGroup, rank: int) -> Callable[[], None]:
    """The operation on buffers of its own; returns when this rank's part is complete."""
    # Zeros, which stay what they are when they are summed again and again.
    full = torch.zeros(case.bytes // _ELEMENT_BYTES)
    part = torch.ones(len(full) // case.members)
    other = torch.empty_like(full)
    calls: dict[str, Callable[[], None]] = {
        "all_reduce": lambda: dist.all_reduce(full, group=group),
        "all_gather": lambda: dist.all_gather_single(full, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_single(part, full, group=group),
        "all_to_all": lambda: dist.all_to_all_single(other, full, group=group),
        "broadcast": lambda: dist.broadcast(full, src=0, group=group),
        "send": lambda: dist.send(full, 1, group=group) if rank == 0 else dist.recv(full, 0, group=group),
    }
    return calls[case.op]
