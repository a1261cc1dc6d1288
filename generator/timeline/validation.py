"""How right a run and its reconstruction are: matching, replay error, losses, repeatability."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from generator.errors import UserError
from generator.runs.manifest import FILE_NAME, Manifest, read_manifest
from generator.runs.reader import read_run, run_ids
from generator.runs.run import MISSING, Run
from generator.timeline.collectives import Verdict, arrivals, match, match_step
from generator.timeline.graph import Graph, Node
from generator.timeline.reconstruct import graph_of, representative_step, step_wall_ns
from generator.timeline.replay import recorded_schedule, replay

#: What `verify` lets pass: relative differences of losses, and of a replayed step's duration, for each
#: run and in the median of runs.
LOSS_TOLERANCE = 1e-6
REPLAY_TOLERANCE = 0.05
REPLAY_MEDIAN_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class Validation:
    """All of it for one run. Errors and differences are relative, signed where a sign means something."""

    run: str
    #: Recorded duration of every step, in the manifest's order, and of each timed one, ns.
    all_steps_ns: tuple[int, ...]
    step_ns: tuple[int, ...]
    #: Recorded-mode replay over recorded step, minus one: for each timed step, and without the
    #: edges between ranks.
    replay_error: tuple[float, ...]
    replay_error_alone: tuple[float, ...]
    #: Of each timed step: how far that replay moves the end of a call from where it was recorded, at
    #: most, ns.
    moved_ns: tuple[int, ...]
    #: Calls of all recorded steps by verdict, and how many of them ended before they could have.
    verdicts: dict[Verdict, int]
    early: int
    #: Of the representative step's calls: how many have the same members without sequence numbers.
    unnumbered: int
    unnumbered_of: int
    #: Largest relative difference of a step's loss from the partner's; None without a partner.
    loss_difference: float | None

    @property
    def calls(self) -> int:
        return sum(self.verdicts.values())

    @property
    def matched(self) -> int:
        return self.verdicts.get(Verdict.MATCHED, 0)

    @property
    def largest_move_ns(self) -> int:
        return max(self.moved_ns)

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


def validate(run: Run, partner: Run | Manifest | None = None) -> Validation:
    """Check a training run against itself and against the partner it shares its losses with."""
    errors, alone, moved = [], [], []
    walls = tuple(step_wall_ns(run, step) for step in run.manifest.timed_steps)
    for step, wall in zip(run.manifest.timed_steps, walls, strict=True):
        graph = graph_of(run, step)
        recorded = recorded_schedule(graph)
        durations = recorded.end_ns - recorded.begin_ns
        laid = replay(graph, durations)
        errors.append(laid.step_ns / wall - 1)
        ends = graph.kind == Node.DONE
        moved.append(int(np.abs(laid.end_ns - recorded.end_ns)[ends].max(initial=0)))
        alone.append(replay(apart(graph), durations).step_ns / wall - 1)
    matches = [m for s in run.manifest.steps for m in match_step(run, s.index)]
    same, of = _unnumbered(run)
    return Validation(
        run=run.id,
        all_steps_ns=tuple(step_wall_ns(run, s.index) for s in run.manifest.steps),
        step_ns=walls,
        replay_error=tuple(errors),
        replay_error_alone=tuple(alone),
        moved_ns=tuple(moved),
        verdicts=dict(Counter(m.verdict for m in matches)),
        early=sum(bool(m.early) for m in matches),
        unnumbered=same,
        unnumbered_of=of,
        loss_difference=loss_difference(run, partner) if partner else None,
    )


def apart(graph: Graph) -> Graph:
    """The same graph without its edges between ranks, as it would be built without them."""
    node = np.repeat(np.arange(len(graph)), np.diff(graph.first))
    own = graph.rank[graph.predecessors] == graph.rank[node]
    left = np.concatenate([[0], np.cumsum(np.bincount(node[own], minlength=len(graph)))])
    return replace(graph, first=left, predecessors=graph.predecessors[own])


def _unnumbered(run: Run) -> tuple[int, int]:
    """How many of a step's calls are found with the same members where no call has a number, of how many.

    Traces of others may lack them; ours tell whether order, operation, bytes, dtype and times suffice.
    """
    step = representative_step(run)
    calls = [replace(a, seq=MISSING) for trace in run.ranks for a in arrivals(trace, step)]
    told, found = (
        {frozenset((a.rank, a.call) for a in m.members) for m in matches}
        for matches in (match_step(run, step), match(calls))
    )
    return len(told & found), len(told)


def loss_difference(run: Run, partner: Run | Manifest) -> float:
    """Largest relative difference of losses, step by step, over the steps that both have."""
    steps = partner.steps if isinstance(partner, Manifest) else partner.manifest.steps
    losses = {s.index: s.loss for s in steps}
    return max(abs(s.loss / losses[s.index] - 1) for s in run.manifest.steps if s.index in losses)


# ---- all runs of a folder


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """What was checked of one run; None where it does not apply (a calibration trains nothing)."""

    run: str
    ranks: int
    validation: Validation | None
    problems: tuple[UserError, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """What was checked of a folder of runs."""

    runs: tuple[VerifiedRun, ...]
    #: All of the runs', and those of the folder as a whole.
    problems: tuple[UserError, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """A table: run, ranks, calls matched, loss difference, replay error, verdict."""
        return [_row(r) for r in self.runs]


def verify(folder: Path) -> Verified:
    """Check every run of a folder: files, matching, losses, replay. What is wrong is in the result."""
    found: list[VerifiedRun] = []
    ids = run_ids(folder)
    losses = {name: manifest for name in ids if (manifest := _manifest(folder / name))}
    for name in ids:
        try:
            run = read_run(folder / name)
            found.append(_verify_run(run, losses))
        except UserError as error:
            found.append(VerifiedRun(name, 0, None, (error,)))
    problems = [p for r in found for p in r.problems]
    errors = [abs(r.validation.median_replay_error) for r in found if r.validation]
    if errors and statistics.median(errors) > REPLAY_MEDIAN_TOLERANCE:
        problems.append(
            UserError(
                f"replay is off by {statistics.median(errors):.1%} in the median of runs, more than "
                f"{REPLAY_MEDIAN_TOLERANCE:.0%}",
                path=folder,
                remedy="Record them on a quieter machine.",
            )
        )
    if not ids:
        problems.append(
            UserError("there are no runs", path=folder, remedy="Record some with 'shardbook record'.")
        )
    return Verified(tuple(found), tuple(problems))


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder / FILE_NAME)
    except UserError:
        return None


def _verify_run(run: Run, known: Mapping[str, Manifest]) -> VerifiedRun:
    manifest, path = run.manifest, run.folder / FILE_NAME
    problems: list[UserError] = []

    def problem(what: str, remedy: str = "Record it again.") -> None:
        problems.append(UserError(what, path=path, remedy=remedy))

    if not manifest.timed_steps:
        if not manifest.table:
            problem("it has neither steps nor a table")
        return VerifiedRun(run.id, len(run.ranks), None, tuple(problems))
    calibration = manifest.link.calibration
    if calibration and calibration not in known:
        problem(f"its calibration '{calibration}' is not there", f"Record '{calibration}'.")
    partner = known.get(manifest.partner)
    if manifest.partner and partner is None:
        problem(f"its partner '{manifest.partner}' is not there", f"Record '{manifest.partner}'.")
    checked = validate(run, partner)
    for verdict, count in checked.verdicts.items():
        if verdict is not Verdict.MATCHED:
            problem(f"{count} of {checked.calls} calls are not matched: {verdict.value}")
    if checked.early:
        problem(
            f"{checked.early} of {checked.calls} calls ended before their last member had arrived",
            "The clocks of its ranks disagree; record it again.",
        )
    if checked.loss_difference is not None and not checked.loss_difference <= LOSS_TOLERANCE:
        problem(
            f"its losses differ from those of '{manifest.partner}' by up to "
            f"{checked.loss_difference:.1e}, more than {LOSS_TOLERANCE:.0e}",
            "Its scheme does other work; mend it and record it again.",
        )
    if abs(checked.median_replay_error) > REPLAY_TOLERANCE:
        problem(
            f"replayed as recorded its step is off by {checked.median_replay_error:+.1%}, more "
            f"than {REPLAY_TOLERANCE:.0%}"
        )
    return VerifiedRun(run.id, len(run.ranks), checked, tuple(problems))


def _row(verified: VerifiedRun) -> tuple[str, ...]:
    ok = "failed" if verified.problems else "ok"
    checked, ranks = verified.validation, str(verified.ranks or "")
    if checked is None:
        return (verified.run, ranks, "", "", "", ok)
    matched = f"{checked.matched} of {checked.calls}" if checked.calls else "no calls"
    loss = "" if checked.loss_difference is None else f"{checked.loss_difference:.1e}"
    return (verified.run, ranks, matched, loss, f"{checked.median_replay_error:+.2%}", ok)
