"""Start a process for each rank, follow them, and end them all whatever happens.

Ranks are forked from a process that has imported PyTorch once. Each tells its supervisor what it is
doing through a piece of shared memory, so that a rank that dies or hangs is explained by what every
rank did last.
"""

from __future__ import annotations

import ctypes
import multiprocessing as mp
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from generator.errors import UserError
from generator.recorder.progress import Progress

_TEXT_BYTES = 160
_PR_SET_PDEATHSIG = 1
_INTERRUPTIONS = frozenset((signal.SIGINT, signal.SIGTERM))
#: How long the first failure may be followed by its consequences before they are all looked at.
_GRACE_S = 0.5
_POLL_S = 0.1


class RankFailure(Exception):
    """The traceback of the rank that failed first, as the cause of what the user is told."""


@dataclass(slots=True)
class Desk:
    """A rank's end of the line to its supervisor."""

    rank: int
    _text: Any
    _done: Any

    def report(self, text: str) -> None:
        """Say what the rank does now; cheap enough for every event."""
        self._text.value = text.encode()[: _TEXT_BYTES - 1]

    def finished(self, units: int) -> None:
        """Say how many units of work (steps, measurements) are done."""
        self._done.value = units


@dataclass(slots=True)
class _Rank:
    """A supervisor's view of one rank."""

    rank: int
    process: Any
    line: Connection
    text: Any
    done: Any
    result: Any = None
    ended: bool = False
    #: Time in ns, message and traceback of its failure.
    failure: tuple[int, str, str] | None = None

    def last(self) -> str:
        return f"rank {self.rank}: {self.text.value.decode(errors='replace') or 'starting'}"


def launch(
    target: Callable[[Desk], Any],
    ranks: int,
    units: int,
    *,
    what: str,
    progress: Progress,
    stall_s: float = 120.0,
) -> list[Any]:
    """Run `target` in `ranks` forked processes and return what each returned, in order of rank.

    `units` is how much work each rank will report as done. Raises UserError if a rank fails, dies, or
    if none finishes a unit for `stall_s` seconds; no process is left behind.
    """
    context = mp.get_context("fork")
    crew: list[_Rank] = []
    progress.start(what, units)
    try:
        # One by one: should a start fail, those before it are in the list and are ended.
        for rank in range(ranks):
            crew += [_start(context, target, rank)]
        _follow(crew, what, progress, stall_s)
    finally:
        for member in crew:
            if member.process.is_alive():
                member.process.kill()
        for member in crew:
            member.process.join()
            member.process.close()
            member.line.close()
        progress.stop()
    return [member.result for member in crew]


def _start(context: Any, target: Callable[[Desk], Any], rank: int) -> _Rank:
    line, far_end = context.Pipe(duplex=False)
    text, done = context.RawArray(ctypes.c_char, _TEXT_BYTES), context.RawValue(ctypes.c_int, 0)
    process = context.Process(
        target=_serve, args=(target, Desk(rank, text, done), far_end, os.getpid()), daemon=True
    )
    with _no_interruption(), warnings.catch_warnings():
        # Newer Pythons warn of forking beside threads; ours hold no lock that a rank would need.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    far_end.close()
    return _Rank(rank, process, line, text, done)


@contextmanager
def _no_interruption() -> Iterator[None]:
    """Hold back Ctrl-C until a rank has been forked: what is raised while Python forks is lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(target: Callable[[Desk], Any], desk: Desk, line: Connection, parent: int) -> None:
    """The life of a rank's process."""
    # A supervisor that is killed outright cannot end its ranks: the kernel does.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
    status = 0
    try:
        line.send(("result", target(desk)))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the supervisor must hear of it
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        with suppress(OSError):
            line.send(("failure", (time.monotonic_ns(), message, traceback.format_exc())))
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.close()
        # Not through interpreter shutdown: gloo's threads may still hold on to peers that are gone.
        os._exit(status)


def _follow(crew: list[_Rank], what: str, progress: Progress, stall_s: float) -> None:
    """Wait until all ranks have returned; raise as soon as one cannot."""
    done, last_s = -1, time.monotonic()
    while not all(member.ended for member in crew):
        wait([m.line for m in crew if not m.ended], timeout=_POLL_S)
        for member in crew:
            _hear(member)
        if any(m.ended and m.result is None for m in crew):
            _fail(crew, what)
        now_done = min(member.done.value for member in crew)
        total = sum(member.done.value for member in crew)
        if total != done:
            done, last_s = total, time.monotonic()
        progress.update(now_done)
        if time.monotonic() - last_s > stall_s:
            raise UserError(
                f"recording '{what}' hangs: nothing was finished for {stall_s:g} s. "
                f"Last seen: {'; '.join(m.last() for m in crew)}",
                remedy="All ranks were ended and nothing was written.",
            )


def _hear(member: _Rank) -> None:
    """Take what a rank has sent, or note that it is gone."""
    if member.ended or not member.line.poll():
        return
    try:
        kind, content = member.line.recv()
    except (EOFError, ConnectionError):
        member.ended = True
        return
    member.ended = True
    if kind == "result":
        member.result = content
    else:
        member.failure = content


def _fail(crew: list[_Rank], what: str) -> None:
    """Raise for the rank that failed first; the failures of the others mostly follow from it."""
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until and not all(m.ended for m in crew):
        wait([m.line for m in crew if not m.ended], timeout=_POLL_S)
        for member in crew:
            _hear(member)
    gone = [m for m in crew if m.ended and m.result is None]
    silent = [m for m in gone if m.failure is None]
    first = silent[0] if silent else min(gone, key=lambda m: m.failure or (0, "", ""))
    first.process.join(_GRACE_S)
    last = first.last().partition(": ")[2]
    if first.failure is None:
        code = first.process.exitcode or 0
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        cause = RankFailure("it said nothing")
    else:
        how, cause = f"failed ({first.failure[1]})", RankFailure(f"\n{first.failure[2]}")
    raise UserError(
        f"recording '{what}': rank {first.rank} {how}; it was last at: {last}",
        remedy="All ranks were ended and nothing was written.",
    ) from cause


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that ranks, links and folders are cleaned up."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # Not the main thread: whoever runs us there handles signals.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
