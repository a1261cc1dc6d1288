"""What a pick is worth: the rules of templates/js/grade.js in Python, over numbers alone.

A mark says where something is in a figure: `(rank, *rows)` of an event, with the rows of the rank's file that
it comes from; `(rank, begin, end)` of a gap, in ns of the figure's mode; `(rank,)` of a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.lessons.events import Event

Mark = tuple[int, ...]
Marks = tuple[Mark, ...]

#: What to say to a reader who has picked nothing that counts.
_NOTHING = {
    "event": "Choose a block in the figure first.",
    "gap": "Choose an empty stretch in a row of computation first.",
    "rank": "Choose a rank first, by anything in its rows.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    #: "right", "wrong", or "unread" where nothing was picked that could be judged.
    state: str
    #: Plain text.
    title: str
    #: Paragraphs of HTML.
    html: tuple[str, ...] = ()


def marks_of(what: str, events: Iterable[Event]) -> Marks:
    """Where events or gaps are; the events of a rank are one mark."""
    if what == "gap":
        return tuple((e.rank, e.begin_ns, e.end_ns) for e in events)
    rows: dict[int, list[int]] = {}
    for event in events:
        rows.setdefault(event.rank, []).extend(event.rows)
    return tuple((rank, *sorted(set(found))) for rank, found in rows.items())


def overlap(what: str, a: Marks, b: Marks) -> bool:
    """Whether two sets of marks have something in common."""
    return any(_meets(what, pick, b) for pick in picks(what, a))


def judge(key: Mapping[str, Any], picked: Mapping[str, Any] | None) -> Verdict:
    """The verdict on a pick.

    `key`: what, mode, answer (marks), misconceptions (each with `at`, marks, and `say`, HTML) and explain, as
    they travel in a page. `picked`: rank and, of an event, rows; of a gap, from, to and mode.
    """
    what: str = key["what"]
    if picked is None:
        return Verdict("unread", _NOTHING[what])
    if what == "gap" and picked["mode"] != key["mode"]:
        return Verdict("unread", "Choose it in the mode that the figure was in at first: times differ.")
    if _inside(what, picked, key["answer"]):
        return Verdict("right", "Right.", (key["explain"],))
    for wrong in key["misconceptions"]:
        if _inside(what, picked, wrong["at"]):
            return Verdict("wrong", "Not yet.", (wrong["say"],))
    return Verdict("wrong", "Not yet.", (_general(what, picked, key["answer"]),))


def _general(what: str, picked: Mapping[str, Any], answer: Sequence[Sequence[int]]) -> str:
    """What can be said of a wrong pick that no misconception explains, without giving the answer away."""
    if what == "rank":
        return f"It is another rank than {picked['rank']}. Compare their rows with each other."
    here = [mark[1:] for mark in answer if mark[0] == picked["rank"]]
    if not here:
        return "It is on another rank."
    if _meets(what, picked, answer):
        return "What is asked for lies inside of what you chose. Choose more closely, in the row below."
    first, last = min(map(min, here)), max(map(max, here))
    begin, end = (
        (picked["from"], picked["to"]) if what == "gap" else (min(picked["rows"]), max(picked["rows"]))
    )
    side = "later" if first >= end else "earlier" if last <= begin else "elsewhere"
    return f"It is {side} on this rank."


def _inside(what: str, picked: Mapping[str, Any], marks: Sequence[Sequence[int]]) -> bool:
    """Whether all that was picked is marked."""
    mine = [mark[1:] for mark in marks if mark[0] == picked["rank"]]
    if what == "event":
        rows = {row for mark in mine for row in mark}
        return bool(picked["rows"]) and rows.issuperset(picked["rows"])
    if what == "gap":
        middle = (picked["from"] + picked["to"]) / 2
        return any(begin <= middle < end for begin, end in mine)
    return bool(mine)


def _meets(what: str, picked: Mapping[str, Any], marks: Sequence[Sequence[int]]) -> bool:
    """Whether anything of what was picked is marked."""
    if what != "event":
        return _inside(what, picked, marks)
    return any(mark[0] == picked["rank"] and not set(picked["rows"]).isdisjoint(mark[1:]) for mark in marks)


def picks(what: str, marks: Marks, mode: str = "") -> Iterator[dict[str, Any]]:
    """A reader's picks of everything that is marked, one by one."""
    for rank, *where in marks:
        if what == "event":
            yield from ({"rank": rank, "rows": [row]} for row in where)
        elif what == "gap":
            yield {"rank": rank, "from": where[0], "to": where[1], "mode": mode}
        else:
            yield {"rank": rank}
