"""A recording that fails leaves one clear line, and nothing else: no folder, process or namespace."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.errors import UserError
from generator.recorder import RUNS
from generator.recorder.links import PREFIX, links
from generator.recorder.progress import Progress
from generator.recorder.record import record_spec

pytest.importorskip("torch", reason="recording needs PyTorch: pip install shardbook[record]")

MODULE = "scheme_with_a_fault"
Fault = Callable[[int, int], None]


def record_faulty(fault: Fault, out: Path, *, rate_mbit: int = 0, stall_s: float = 30.0) -> None:
    """Record two ranks of DDP; `fault(rank, step)` is called before each step of each rank."""
    from generator.recorder.model import Shape
    from generator.recorder.schemes import data_parallel

    def build(context: Any) -> Any:
        scheme = data_parallel.build(context)
        train, steps = scheme.step, iter(range(100))

        def step(batch: Any) -> Any:
            fault(context.rank, next(steps))
            return train(batch)

        scheme.step = step
        return scheme

    module = types.ModuleType(MODULE)
    module.build = build  # type: ignore[attr-defined]
    sys.modules[MODULE] = module
    spec = replace(RUNS["ddp"], mesh={"dp": 2}, rate_mbit=rate_mbit, module=MODULE)
    shape = Shape(d_model=32, layers=2, heads=2, vocabulary=256, tokens=16, sequences=2)
    try:
        record_spec(
            spec, out, commit="", shape=shape, steps=4, stall_s=stall_s, progress=Progress(io.StringIO())
        )
    finally:
        del sys.modules[MODULE]


def dies(rank: int, step: int) -> None:
    if (rank, step) == (1, 2):
        os.kill(os.getpid(), signal.SIGKILL)


def hangs(rank: int, step: int) -> None:
    if (rank, step) == (1, 2):
        time.sleep(60)


def raises(rank: int, step: int) -> None:
    if (rank, step) == (1, 2):
        raise ValueError("the fault\nin two lines")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(dies, "rank 1 was ended by signal 9", id="a rank is killed"),
        pytest.param(raises, "rank 1 failed (ValueError: the fault)", id="a rank raises"),
        pytest.param(hangs, "rank 1: step 2", id="a rank hangs"),
    ],
)
def test_failure_leaves_one_line_and_nothing_else(fault: Fault, said: str, tmp_path: Path) -> None:
    earlier = tmp_path / "ddp" / "run.toml"
    earlier.parent.mkdir()
    earlier.write_text("an earlier recording")
    with pytest.raises(UserError) as caught:
        record_faulty(fault, tmp_path, stall_s=5.0 if fault is hangs else 60.0)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["ddp"]
    assert earlier.read_text() == "an earlier recording"
    assert multiprocessing.active_children() == []


def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    class Impatient(Progress):
        def update(self, done: int) -> None:
            if done:
                os.kill(os.getpid(), signal.SIGTERM)

    from generator.recorder.model import Shape

    shape = Shape(d_model=32, layers=2, heads=2, vocabulary=256, tokens=16, sequences=2)
    with pytest.raises(KeyboardInterrupt):
        record_spec(
            replace(RUNS["ddp"], mesh={"dp": 2}, rate_mbit=0),
            tmp_path,
            commit="",
            shape=shape,
            steps=50,
            progress=Impatient(io.StringIO()),
        )
    assert list(tmp_path.iterdir()) == []
    assert multiprocessing.active_children() == []


def namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(f"{PREFIX}-{os.getpid()}-")]


def test_namespaces_go_with_a_rank_that_dies(tmp_path: Path) -> None:
    with links(2, 1000) as network:
        if network.reason:
            pytest.skip(f"links cannot be limited here: {network.reason}")
        assert len(namespaces()) == 3
    assert namespaces() == []
    with pytest.raises(UserError, match="rank 1 was ended by signal 9"):
        record_faulty(dies, tmp_path, rate_mbit=1000)
    assert namespaces() == []


def test_without_root_the_manifest_says_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with links(4, 2000, "link-2gbit") as network:
        assert network.reason == "not root"
        assert network.namespaces == ()
        assert (network.link.method, network.link.rate_mbit, network.link.calibration) == ("loopback", 0, "")


def test_what_a_killed_recorder_left_is_cleared(tmp_path: Path) -> None:
    from generator.recorder.record import _whole_folder

    gone = 2**22 + 1  # No process can have this number.
    (tmp_path / f".ddp.{gone}.new").mkdir()
    (tmp_path / f".ddp.{gone}.old").mkdir()
    (tmp_path / f".ddp.{gone}.old" / "run.toml").write_text("moved aside")
    with pytest.raises(ZeroDivisionError), _whole_folder(tmp_path, "ddp"):
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["ddp"]
    assert (tmp_path / "ddp" / "run.toml").read_text() == "moved aside"
