"""Figures for pages: which picture of which step, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from generator.publish.figures import compare
from generator.publish.figures.facts import Table, rank_notes
from generator.publish.figures.step import Figure, timeline_figure
from generator.publish.figures.strip import steps_strip
from generator.publish.library import Library
from generator.publish.model import Compared, ComparedRow, RunFigure
from generator.publish.pointing import Pointing
from generator.publish.urls import run_url
from generator.runs.manifest import Manifest
from generator.timeline.spans import Timeline


def exercise_figure(
    timeline: Timeline, manifest: Manifest, *, ident: str, pointing: Pointing
) -> tuple[Markup, Markup]:
    """The timeline of an exercise, with what it points to outlined, and its numbers."""
    drawn = timeline_figure(timeline, ident=ident, notes=notes_of(manifest), focus=pointing.focus)
    return drawing(drawn), numbers(drawn.table)


def notes_of(manifest: Manifest) -> tuple[str, ...]:
    """Where each rank of a run stands in its mesh."""
    return rank_notes(manifest.mesh, manifest.schedule.chunks if manifest.schedule else 1)


def run_figures(
    library: Library, manifest: Manifest, timelines: Mapping[str, Timeline]
) -> tuple[RunFigure, ...]:
    """All steps of a run, then the shown one as recorded and as reconstructed."""
    if not timelines:
        return ()

    def make() -> list[list[str]]:
        found = _draw_run(library.steps(manifest.id), manifest, timelines)
        return [[f.title, f.note, f.label, str(f.svg), str(f.numbers), f.mode_id] for f in found]

    # Drawing takes most of a build in which no run has changed.
    rows = library.drawn(manifest.id, make)
    return tuple(
        RunFigure(
            title,
            note,
            label,
            Markup(svg),
            Markup(table),
            mode,
            library.data_url(manifest.id) if mode else "",
        )
        for title, note, label, svg, table, mode in rows
    )


def _draw_run(
    steps: Sequence[Timeline], manifest: Manifest, timelines: Mapping[str, Timeline]
) -> tuple[RunFigure, ...]:
    aside = {s.index: "warm-up" if s.warmup else "memory" for s in manifest.steps if s.warmup or s.detail}
    shown = timelines["recorded"].step
    strip = steps_strip(steps, ident="steps", shown=shown, aside=aside)
    figures = [
        RunFigure("All steps", "one scale", "recorded", sizes(strip.wide, strip.narrow), Markup("")),
    ]
    words = {
        "recorded": ("as recorded", "ranks sharing cores, wall clock"),
        "isolated": ("one device each", "thread-CPU time, calls over a ring on the calibrated link"),
    }
    for mode, (title, note) in words.items():
        drawn = timeline_figure(timelines[mode], ident=mode, notes=notes_of(manifest))
        label = "recorded" if mode == "recorded" else "reconstructed"
        svg, table = drawing(drawn), numbers(drawn.table)
        figures.append(RunFigure(f"Step {shown}", f"{title}, {note}", label, svg, table, mode))
    return tuple(figures)


#: What readers call a scheme, where its run's title says more than a row has room for.
_SCHEMES = {
    "single": "One device",
    "ddp": "DDP",
    "zero1": "ZeRO-1",
    "zero2": "FSDP, ZeRO-2",
    "fsdp": "FSDP, ZeRO-3",
    "hsdp": "HSDP",
    "tp": "TP",
    "tp-sp": "TP and SP",
    "cp-ring": "Ring attention",
    "cp-ulysses": "Ulysses",
    "ep": "Experts",
    "fsdp-tp": "FSDP × TP",
    "3d": "PP × FSDP × TP",
}
_SCHEDULES = {
    "Interleaved1F1B": "Interleaved 1F1B",
    "InterleavedZeroBubble": "Interleaved ZB",
    "ZBVZeroBubble": "ZB-V",
}


def short_name(manifest: Manifest) -> str:
    """A run in a word or two: its pipeline's schedule or its scheme, else its title."""
    if manifest.schedule and manifest.mesh.pp == manifest.world_size:
        return _SCHEDULES.get(manifest.schedule.name, manifest.schedule.name)
    return _SCHEMES.get(manifest.scheme, manifest.title)


def comparison(
    library: Library, compared: Sequence[Manifest], lesson_of: Mapping[str, str]
) -> Compared | None:
    """All compared runs on one axis, each row a link to its lesson, or to its page without one."""
    if not compared:
        return None
    entries = [compare.Entry(short_name(m), library.timeline(m.id, "isolated")) for m in compared]
    drawn = compare.comparison(entries, ident="compare")
    return Compared(
        axis=sizes(drawn.axis_wide, drawn.axis_narrow),
        rows=tuple(
            ComparedRow(
                url=lesson_of.get(row.run, run_url(row.run)),
                name=row.name,
                picture=sizes(row.wide, row.narrow),
                step=row.step,
                speedup=row.speedup,
                still=row.still,
                exposed=row.exposed,
                peak=row.peak,
                remark=row.remark,
            )
            for row in drawn.rows
        ),
        legend=sizes(drawn.legend_wide, drawn.legend_narrow),
    )


def sizes(wide: str, narrow: str) -> Markup:
    """A picture for a wide page and one for a phone; the style sheet shows one of them."""
    return Markup('<div class="fig-wide">{}</div><div class="fig-narrow">{}</div>').format(
        Markup(wide), Markup(narrow)
    )


def drawing(figure: Figure) -> Markup:
    """A timeline in both sizes, the narrow one with what it leaves out."""
    note = Markup('<p class="sm">{}</p>').format(figure.note) if figure.note else ""
    return sizes(figure.wide, figure.narrow + note)


def numbers(table: Table) -> Markup:
    """A figure in words, folded: for screen readers and for those who want the numbers."""
    join = Markup("").join
    head = join(Markup('<th scope="col">{}</th>').format(cell) for cell in table.head)
    rows = join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], join(Markup("<td>{}</td>").format(cell) for cell in row[1:])
        )
        for row in table.rows
    )
    return Markup(
        '<details class="numbers"><summary>The figure in numbers</summary>'
        '<div class="scroll" tabindex="0" role="region" aria-label="{}">'
        '<table><caption class="vh">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        "</details>"
    ).format(table.caption, table.caption, head, rows)
