"""From ranks that share one core to ranks with a core each: can one recording predict the other?

Timelines of four and eight ranks on two cores are reconstructions. What they rest on is tested where
it can be measured: two ranks share one core, and a step is predicted as it would be with a core each.
The second recording of the pair is what really happened then.

One setting serves all schemes. It was chosen on recordings of 30 November 2026 that were thrown away,
and written down here before those in the book were made:

* work, waking up from a wait included, takes its thread-CPU time;
* a call takes what the calibrated table says (*as gloo*), and its send needs its receive;
* gloo's threads work on the rank's own core. Their CPU time is recorded for each step; it is spread
  evenly over the time that the rank has transfers under way, and computation beside them is that much
  longer. While a rank waits, it costs nothing;
* a step counts, in either recording, if each rank's computation took at most 5 % more thread-CPU time
  than in its quickest timed step. It is the same work each time: where it took longer, something else
  used the machine.

The third point is the one thing in which this differs from isolated mode with the table: there a device
communicates without taking time from its computation.
"""

from __future__ import annotations

import statistics

import numpy as np
import numpy.typing as npt

from generator.runs.run import I64, Kind, RankTrace, Run
from generator.timeline import intervals
from generator.timeline.graph import Graph, Node
from generator.timeline.intervals import Intervals
from generator.timeline.reconstruct import graph_of, isolated_link, step_wall_ns
from generator.timeline.replay import Schedule, isolated_durations, replay

#: How much longer than in its quickest step a rank may compute in one that counts.
_DISTURBED = 0.05


def predicted_step_ns(run: Run, calibration: Run) -> int:
    """Duration of a step with a core for each rank: the median over a recording's undisturbed steps."""
    link = isolated_link(run, "gloo", calibration)
    predictions = []
    for step in undisturbed_steps(run):
        graph = graph_of(run, step)
        durations = isolated_durations(graph, link)
        for program, lane in zip(graph.programs, graph.lanes, strict=True):
            waits = lane[graph.kind[lane] == Node.WAIT]
            durations[waits] = program.cpu_ns[graph.segment[waits]]
        helpers = [helpers_cpu_ns(trace, step) for trace in run.ranks]
        slowed = beside_helpers(graph, durations, replay(graph, durations), helpers)
        predictions.append(replay(graph, slowed).step_ns)
    return round(statistics.median(predictions))


def measured_steps_ns(run: Run) -> tuple[int, ...]:
    """Recorded durations of a recording's undisturbed steps."""
    return tuple(step_wall_ns(run, step) for step in undisturbed_steps(run))


def undisturbed_steps(run: Run) -> tuple[int, ...]:
    """The timed steps in which every rank computed about as fast as it ever did."""
    steps = run.manifest.timed_steps
    work = np.array([[_work_cpu_ns(trace, step) for step in steps] for trace in run.ranks])
    counts = (work <= (1 + _DISTURBED) * work.min(axis=1, keepdims=True)).all(axis=0)
    # There is always one: the steps in which two ranks were quickest need not be the same.
    if not counts.any():
        counts[np.argmin((work / work.min(axis=1, keepdims=True)).max(axis=0))] = True
    return tuple(step for step, kept in zip(steps, counts.tolist(), strict=True) if kept)


def _work_cpu_ns(trace: RankTrace, step: int) -> int:
    """Thread-CPU time of a rank's step outside of waits, ns."""
    own = trace.step == step
    cpu = np.maximum(trace.cpu_dur_ns, 0)
    return int(cpu[own & (trace.kind == Kind.STEP)].sum() - cpu[own & (trace.kind == Kind.WAIT)].sum())


def helpers_cpu_ns(trace: RankTrace, step: int) -> int:
    """CPU time of a rank's communication threads within a step, ns; 0 where it was not recorded."""
    (found,) = np.flatnonzero((trace.kind == Kind.STEP) & (trace.step == step))
    return max(0, int(trace.helpers_cpu_ns[found]))


def beside_helpers(graph: Graph, durations: I64, schedule: Schedule, helpers_ns: list[int]) -> I64:
    """Durations with work made longer by what the communication threads take from it.

    `schedule` is the one that `durations` give, `helpers_ns` the CPU time of the communication threads
    of each rank. A node grows by the part of that time which falls into its own.
    """
    slowed = durations.copy()
    for program, lane, helpers in zip(graph.programs, graph.lanes, helpers_ns, strict=True):
        calls = np.flatnonzero((graph.kind == Node.DONE) & (graph.rank == program.rank))
        transfers = intervals.union(schedule.begin_ns[calls], schedule.end_ns[calls])
        busy_ns = intervals.length(transfers)
        if not busy_ns:
            continue
        work = lane[graph.kind[lane] == Node.WORK]
        beside = _before(transfers, schedule.end_ns[work]) - _before(transfers, schedule.begin_ns[work])
        slowed[work] += np.rint(beside * min(1.0, helpers / busy_ns)).astype(np.int64)
    return slowed


def _before(of: Intervals, times: I64) -> npt.NDArray[np.int64]:
    """Length of a set of intervals before each of some times, ns."""
    lengths = np.concatenate([[0], np.cumsum(of[:, 1] - of[:, 0])])
    index = np.searchsorted(of[:, 0], times, side="right") - 1
    inside = np.minimum(times, of[np.maximum(index, 0), 1]) - of[np.maximum(index, 0), 0]
    return np.where(index < 0, 0, lengths[np.maximum(index, 0)] + inside)
