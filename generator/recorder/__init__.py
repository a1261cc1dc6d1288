"""The recorder: real training runs on CPU ranks, logged and written to measured_runs/.

The one package that imports PyTorch, and only when something is recorded.
"""

from __future__ import annotations

from generator.recorder.catalog import RUNS
from generator.recorder.record import record
from generator.recorder.spec import RunSpec

__all__ = ["RUNS", "RunSpec", "record"]
