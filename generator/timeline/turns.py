"""When each call of a rank really has the link."""

from __future__ import annotations

from generator.timeline.spans import Timeline


def turns(timeline: Timeline, rank: int) -> dict[int, tuple[int, int]]:
    """Begin and end of each call's turn on a rank, ns, by its index in the timeline's calls.

    Collectives of one group run one after the other. One that has all its members while the one before
    is still running is in transfer by definition, but its turn comes only then.
    """
    mine = [
        (m.end_ns, m.begin_ns, i, c)
        for i, c in enumerate(timeline.calls)
        for m in c.members
        if m.rank == rank
    ]
    free: dict[str, int] = {}
    found = {}
    for end, begin, index, call in sorted(mine, key=lambda part: part[:3]):
        found[index] = (begin if call.point_to_point else max(begin, free.get(call.group, 0)), end)
        free[call.group] = end
    return found
