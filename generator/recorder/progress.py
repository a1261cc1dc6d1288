"""How far a recording is, on stderr: one line that changes on a terminal, a few plain ones elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

#: Without a terminal, so many lines a piece of work.
_LINES = 4


class Progress:
    """Shows work done and time left; the estimate is the mean of what is done so far."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._what, self._units, self._done, self._begin_s = "", 0, -1, 0.0
        #: What each piece of work is expected to take, if there are several; and what is done of it.
        self._expected: dict[str, float] = {}
        self._past, self._all_begin_s = 0.0, 0.0

    @property
    def _out(self) -> TextIO:
        return self._stream if self._stream is not None else sys.stderr

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say what pieces of work are to come and about how long each takes; only their ratio matters."""
        self._expected = dict(seconds)
        self._past, self._all_begin_s = 0.0, time.monotonic()

    def start(self, what: str, units: int) -> None:
        """Begin a piece of work of so many units."""
        self._what, self._units, self._done, self._begin_s = what, units, -1, time.monotonic()
        self.update(0)

    def update(self, done: int) -> None:
        """Show that so many units are done; says nothing if that is not new."""
        if done == self._done:
            return
        before, self._done = self._done, done
        elapsed_s = time.monotonic() - self._begin_s
        left = f", {elapsed_s / done * (self._units - done):.0f} s left" if done else ""
        text = f"{self._what}: {done} of {self._units}{left}{self._of_all()}"
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{text}")
            self._out.flush()
        elif done * _LINES // self._units > before * _LINES // self._units or before < 0:
            self.say(text)

    def stop(self) -> None:
        """Leave the line."""
        self._past += self._expected.get(self._what, 0.0)
        if self._out.isatty():
            self._out.write("\r\x1b[K")
            self._out.flush()

    def say(self, text: str) -> None:
        """One line that stays."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def _of_all(self) -> str:
        """Which of several pieces of work this is, and the time left for all of them."""
        if len(self._expected) < 2 or self._what not in self._expected:
            return ""
        number = list(self._expected).index(self._what) + 1
        past = self._past + self._expected[self._what] * self._done / self._units
        text = f" (run {number} of {len(self._expected)}"
        if past > 0:
            elapsed_s = time.monotonic() - self._all_begin_s
            left_s = elapsed_s / past * (sum(self._expected.values()) - past)
            text += f", about {left_s / 60:.0f} min left for all"
        return f"{text})"
