"""The page that says how right the book is: what was checked over all runs, and what is not known."""

from __future__ import annotations

from markupsafe import Markup

from generator.publish import show
from generator.publish.figures import dots
from generator.publish.library import Library
from generator.publish.model import Page
from generator.publish.parts import Fact
from generator.publish.promises import promises
from generator.publish.urls import VALIDATION
from generator.publish.validation.agreement import losses_figure, matching_section, repeat_section
from generator.publish.validation.formulas import formula_groups
from generator.publish.validation.model import ValidationData
from generator.publish.validation.replay import cores_section, isolated_section, replay_section
from generator.publish.validation.unknown import price_section, unknown


def validation_page(library: Library) -> Page:
    """The page of validation of a book. A section without anything to show is left out."""
    replay, price = replay_section(library), price_section(library)
    data = ValidationData(
        symbols=Markup(dots.symbols()),
        facts=_facts(library),
        promises=promises(library),
        replay=replay,
        isolated=isolated_section(library),
        cores=cores_section(library),
        matching=matching_section(library),
        formulas=formula_groups(library),
        losses=losses_figure(library),
        repeatability=repeat_section(library),
        price=price,
        unknown=unknown(library, price, replay.moved_words if replay else ""),
    )
    return Page(
        url=VALIDATION, template="validation.html", title="How right is it?", data=data,
        description="What was checked of the recordings and their reconstruction, and what is not known.",
    )  # fmt: skip


def _facts(library: Library) -> tuple[Fact, ...]:
    found = library.with_steps
    if not found:
        return ()
    calls = sum(library.validation(m.id).calls for m in found)
    steps, timed = sum(len(m.steps) for m in found), sum(len(m.timed_steps) for m in found)
    dates = sorted(m.date for m in found)
    facts = [
        Fact("runs", show.integer(len(found))),
        Fact("steps", show.integer(steps), f"{show.integer(timed)} of them timed"),
        Fact("calls", show.integer(calls)),
        Fact("recorded", dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"),
    ]
    return tuple(facts)
