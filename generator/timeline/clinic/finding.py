"""What the clinic finds, and what its parts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.errors import UserError
from generator.runs.manifest import nodes_of
from generator.runs.run import I64, Run
from generator.timeline.collectives import Match
from generator.timeline.graph import Graph
from generator.timeline.links import TableLink
from generator.timeline.replay import replay

#: Least share of the step that a finding costs. What is missing or mismatched is told whatever it costs.
WORTH = 0.02
#: Calls that a finding names, the worst first.
NAMED = 5

#: What calls have in common that should take equally long: operation, bytes, members and their nodes.
Like = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Where:
    """A call that a finding is seen at."""

    step: int
    op: str
    group: str
    ranks: tuple[int, ...]
    seq: int
    phase: str
    layer: int
    microbatch: int
    #: By how much the late rank came after the next to last, or the call took longer than its likes, ns.
    ns: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes the step longer than it need be."""

    #: "late rank", "slow link", "missing call" or "mismatched call".
    kind: str
    #: Who is late; whom the link joins; who did not come, or came with something else.
    ranks: tuple[int, ...]
    #: Name of the group, empty for a late rank.
    group: str
    #: At most NAMED, the worst first, and how many there are.
    calls: tuple[Where, ...]
    count: int
    #: What the step would be shorter without it, and the step as it is, ns.
    cost_ns: int
    step_ns: int
    #: What it is told from, a sentence each.
    evidence: tuple[str, ...]


def worth(finding: Finding) -> bool:
    """Whether a finding costs enough to be told."""
    return finding.cost_ns >= WORTH * finding.step_ns


def step_ns(graph: Graph, durations: I64) -> int:
    """How long the step is when its nodes take so long."""
    return replay(graph, durations).step_ns


def where(step: int, match: Match, ns: int) -> Where:
    """A call as a finding names it, with the labels of its first member."""
    first = match.members[0]
    return Where(
        step, match.op, match.group, match.expected, first.seq, first.phase, first.layer, first.microbatch, ns
    )


def worst(calls: Sequence[Where]) -> tuple[Where, ...]:
    """The calls that a finding names."""
    return tuple(sorted(calls, key=lambda w: -w.ns)[:NAMED])


def ms(ns: float) -> str:
    """A time as the evidence says it."""
    return f"{ns / 1e6:.1f} ms"


def like_of(run: Run, match: Match) -> Like:
    """What a call shares with those that should take as long."""
    return (
        match.op,
        match.bytes,
        len(match.expected),
        nodes_of(match.expected, run.manifest.link.ranks_per_node),
    )


def modelled_ns(link: TableLink | None, like: Like) -> int:
    """What the calibrated link says that such calls take, 0 where it says nothing."""
    try:
        return link.duration_ns(*like) if link else 0
    except UserError:
        return 0


def listed(ranks: Sequence[int]) -> str:
    """Ranks as the evidence says them."""
    return ", ".join(str(r) for r in ranks)
