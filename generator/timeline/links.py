"""What a call costs on a link: two models made from a calibration run.

*As gloo* looks the call up in the table that was measured on the link (interpolated in bytes), so it
has gloo's own algorithms and overheads. *Ring* takes the steps and the wire bytes of the standard
algorithm over the measured rate, so a reduce-scatter costs what it would on a cluster although gloo
sends an all-reduce's bytes for it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from generator.errors import UserError
from generator.runs.manifest import FILE_NAME
from generator.runs.run import Run


class LinkModel(Protocol):
    """Anything that can price a call."""

    @property
    def name(self) -> str: ...

    def duration_ns(self, op: str, payload_bytes: int, members: int) -> int:
        """From the last arrival to the end, ns; `payload_bytes` is the full tensor."""
        ...


@dataclass(frozen=True, slots=True)
class FreeLink:
    """Communication that costs nothing: a link model for what-ifs and for closed forms."""

    name: str = "free"

    def duration_ns(self, op: str, payload_bytes: int, members: int) -> int:
        return 0


#: Steps and wire bytes (as a share of the payload) a rank sends, of n members: ring for all-reduce,
#: all-gather and reduce-scatter (Patarasuk & Yuan 2009), pairwise all-to-all, a pipelined chain for
#: broadcast, one message for a send. Derived and simulated exactly for n = 2, 3, 4 and 8.
def ring_cost(op: str, members: int) -> tuple[int, float]:
    n = members
    if n < 2:
        return 0, 0.0
    share = (n - 1) / n
    costs = {
        "all_reduce": (2 * (n - 1), 2 * share),
        "all_gather": (n - 1, share),
        "reduce_scatter": (n - 1, share),
        "all_to_all": (n - 1, share),
        "broadcast": (n - 1, 1.0),
        "barrier": (n - 1, 0.0),
        "send": (1, 1.0),
    }
    if op not in costs:
        raise UserError(
            f"no cost is known for the operation '{op}'", remedy="Known: " + ", ".join(sorted(costs)) + "."
        )
    return costs[op]


@dataclass(frozen=True, slots=True)
class RingLink:
    """Latency per step and rate of one rank's interface, with the ring's steps and bytes."""

    latency_ns: float
    #: Bytes per ns, that is, GB/s.
    bytes_per_ns: float
    name: str = "ring"

    def duration_ns(self, op: str, payload_bytes: int, members: int) -> int:
        steps, share = ring_cost(op, members)
        return round(steps * self.latency_ns + share * payload_bytes / self.bytes_per_ns)


@dataclass(frozen=True, slots=True)
class TableLink:
    """The calibration's table: (operation, members) to sizes and measured durations."""

    rows: dict[tuple[str, int], tuple[tuple[int, int], ...]]
    name: str = "gloo"

    def duration_ns(self, op: str, payload_bytes: int, members: int) -> int:
        if members < 2:
            return 0
        table = self.rows.get((op, members))
        if table is None:
            raise UserError(
                f"the calibration has no {op} of {members} ranks",
                remedy="Record the calibration again with this operation.",
            )
        sizes, times = np.array(table, np.float64).T
        if payload_bytes >= sizes[-1]:
            # Beyond the table the rate of its last two sizes goes on.
            slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
            return round(float(times[-1] + slope * (payload_bytes - sizes[-1])))
        return round(float(np.interp(payload_bytes, sizes, times)))


def table_link(calibration: Run) -> TableLink:
    """The link model *as gloo*."""
    rows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in calibration.manifest.table:
        rows[row.op, row.members].append((row.bytes, row.median_ns))
    return TableLink({key: tuple(sorted(table)) for key, table in rows.items()})


def ring_link(calibration: Run) -> RingLink:
    """The link model *ring*: latency from the small sends, rate from the two largest.

    The first bytes of a token bucket pass free, so a line through all sizes fits badly. Sends of up
    to half the bucket show latency alone; the difference of two large ones shows the rate alone.
    """
    sends = sorted((r.bytes, r.median_ns) for r in calibration.manifest.table if r.op == "send")
    free = max(calibration.manifest.link.burst_bytes // 2, sends[0][0] if sends else 0)
    small = [ns for size, ns in sends if size <= free]
    large = [row for row in sends if row[0] > free]
    if not small or len(large) < 2:
        raise UserError(
            "the calibration needs a small and two large sizes of send",
            path=calibration.folder / FILE_NAME,
            remedy="Record it again.",
        )
    (big, big_ns), (bigger, bigger_ns) = large[-2:]
    return RingLink(latency_ns=statistics.median(small), bytes_per_ns=(bigger - big) / (bigger_ns - big_ns))


def link_model(name: str, calibration: Run | None) -> LinkModel:
    """The link model of a name ("ring", "gloo", "free"). A run without a link needs no calibration."""
    if name == "free" or calibration is None:
        return FreeLink()
    if name == "ring":
        return ring_link(calibration)
    if name == "gloo":
        return table_link(calibration)
    raise UserError(f"there is no link model '{name}'", remedy="Known: free, gloo, ring.")
