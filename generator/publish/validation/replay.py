"""Steps laid out again: as they were recorded, on devices of their own, and with a core for each rank."""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Sequence

from markupsafe import Markup

from generator.publish import markdown, show
from generator.publish.figures import dots
from generator.publish.figures.dots import Axis, Dot
from generator.publish.library import Library
from generator.publish.urls import run_url
from generator.publish.validation.model import (
    CoresSection,
    DotFigure,
    IsolatedSection,
    PlotRow,
    PlotTable,
    ReplaySection,
)
from generator.publish.validation.shown import (
    RECONSTRUCTED,
    RECORDED,
    axis_ms,
    axis_percent,
    ledger,
    prose,
    range_words,
    runs,
    signed,
    strip_line,
)
from generator.runs.manifest import Manifest
from generator.timeline import sharing
from generator.timeline.corecheck import CORE_TOLERANCE, CoreCheck
from generator.timeline.validation import REPLAY_TOLERANCE, Validation

#: Below this a call counts as not moved, ns: a recording's times are in µs with three decimals.
_STILL_NS = 1000

# ---- replay of recorded durations


def replay_section(library: Library) -> ReplaySection | None:
    found = [(m, library.validation(m.id)) for m in library.with_steps]
    if not found:
        return None
    joined = [Dot(v.median_replay_error, v.run, RECONSTRUCTED) for _, v in found]
    apart = [Dot(v.median_replay_error_alone, v.run, RECONSTRUCTED) for _, v in found if v.calls]
    axis = dots.linear(
        [*(d.value for d in joined + apart), -REPLAY_TOLERANCE, REPLAY_TOLERANCE], axis_percent
    )  # fmt: skip
    band = (-REPLAY_TOLERANCE, REPLAY_TOLERANCE)
    lines = [
        strip_line("As it is", "all edges", axis, joined, range_words("Error of the replayed step", joined),
                   band=band)
    ]  # fmt: skip
    if apart:
        lines.append(strip_line(
            "No rank waits", "without the edges between ranks", axis, apart,
            range_words("Error without the edges between ranks", apart), band=band,
        ))  # fmt: skip
    error = DotFigure(
        title="Replayed step against recorded step",
        note="a dot a run, median of its timed steps; shaded: what is promised",
        labels=(RECONSTRUCTED,),
        lines=tuple(lines),
        axis=Markup(dots.axis_picture(axis)),
        ledger=ledger(
            "Replay with recorded durations",
            ("ranks", "recorded step, ms", "error", "error without edges between ranks",
             "largest move of a call, ms"),
            [(m.id, _replay_cells(m, v)) for m, v in found],
        ),
    )  # fmt: skip
    return ReplaySection(error, *_moved([v for _, v in found if v.calls]))


def _replay_cells(manifest: Manifest, found: Validation) -> tuple[str, ...]:
    return (
        str(manifest.world_size),
        show.milliseconds(statistics.median(found.step_ns)),
        show.percent(found.median_replay_error, 2),
        show.percent(found.median_replay_error_alone, 1) if found.calls else "–",
        show.number(found.largest_move_ns / 1e6, 2) if found.calls else "–",
    )


def _moved(found: Sequence[Validation]) -> tuple[DotFigure | None, str]:
    """How far a replay moves a single call: the figure, and which runs stand out."""
    if not found:
        return None, ""
    moved = [Dot(v.largest_move_ns / 1e6, v.run, RECONSTRUCTED) for v in found]
    axis = dots.linear([0.0, *(d.value for d in moved)], axis_ms)
    figure = DotFigure(
        title="Largest move of a call’s end",
        note="a dot a run, of all calls of all timed steps",
        labels=(RECONSTRUCTED,),
        lines=(strip_line("Replay", "against recording", axis, moved, _range_words_ms(moved)),),
        axis=Markup(dots.axis_picture(axis)),
    )
    still = sum(v.largest_move_ns <= _STILL_NS for v in found)
    far = sorted((v for v in found if v.largest_move_ns > _STILL_NS), key=lambda v: -v.largest_move_ns)
    words = f"In {show.integer(still)} of {runs(len(found))} no call ends elsewhere than it was recorded."
    if far:
        named = " and ".join(f"{show.time(v.largest_move_ns)} in {v.run}" for v in far[:2])
        words += (
            f" In the others some do, by up to {named}: there calls of one group were not complete in the "
            "order in which they were issued, and in the graph a group is a queue."
        )
    return figure, prose(words)


def _range_words_ms(found: Sequence[Dot]) -> str:
    most = show.number(max(d.value for d in found), 1)
    return f"Largest move of a call, {runs(len(found))}: up to {most} ms"


# ---- isolated mode beside the recorded wall


def isolated_section(library: Library) -> IsolatedSection | None:
    found = [_Isolated(library, m) for m in library.with_steps]
    if not found:
        return None
    groups: dict[str, list[_Isolated]] = {}
    for run in sorted(found, key=lambda r: (r.manifest.machine.ranks_per_core, r.manifest.world_size)):
        groups.setdefault(_cores_words(run.manifest), []).append(run)
    axis = dots.linear([1.0, *(r.ratio for r in found)], _times)
    lines = []
    for name, members in groups.items():
        ratios = [r.ratio for r in members]
        median = _times(statistics.median(ratios), 2)
        title = f"{name}, {runs(len(ratios))}: recorded over isolated step, median {median}"
        marks = [Dot(r.ratio, r.manifest.id, RECONSTRUCTED) for r in members]
        lines.append(strip_line(name, f"median {median}", axis, marks, title))
    figure = DotFigure(
        title="Recorded step over isolated step",
        note="a dot a run, its representative step",
        labels=(RECORDED, RECONSTRUCTED),
        lines=tuple(lines),
        axis=Markup(dots.axis_picture(axis)),
    )
    table = _isolated_table([run for members in groups.values() for run in members])
    return IsolatedSection(figure, table, _unshared_words(found))


