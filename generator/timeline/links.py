"""What a call costs on a link: two models made from a calibration run.

*As gloo* looks the call up in the table that was measured on the link (interpolated in bytes), so it
has gloo's own algorithms and overheads. *Ring* takes the steps and the wire bytes of the standard
algorithm over the measured rate, so a reduce-scatter costs what it would on a cluster although gloo
sends an all-reduce's bytes for it.

Both price a call by its operation, its payload, its members and the nodes that they are spread over.
Where each rank is a node of its own, `nodes` is 0. Where R ranks share a node's interface:

* A group inside one node uses the node's own, fast path.
* A group that has k ranks in each of its nodes crosses between nodes. R/k groups like it share the
  interface, and in the schemes that have such groups they all call at the same time (the ranks of a
  node run in lockstep), so each gets k/R of the interface's rate. Its ring visits node after node: in
  each step one of a node's k ranks sends over the interface, and the step takes as long as that hop.
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

    @property
    def ranks_per_node(self) -> int:
        """Ranks that share an interface; how ranks are spread over nodes follows from it."""
        ...

    def duration_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> int:
        """From the last arrival to the end, ns; `payload_bytes` is the full tensor."""
        ...

    def parts_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> tuple[int, int]:
        """The same in two parts that add up to it: latency, and transfer, which the rate decides."""
        ...


@dataclass(frozen=True, slots=True)
class FreeLink:
    """Communication that costs nothing: a link model for what-ifs and for closed forms."""

    name: str = "free"
    ranks_per_node: int = 1

    def duration_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> int:
        return 0

    def parts_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> tuple[int, int]:
        return 0, 0


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


def crossing_share(op: str, members: int, nodes: int) -> float:
    """What a group sends over one node's interface, as a share of the payload.

    A ring (and a chain) crosses each boundary between nodes once a step, with what one rank sends. In an
    all-to-all each of a node's k ranks sends its parts for the n − k ranks elsewhere: k(n − k)/n.
    """
    if op == "all_to_all":
        inside = members // nodes
        return inside * (members - inside) / members
    return ring_cost(op, members)[1]


@dataclass(frozen=True, slots=True)
class RingLink:
    """Latency per step and rate of one node's interface, with the ring's steps and bytes."""

    latency_ns: float
    #: Bytes per ns, that is, GB/s.
    bytes_per_ns: float
    name: str = "ring"
    ranks_per_node: int = 1
    #: Of the path between two ranks of one node; 0 where no two share one.
    inner_latency_ns: float = 0.0
    inner_bytes_per_ns: float = 0.0

    def duration_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> int:
        return sum(self.parts_ns(op, payload_bytes, members, nodes))

    def parts_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> tuple[int, int]:
        """The latency of all steps, and the bytes over the rate. Their sum is rounded, not each."""
        steps, share = ring_cost(op, members)
        latency_ns, rate = self.latency_ns, self.bytes_per_ns
        if nodes == 1 and members > 1:
            latency_ns, rate = self.inner_latency_ns, self.inner_bytes_per_ns
        elif nodes > 1:
            share = crossing_share(op, members, nodes)
            rate *= members / nodes / self.ranks_per_node
        latency = round(steps * latency_ns)
        return latency, round(steps * latency_ns + share * payload_bytes / rate) - latency


@dataclass(frozen=True, slots=True)
class TableLink:
    """The calibration's table: (operation, members, nodes) to sizes and measured durations."""

    rows: dict[tuple[str, int, int], tuple[tuple[int, int], ...]]
    name: str = "gloo"
    ranks_per_node: int = 1

    def duration_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> int:
        if members < 2:
            return 0
        table = self.rows.get((op, members, nodes))
        if table is None:
            where = f" over {nodes} node{'s' if nodes > 1 else ''}" if nodes else ""
            raise UserError(
                f"the calibration has no {op} of {members} ranks{where}",
                remedy="Record the calibration again with this operation.",
            )
        sizes, times = np.array(table, np.float64).T
        if payload_bytes >= sizes[-1]:
            # Beyond the table the rate of its last two sizes goes on.
            slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
            return round(float(times[-1] + slope * (payload_bytes - sizes[-1])))
        return round(float(np.interp(payload_bytes, sizes, times)))

    def parts_ns(self, op: str, payload_bytes: int, members: int, nodes: int = 0) -> tuple[int, int]:
        """As latency what the smallest size of the table took, and as transfer what is above it."""
        whole = self.duration_ns(op, payload_bytes, members, nodes)
        table = self.rows.get((op, members, nodes))
        latency = min(whole, table[0][1]) if table else 0
        return latency, whole - latency


def table_link(calibration: Run) -> TableLink:
    """The link model *as gloo*."""
    rows: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in calibration.manifest.table:
        rows[row.op, row.members, row.nodes].append((row.bytes, row.median_ns))
    return TableLink(
        {key: tuple(sorted(table)) for key, table in rows.items()},
        ranks_per_node=calibration.manifest.link.ranks_per_node,
    )


def ring_link(calibration: Run) -> RingLink:
    """The link model *ring*: latency from the small sends, rate from the two largest.

    The first bytes of a token bucket pass free, so a line through all sizes fits badly. Sends of up
    to half the bucket show latency alone; the difference of two large ones shows the rate alone. Sends
    between nodes are measured while all ranks of both nodes send: one has its part of the interface.
    """
    link = calibration.manifest.link
    per_node = link.ranks_per_node
    latency_ns, rate = _latency_and_rate(calibration, 2 if per_node > 1 else 0, link.burst_bytes)
    inner_latency_ns, inner_rate = _latency_and_rate(calibration, 1, 0) if per_node > 1 else (0.0, 0.0)
    return RingLink(
        latency_ns=latency_ns,
        bytes_per_ns=rate * per_node,
        ranks_per_node=per_node,
        inner_latency_ns=inner_latency_ns,
        inner_bytes_per_ns=inner_rate,
    )


def _latency_and_rate(calibration: Run, nodes: int, burst_bytes: int) -> tuple[float, float]:
    """Latency in ns and bytes per ns of a send between two ranks on so many nodes."""
    table = calibration.manifest.table
    sends = sorted((r.bytes, r.median_ns) for r in table if r.op == "send" and r.nodes == nodes)
    free = max(burst_bytes // 2, sends[0][0] if sends else 0)
    small = [ns for size, ns in sends if size <= free]
    large = [row for row in sends if row[0] > free]
    if not small or len(large) < 2:
        raise UserError(
            "the calibration needs a small and two large sizes of send",
            path=calibration.folder / FILE_NAME,
            remedy="Record it again.",
        )
    latency_ns = statistics.median(small)
    (big, big_ns), (bigger, bigger_ns) = large[-2:]
    if not burst_bytes:
        # Nothing passes free, and the fast path inside a node is too quick for differences to be exact.
        return latency_ns, bigger / (bigger_ns - latency_ns)
    return latency_ns, (bigger - big) / (bigger_ns - big_ns)


def link_model(name: str, calibration: Run | None) -> LinkModel:
    """The link model of a name ("ring", "gloo", "free"). A run without a link needs no calibration."""
    if name == "free" or calibration is None:
        return FreeLink()
    if name == "ring":
        return ring_link(calibration)
    if name == "gloo":
        return table_link(calibration)
    raise UserError(f"there is no link model '{name}'", remedy="Known: free, gloo, ring.")
