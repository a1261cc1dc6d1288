"""One process of `make bench`: python -m scripts.bench_trace parse|parse-only|measure FOLDER.

It prints the seconds of its parts and its peak MB as JSON.

It imports what it needs as it goes, because imports are part of what is measured.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


class Watch:
    """Seconds by part, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, part: str, work: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = work()
        self.seconds[part] = time.perf_counter() - start
        return result


def parse(folder: Path) -> None:
    """What anyone has to do: unpack each file and parse it; nothing is kept."""
    import gzip

    import orjson

    for path in sorted(folder.glob("rank-*.json.gz")):
        orjson.loads(gzip.decompress(path.read_bytes()))


def parse_without_collections(folder: Path) -> None:
    """The same without looking for garbage, of which there is none: what the reader of runs does too."""
    import gc

    gc.disable()
    parse(folder)


def read(folder: Path) -> Any:
    from generator.runs.reader import read_run

    return read_run(folder)


def match(run: Any) -> int:
    from generator.timeline.collectives import match_step

    return sum(len(match_step(run, step.index)) for step in run.manifest.steps)


def measure(run: Any) -> int:
    """Every metric of every step, over all ranks."""
    from generator.errors import UserError
    from generator.timeline.metrics import METRICS
    from generator.timeline.reconstruct import reconstruct

    measured = 0
    for step in run.manifest.steps:
        timeline = reconstruct(run, mode="recorded", step=step.index)
        for metric in METRICS.values():
            try:
                metric(timeline)
                measured += 1
            except UserError:  # one that has no meaning here: a bubble without a pipeline
                continue
    return measured


def replay(run: Any) -> None:
    from generator.timeline.reconstruct import graph_of
    from generator.timeline.replay import recorded_durations
    from generator.timeline.replay import replay as lay_out

    for step in run.manifest.steps:
        graph = graph_of(run, step.index)
        lay_out(graph, recorded_durations(graph))


def main(what: str, folder: Path) -> None:
    watch = Watch()
    if what in ("parse", "parse-only"):
        watch.time("all", lambda: (parse if what == "parse" else parse_without_collections)(folder))
        peak = peak_mb()
    else:
        run = watch.time("read", lambda: read(folder))
        calls = watch.time("match", lambda: match(run))
        measured = watch.time("measure", lambda: measure(run))
        watch.seconds["all"] = sum(watch.seconds.values())
        peak = peak_mb()
        watch.time("replay", lambda: replay(run))
        watch.seconds |= {"calls": calls, "measured": measured}

    import orjson

    sys.stdout.write(orjson.dumps(watch.seconds | {"peak": peak}).decode())


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
