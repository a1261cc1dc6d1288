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
