"""The accepted picture of a small pipeline: a change of the figures shows as a change of this file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from generator.publish.figures import timeline_figure
from generator.timeline.reconstruct import reconstruct
from tests.timeline.synthetic import one_f_one_b, write_run


def test_a_small_pipeline_as_a_picture(tmp_path: Path, gold: Callable[[str, str], None]) -> None:
    scripts = one_f_one_b(2, 3, [10_000_000, 12_000_000], [21_000_000, 25_000_000], send_ns=3_000_000)
    run = write_run(tmp_path, scripts, stages=2, microbatches=3, run_id="small")
    figure = timeline_figure(reconstruct(run, mode="recorded"), ident="f")
    gold("timeline.svg", figure.wide.replace("><", ">\n<") + "\n")
