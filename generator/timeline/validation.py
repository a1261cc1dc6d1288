"""How right a run and its reconstruction are: matching, replay error, losses, repeatability."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass

from generator.runs.run import Run
from generator.timeline.collectives import Verdict, match_step
from generator.timeline.reconstruct import graph_of, step_wall_ns
from generator.timeline.replay import recorded_durations, replay


@dataclass(frozen=True, slots=True)
class Validation:
    """All of it for one run. Errors and differences are relative, signed where a sign means something."""

    run: str
    #: Recorded duration of each timed step, ns.
    step_ns: tuple[int, ...]
    #: Recorded-mode replay over recorded step, minus one: for each timed step, and without the
    #: edges between ranks.
    replay_error: tuple[float, ...]
    replay_error_alone: tuple[float, ...]
    #: Calls of all recorded steps by verdict.
    verdicts: dict[Verdict, int]
    #: Largest relative difference of a step's loss from the partner's; None without a partner.
    loss_difference: float | None

    @property
    def calls(self) -> int:
        return sum(self.verdicts.values())

    @property
    def matched(self) -> int:
        return self.verdicts.get(Verdict.MATCHED, 0)

    @property
    def median_replay_error(self) -> float:
        return statistics.median(self.replay_error)

    @property
    def median_replay_error_alone(self) -> float:
        return statistics.median(self.replay_error_alone)

    @property
    def spread(self) -> float:
        """(longest − shortest) ÷ median of the timed steps."""
        return (max(self.step_ns) - min(self.step_ns)) / statistics.median(self.step_ns)


def validate(run: Run, partner: Run | None = None) -> Validation:
    """Check a training run against itself and against the partner it shares its losses with."""
    errors, alone = [], []
    walls = tuple(step_wall_ns(run, step) for step in run.manifest.timed_steps)
    for step, wall in zip(run.manifest.timed_steps, walls, strict=True):
        graph = graph_of(run, step)
        durations = recorded_durations(graph)
        errors.append(replay(graph, durations).step_ns / wall - 1)
        apart = graph_of(run, step, cross_rank=False)
        alone.append(replay(apart, durations).step_ns / wall - 1)
    verdicts = Counter(m.verdict for s in run.manifest.steps for m in match_step(run, s.index))
    return Validation(
        run=run.id,
        step_ns=walls,
        replay_error=tuple(errors),
        replay_error_alone=tuple(alone),
        verdicts=dict(verdicts),
        loss_difference=loss_difference(run, partner) if partner else None,
    )


def loss_difference(run: Run, partner: Run) -> float:
    """Largest relative difference of losses, step by step, over the steps that both have."""
    pairs = zip(run.manifest.steps, partner.manifest.steps, strict=False)
    return max(abs(a.loss / b.loss - 1) for a, b in pairs)
