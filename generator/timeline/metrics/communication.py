"""How long calls take, what of it is hidden, and who waits for whom.

All of these take the same filters: `rank`, `op`, `phase`, `layer`, `microbatch` and `group`, the last
four as the call was issued. `op='send'` are the messages that a rank sends, `op='recv'` those it gets.
"""

from __future__ import annotations

import numpy as np

from generator.errors import UserError
from generator.timeline import intervals
from generator.timeline.metrics.calls import Members, call_metric
from generator.timeline.metrics.entry import Number
from generator.timeline.metrics.lanes import activity, over_ranks
from generator.timeline.spans import COMPUTATION, RankTimeline, Timeline


@call_metric("ns")
def comm_time(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Time during which a rank has communication under way.

    The union of its collectives (wait and transfer) and of its point-to-point transfers.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(calls.of(r.rank).communicating()))


@call_metric("ns")
def exposed_comm(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Communication with no computation above it.

    The length of (union of communication) minus (union of computation) on a rank. It is what a faster
    link or a better overlap could win at most.
    """

    def exposed(r: RankTimeline) -> int:
        return intervals.length(
            intervals.subtract(calls.of(r.rank).communicating(), activity(r, COMPUTATION))
        )

    return over_ranks(timeline, rank, exposed)


@call_metric("ns")
def exposed_transfer(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Transfers with no computation above them.

    As exposed communication, but without the time spent waiting for other members to arrive.
    """

    def exposed(r: RankTimeline) -> int:
        return intervals.length(intervals.subtract(calls.of(r.rank).moving(), activity(r, COMPUTATION)))

    return over_ranks(timeline, rank, exposed)


@call_metric("")
def overlap(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Share of the communication that runs under computation.

    |communication ∩ computation| ÷ |communication| on a rank, both as unions. Undefined, and an error,
    for a rank that does not communicate.
    """

    def share(r: RankTimeline) -> Number:
        found = calls.of(r.rank).communicating()
        if not len(found):
            raise UserError(
                f"rank {r.rank} of '{timeline.run}' has no such communication, so it has no overlap",
                remedy="Ask another run, or with other filters.",
            )
        hidden = intervals.intersect(found, activity(r, COMPUTATION))
        return intervals.length(hidden) / intervals.length(found)

    return over_ranks(timeline, rank, share)


@call_metric("ns")
def wait(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Time in collectives before the last member has arrived.

    From a rank's own arrival to the last arrival, as a union over its collectives. The rank that all
    wait for has none. Point-to-point calls have no wait: there the receiver is idle.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(calls.of(r.rank).waiting()))


@call_metric("ns")
def transfer(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Time in calls after everybody has arrived.

    From the last arrival to the end, as a union over a rank's collectives, and the transfers of its
    sends and receives. A call that queues behind another one counts from its own last arrival.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(calls.of(r.rank).moving()))


@call_metric("ns")
def lateness(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """Time in which others stand in a collective that a rank has not come to yet.

    From the first arrival to a rank's own, as a union over its collectives: the other side of `wait`. The
    late rank has much of it and waits little, and its own bars are the shortest. What it costs is less,
    where others would have waited anyway.
    """
    return over_ranks(timeline, rank, lambda r: intervals.length(calls.of(r.rank).missed()))


@call_metric("", of_a_run=False)
def late_rank(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """The rank that others stand waiting for longest.

    The one with the largest `lateness`; of several, the first. With `rank`, among the collectives that
    this rank takes part in.
    """
    found = calls.collectives()
    if rank is not None:
        found = found.where(np.isin(found.call, found.of(rank).distinct()))
    if not len(found):
        raise UserError(
            f"the run '{timeline.run}' has no such collective, so nobody is late", remedy="Ask another run."
        )
    late = [intervals.length(found.of(r.rank).missed()) for r in timeline.ranks]
    return late.index(max(late))


@call_metric("ns", of_a_run=False)
def longest_call(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """The longest bar of a call.

    From a rank's arrival (of a message: from the begin of its transfer) to its end. Without `rank` of all
    ranks. Who shows the longest bar of a collective came first: the late one shows the shortest.
    """
    return int(_bars(timeline, calls, rank).max())


@call_metric("ns", of_a_run=False)
def shortest_call(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """The shortest bar of a call.

    From a rank's arrival (of a message: from the begin of its transfer) to its end. Without `rank` of all
    ranks. Of a collective it is next to no wait, and so close to the transfer alone.
    """
    return int(_bars(timeline, calls, rank).min())


@call_metric("ns", of_a_run=False)
def call_begin(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """When a rank's first call begins, from the step's begin on.

    Its arrival at a collective, or the begin of a message's transfer. Without `rank` the mean over the
    ranks that have such a call.
    """
    starts = [int(c.bar_ns.min()) for c in _by_rank(timeline, calls, rank)]
    return starts[0] if rank is not None else float(np.mean(starts))


@call_metric("ns", of_a_run=False)
def call_end(timeline: Timeline, calls: Members, rank: int | None) -> Number:
    """When a rank's last call ends, from the step's begin on.

    Without `rank` the mean over the ranks that have such a call.
    """
    ends = [int(c.end_ns.max()) for c in _by_rank(timeline, calls, rank)]
    return ends[0] if rank is not None else float(np.mean(ends))


def _bars(timeline: Timeline, calls: Members, rank: int | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found = _some(timeline, calls.of(rank), rank)
    return found.end_ns - found.bar_ns


def _by_rank(timeline: Timeline, calls: Members, rank: int | None) -> list[Members]:
    found = _some(timeline, calls.of(rank), rank)
    return [found.of(r) for r in np.unique(found.rank).tolist()]


def _some(timeline: Timeline, found: Members, rank: int | None) -> Members:
    if not len(found):
        whose = "no rank" if rank is None else f"rank {rank} in no way"
        raise UserError(
            f"in the run '{timeline.run}' {whose} takes part in such a call",
            remedy="Ask for calls that the run has.",
        )
    return found
