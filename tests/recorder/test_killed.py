"""`shardbook record` as a user runs it, killed in the middle: the command by Ctrl-C, or one of its ranks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generator.recorder.links import PREFIX

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

RANKS = 4
VICTIM = 2
DEADLINE_S = 90


def ranks_of(command: int) -> list[int]:
    """Process ids of the ranks that a command has forked, in their order; not those of other programs."""
    own = Path("/proc", str(command), "cmdline").read_bytes()
    children = Path("/proc", str(command), "task", str(command), "children").read_text().split()
    found = []
    for child in children:
        try:
            if Path("/proc", child, "cmdline").read_bytes() == own:
                found.append(int(child))
        except OSError:
            continue
    return found


def namespaces_of(command: int) -> list[str]:
    if shutil.which("ip") is None:
        return []
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.startswith(f"{PREFIX}-{command}-")]


def _mind_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def recording(tmp_path: Path, repository: Path) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own, as a terminal would start it, recording into an empty book."""
    (tmp_path / "exercises").mkdir()
    (tmp_path / "measured_runs").mkdir()
    (tmp_path / "book.toml").write_text('title = "Empty"\ndescription = "For a test."\n')
    command = [sys.executable, "-m", "generator.cli", "--book", str(tmp_path), "record", "pp-gpipe"]
    with subprocess.Popen(
        command,
        cwd=repository,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background job, as this test may be one, ignores Ctrl-C and passes that on.
        preexec_fn=_mind_interrupts,
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("kill", "status", "said"),
    [
        pytest.param(lambda command, _: os.killpg(command, signal.SIGINT), 130, "interrupted", id="Ctrl-C"),
        pytest.param(
            lambda _, ranks: os.kill(ranks[VICTIM], signal.SIGKILL),
            1,
            f"error: recording 'pp-gpipe': rank {VICTIM} was ended by signal 9",
            id="SIGKILL to a rank",
        ),
    ],
)
def test_nothing_is_left_and_the_last_line_says_why(
    kill: Callable[[int, list[int]], None],
    status: int,
    said: str,
    recording: subprocess.Popen[str],
    tmp_path: Path,
) -> None:
    until = time.monotonic() + DEADLINE_S
    while len(ranks := ranks_of(recording.pid)) < RANKS:
        assert recording.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    assert [p.name for p in (tmp_path / "measured_runs").iterdir()] == [f".pp-gpipe.{recording.pid}.new"]
    kill(recording.pid, ranks)
    _, told = recording.communicate(timeout=DEADLINE_S)
    assert recording.returncode == status
    assert told.splitlines()[-1].startswith(said)
    assert [rank for rank in ranks if Path("/proc", str(rank)).exists()] == []
    assert namespaces_of(recording.pid) == []
    assert list((tmp_path / "measured_runs").iterdir()) == []


def test_an_interruption_while_a_rank_is_forked_is_not_lost(repository: Path) -> None:
    """What is raised in Python's own hooks after a fork is ignored: Ctrl-C must not come up there."""
    script = """
import io, os, signal
from generator.recorder.launch import launch
from generator.recorder.progress import Progress
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    launch(lambda desk: 0, 1, 1, what="a run", progress=Progress(io.StringIO()))
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        preexec_fn=_mind_interrupts,
    )
    assert done.stdout == "interrupted\n"
