"""Small parts of pages that several kinds of page have; see `generator.publish.model`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    title: str
    #: Chapter letter and number of an exercise, e.g. E25.
    label: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a list of facts."""

    name: str
    value: str
    note: str = ""
    url: str = ""
    #: Where the number comes from: recorded, reconstructed, formula.
    label: str = ""


@dataclass(frozen=True, slots=True)
class Promise:
    """A line of "How right is it?" over all runs."""

    what: str
    promised: str
    measured: str
    runs: int
    #: Id of the section of the page of validation that says more.
    section: str
    #: Where the measured value lies on a rail whose limit is at 100 px; None without a limit.
    at_px: int | None = None
