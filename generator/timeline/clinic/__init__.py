"""The clinic: who is late, which link is slow, which call is missing, and what each of them costs.

`diagnose` looks for three things and prices each by a what-if: the step as it is, less the step without it.
Waits are not summed: a wait that hides under work costs nothing, and one rank's lateness is waited for by
all others.

* **Late rank.** In every timed step its work takes longer than that of its peers by LATE_WORK (isolated: by
  that of thread-CPU time; recorded: by more, as ranks that share a core take turns). Peers are the ranks
  that have the same layers: each phase, layer and micro-batch is held against their median. Where no other
  rank has the same layers, as in a pipeline, forward and backward are held against the other ranks' median
  *per layer*, without embedding and head; host time and the optimizer are not compared there, so a stage
  that stalls outside of its micro-batches is not found. Nor is a rank that is late in some steps only. The
  cost is of that work taking what it takes the peers.
* **Slow link.** Between some ranks the same calls (operation, bytes, members) take SLOW_ELSEWHERE times as
  long as in the median of the other places that have such calls, or SLOW_BY_MODEL times what the calibrated
  link says, and SLOW_BY_NS more: a thread that shares its core may be run that late. Only recorded
  durations show it, and only of calls whose completion was seen: reported, or by a thread that waited for
  them from their begin. The cost is of these calls taking no longer than there.
* **Missing or mismatched call**, from the verdicts of matching, in any step. The cost is of the call taking
  no longer than its likes do; nothing where the trace shows no end of it.

What costs less than WORTH of the step is no finding. Of several late ranks that all are waited for at the
same calls, none costs anything alone: then they are one finding.
"""

from __future__ import annotations

from generator.runs.run import Run
from generator.timeline.clinic.faulty_call import MISMATCHED_CALL, MISSING_CALL, faulty_calls
from generator.timeline.clinic.finding import Finding, Where
from generator.timeline.clinic.late_rank import LATE_RANK, late_ranks
from generator.timeline.clinic.slow_link import SLOW_LINK, slow_links
from generator.timeline.links import table_link
from generator.timeline.whatif import replayable

__all__ = ["LATE_RANK", "MISMATCHED_CALL", "MISSING_CALL", "SLOW_LINK", "Finding", "Where", "diagnose"]


def diagnose(
    run: Run, *, mode: str = "recorded", link_model: str = "ring", calibration: Run | None = None
) -> tuple[Finding, ...]:
    """What is wrong with a run, the dearest first; nothing if all is well.

    `mode` says which durations are looked at: as recorded, or isolated, where calls take what the link
    model says. `calibration` is needed for isolated mode and helps to judge links. Raises UserError.
    """
    step = replayable(run, mode=mode, link_model=link_model, calibration=calibration)
    link = table_link(calibration) if calibration else None
    found = [*late_ranks(step), *faulty_calls(step, link)]
    if mode == "recorded":
        found += slow_links(step, link)
    return tuple(sorted(found, key=lambda f: (-f.cost_ns, f.kind, f.ranks, f.group)))
