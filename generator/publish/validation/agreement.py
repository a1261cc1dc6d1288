"""What agrees: calls between ranks, losses with a partner's, and two recordings with each other."""

from __future__ import annotations

import math
from collections import Counter

from markupsafe import Markup

from generator.publish import markdown, show
from generator.publish.figures import dots
from generator.publish.figures.dots import Dot
from generator.publish.library import Library
from generator.publish.urls import run_url
from generator.publish.validation.model import (
    DotFigure,
    Ledger,
    LedgerRow,
    MatchingSection,
    RepeatSection,
    VerdictLine,
)
from generator.publish.validation.shown import (
    RECONSTRUCTED,
    RECORDED,
    axis_percent,
    ledger,
    prose,
    range_words,
    runs,
    signed,
    strip_line,
)
from generator.timeline.collectives import Verdict
from generator.timeline.repeatability import REPEAT_TOLERANCE
from generator.timeline.validation import LOSS_TOLERANCE

# ---- matching


def matching_section(library: Library) -> MatchingSection | None:
    found = [v for m in library.with_steps if (v := library.validation(m.id)).calls]
    if not found:
        return None
    verdicts = Counter[Verdict]()
    for each in found:
        verdicts.update(each.verdicts)
    early = sum(v.early for v in found)
    same, of = sum(v.unnumbered for v in found), sum(v.unnumbered_of for v in found)
    words = (
        f"{_counted(early)} was complete on a rank before its last member had arrived, or before its "
        "message was sent: the clocks of all ranks are one.",
        f"With the sequence numbers withheld, by order, operation, bytes, dtype and times alone, "
        f"{show.integer(same)} of {show.integer(of)} calls of the representative steps have the same "
        "members.",
    )
    return MatchingSection(
        calls=show.integer(sum(v.calls for v in found)),
        steps=show.integer(sum(len(library.manifests[v.run].steps) for v in found)),
        runs=len(found),
        verdicts=tuple(VerdictLine(v.value, show.integer(verdicts[v])) for v in Verdict),
        words=tuple(map(prose, words)),
        ledger=ledger(
            "Calls matched across ranks",
            ("calls of all steps", "fully matched", "calls of one step", "the same without numbers"),
            [(v.run, tuple(map(show.integer, (v.calls, v.matched, v.unnumbered_of, v.unnumbered))))
             for v in found],
        ),
    )  # fmt: skip


def _counted(count: int) -> str:
    return f"{show.integer(count)} calls" if count > 1 else "One call" if count else "No call"


# ---- losses


def losses_figure(library: Library) -> DotFigure | None:
    found = [
        (m, v.loss_difference)
        for m in library.with_steps
        if (v := library.validation(m.id)).loss_difference is not None
    ]
    if not found:
        return None
    differences = [d for _, d in found if d]
    least = math.floor(math.log10(min([*differences, LOSS_TOLERANCE / 10])))
    axis = dots.logarithmic(least, -5, _power)
    marks = [Dot(d, m.id) for m, d in found]
    equal, most = len(found) - len(differences), show.power(max(d for _, d in found))
    return DotFigure(
        title="Largest relative difference of a step’s loss",
        note="a dot a run, over all steps"
        + (f"; at the left edge {runs(equal)} without any" if equal else "")
        + "; shaded: what is promised",
        labels=(RECORDED,),
        lines=(
            strip_line(
                "Runs", "against their partners", axis, marks,
                f"Largest relative difference of a loss, {runs(len(found))}: up to {most}",
                band=(10.0**least, LOSS_TOLERANCE),
            ),
        ),
        axis=Markup(dots.axis_picture(axis)),
        ledger=ledger(
            "Losses against the partner",
            ("partner", "steps", "largest relative difference"),
            [(m.id, (m.partner, str(len(m.steps)), show.power(d) if d else "none")) for m, d in found],
        ),
    )  # fmt: skip


def _power(value: float) -> str:
    return show.power(value, 0).rpartition(" ")[2]


# ---- two recordings


def repeat_section(library: Library) -> RepeatSection | None:
    found = library.repeatability()
    if found is None:
        return None
    values = [Dot(r.difference, r.run, RECONSTRUCTED) for r in found.runs]
    axis = dots.linear([-REPEAT_TOLERANCE, REPEAT_TOLERANCE, *(d.value for d in values)], axis_percent)
    figure = DotFigure(
        title="Second recording against the first",
        note="a dot a run, isolated step, median of its timed steps; shaded: what is promised of the median",
        labels=(RECONSTRUCTED,),
        lines=(
            strip_line("Runs", "", axis, values, range_words("Second over first recording", values),
                       band=(-REPEAT_TOLERANCE, REPEAT_TOLERANCE)),
        ),
        axis=Markup(dots.axis_picture(axis)),
        # A run that was recorded then and is not in the book any more has no page.
        ledger=Ledger(
            "Isolated step in two recordings",
            ("run", "first, ms", "second, ms", "difference"),
            tuple(
                LedgerRow(
                    r.run,
                    run_url(r.run) if r.run in library.manifests else "",
                    (show.number(r.first_ms, 1), show.number(r.second_ms, 1), signed(r.difference)),
                )
                for r in found.runs
            ),
        ),
    )  # fmt: skip
    median = show.percent(found.median_difference)
    words = f"In the median of {runs(len(found.runs))} the two differ by {median}."
    if len(found.minutes) == 2:
        words += (
            f" Recording everything took {found.minutes[0]:g} minutes the first time and "
            f"{found.minutes[1]:g} the second."
        )
    return RepeatSection(figure, markdown.inline(found.note, lambda href: href), prose(words))
