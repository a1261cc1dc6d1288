"""What a rank logs while it trains: spans on its own thread, transfers, memory.

Everything is read off two clocks at once: wall (CLOCK_MONOTONIC, one clock for all processes of the
host) and the CPU time of the thread. On cores that ranks share, only the second says how much
computation something is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

wall_ns = time.monotonic_ns
cpu_ns = time.thread_time_ns

Arguments = dict[str, Any]


@dataclass(slots=True)
class Span:
    """Something the rank's thread did, from begin to end; spans nest."""

    name: str
    category: str
    arguments: Arguments
    begin_ns: int
    begin_cpu_ns: int
    end_ns: int = -1
    end_cpu_ns: int = -1


@dataclass(slots=True)
class Transfer:
    """A collective as seen from outside the thread: issued, and completed (-1: not seen)."""

    call: int
    op: str
    group: str
    step: int
    issued_ns: int
    completed_ns: int = -1


@dataclass(slots=True)
class MemorySample:
    """Bytes held, by category, at one time."""

    time_ns: int
    by_category: dict[str, int]


def _ignore(text: str) -> None:
    """What a log without a supervisor does with reports."""


@dataclass(slots=True)
class EventLog:
    """The events of one rank. Logs only inside a step; outside, every call costs next to nothing."""

    #: Is told what the rank does, so that a hang can be explained.
    report: Callable[[str], None] = _ignore
    #: Called where a phase or a layer begins or ends.
    boundaries: list[Callable[[], None]] = field(default_factory=list)
    #: Shown the tensors that a call sends or fills.
    buffers: list[Callable[[Any], None]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)
    step: int = -1
    _open: list[Span] = field(default_factory=list)

    @property
    def on(self) -> bool:
        """Whether a step is being logged."""
        return bool(self._open)

    def begin_step(self, index: int) -> Span:
        """Open the step; everything until `end` of the returned span belongs to it."""
        self.step = index
        self.report(f"step {index}")
        span = Span(f"ProfilerStep#{index}", "user_annotation", {"step": index}, wall_ns(), cpu_ns())
        self.spans.append(span)
        self._open.append(span)
        return span

    def begin(self, name: str, category: str, arguments: Arguments) -> Span | None:
        """Open a span inside the ones that are open; None outside of a step."""
        if not self._open:
            return None
        arguments["step"] = self.step
        span = Span(name, category, arguments, wall_ns(), cpu_ns())
        self.spans.append(span)
        self._open.append(span)
        self.report(name)
        return span

    def end(self, span: Span | None) -> None:
        """Close a span, and with it what is still open inside."""
        if span is None or span.end_ns >= 0:
            return
        end_cpu_ns, end_ns = cpu_ns(), wall_ns()
        while self._open:
            inner = self._open.pop()
            inner.end_ns, inner.end_cpu_ns = end_ns, end_cpu_ns
            if inner is span:
                return

    def communicate(self, tensors: Any) -> None:
        """Show whoever watches the tensors of a call."""
        for watch in self.buffers:
            watch(tensors)

    def boundary(self) -> None:
        """Tell whoever watches that a phase or a layer begins or ends here."""
        if self._open:
            for watch in self.boundaries:
                watch()
