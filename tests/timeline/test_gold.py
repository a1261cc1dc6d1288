"""Accepted output: what a small pipeline looks like as a file, and which words exercises may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson

from generator.timeline.export import from_json, to_json
from generator.timeline.formulas import FORMULAS
from generator.timeline.metrics import METRICS
from generator.timeline.reconstruct import reconstruct
from tests.timeline.synthetic import one_f_one_b, write_run

Gold = Callable[[str, str], None]


def test_a_small_pipeline_as_a_file(tmp_path: Path, gold: Gold) -> None:
    run = write_run(
        tmp_path, one_f_one_b(2, 2, [10, 12], [21, 25], send_ns=3), stages=2, microbatches=2, run_id="small"
    )
    timeline = reconstruct(run, mode="recorded")
    gold("timeline.json", orjson.dumps(orjson.loads(to_json(timeline)), option=orjson.OPT_INDENT_2).decode())


def test_a_timeline_survives_its_file(tmp_path: Path) -> None:
    run = write_run(tmp_path, one_f_one_b(2, 2, [10, 12], [21, 25], send_ns=3), stages=2, microbatches=2)
    written = to_json(reconstruct(run, mode="recorded"))
    assert to_json(from_json(written)) == written


def test_the_vocabulary_changes_only_on_purpose(gold: Gold) -> None:
    lines = [f"{m.name}({', '.join(m.parameters)}) {m.unit or '1'}: {m.summary}" for m in METRICS.values()]
    lines += [f"{f.name}({', '.join(f.parameters)}) {f.unit or '1'}: {f.source}" for f in FORMULAS.values()]
    gold("vocabulary.txt", "\n".join(lines) + "\n")