class _Isolated:
    """A run's representative step in both modes."""

    def __init__(self, library: Library, manifest: Manifest) -> None:
        self.manifest = manifest
        self.recorded_ns, self.isolated_ns = (
            library.timeline(manifest.id, mode).step_ns for mode in ("recorded", "isolated")
        )

    @property
    def ratio(self) -> float:
        return self.recorded_ns / self.isolated_ns


def _cores_words(manifest: Manifest) -> str:
    cores = round(manifest.world_size / manifest.machine.ranks_per_core)
    ranks = "1 rank" if manifest.world_size == 1 else f"{manifest.world_size} ranks"
    return f"{ranks} on {'1 core' if cores == 1 else f'{cores} cores'}"


def _times(ratio: float, digits: int = 1) -> str:
    return f"{show.number(ratio, 0 if not digits or ratio == round(ratio) else digits)}{show.THIN}×"


def _unshared_words(found: Sequence[_Isolated]) -> str:
    """How near the two come where no core is shared: without calls, and with them."""
    said = []
    unshared = [r for r in found if r.manifest.machine.ranks_per_core <= 1]
    if alone := [1 / r.ratio - 1 for r in unshared if r.manifest.world_size == 1]:
        said.append(
            f"With one rank no core is shared and no call is made: there the isolated step is "
            f"{_between(alone)} of the recorded one, what its thread waited for a processor."
        )
    if joined := [1 / r.ratio - 1 for r in unshared if r.manifest.world_size > 1]:
        said.append(
            f"With a core for each of several ranks it is {_between(joined)} of it: what is left is the "
            "price of calls, a ring’s and not gloo’s, and what gloo’s own threads take from the ranks."
        )
    return prose(" ".join(said))


def _between(differences: Sequence[float]) -> str:
    """Shares of a whole, e.g. 99.9 % to 100.0 %, given as differences from it."""
    low, high = show.percent(1 + min(differences)), show.percent(1 + max(differences))
    return low if low == high else f"{low} to {high}"


def _isolated_table(found: Sequence[_Isolated]) -> PlotTable:
    axis = dots.linear([0.0, *(max(r.recorded_ns, r.isolated_ns) / 1e6 for r in found)], axis_ms)
    rows = []
    for run in found:
        cells = (show.milliseconds(run.recorded_ns), show.milliseconds(run.isolated_ns), _times(run.ratio, 2))
        marks = [
            Dot(ns / 1e6, label, label)
            for ns, label in ((run.recorded_ns, RECORDED), (run.isolated_ns, RECONSTRUCTED))
        ]
        picture = dots.line(axis, marks, f"recorded {cells[0]} ms, isolated {cells[1]} ms")
        rows.append(PlotRow(run.manifest.id, run_url(run.manifest.id), Markup(picture), cells))
    return PlotTable(
        caption="Recorded and isolated step",
        head=("run", "recorded, ms", "isolated, ms", "ratio"),
        axis=Markup(dots.axis_picture(axis)),
        rows=tuple(rows),
    )


# ---- a core for each rank


def cores_section(library: Library) -> CoresSection | None:
    checks = library.core_checks()
    if not checks:
        return None
    reach = [part for c in checks for part in (c.error, *_span(c))]
    axis = dots.linear([-CORE_TOLERANCE, CORE_TOLERANCE, *reach], axis_percent)
    table = PlotTable(
        caption="Predicted and measured step with a core for each rank",
        head=("scheme", "one core, ms", "predicted", "measured", "error"),
        axis=Markup(dots.axis_picture(axis)),
        rows=tuple(_core_row(c, axis) for c in checks),
    )
    counted = ", ".join(f"{c.steps} of {c.steps_of} in {c.each}" for c in checks)
    words = (
        "The axis is the difference from the measured median; the line behind a disc reaches from the "
        "shortest to the longest measured step. Of the timed steps those count that nothing disturbed: "
        f"{counted}."
    )
    setting = markdown.block(inspect.getdoc(sharing) or "", lambda href: href)
    return CoresSection(table, words, setting)


def _span(check: CoreCheck) -> tuple[float, float]:
    """The shortest and the longest measured step over the median, minus one."""
    return check.shortest_ns / check.measured_ns - 1, check.longest_ns / check.measured_ns - 1


def _core_row(check: CoreCheck, axis: Axis) -> PlotRow:
    span = _span(check)
    marks = [Dot(0.0, RECORDED), Dot(check.error, RECONSTRUCTED, RECONSTRUCTED)]
    cells = (
        *map(show.milliseconds, (check.contended_ns, check.predicted_ns, check.measured_ns)),
        signed(check.error),
    )
    title = (
        f"predicted {signed(check.error)} from the measured median, measured from {signed(span[0])} to "
        f"{signed(span[1])}"
    )
    picture = dots.line(axis, marks, title, span=span)
    return PlotRow(check.scheme, run_url(check.each), Markup(picture), cells)
