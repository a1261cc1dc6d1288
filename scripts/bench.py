"""Time building the book, reconstructing its runs and reading a large trace: make bench."""

from __future__ import annotations

import gzip
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from generator.book import Book, find_book
from generator.runs.manifest import FILE_NAME, Manifest, read_manifest
from generator.runs.reader import read_run_named, run_ids
from generator.timeline.reconstruct import reconstruct

REPEATS = 5


def milliseconds(work: Callable[[], object]) -> float:
    start_ns = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start_ns) / 1e6


def median(work: Callable[[], object]) -> float:
    return statistics.median(milliseconds(work) for _ in range(REPEATS))


def bench_build(book: Book) -> None:
    """Each build in a process of its own, as a user runs it; cold is without the cache of timelines."""
    with tempfile.TemporaryDirectory() as folder:
        copy, out = Path(folder) / "book", Path(folder) / "site"
        leave = shutil.ignore_patterns(".git", ".venv", ".shardbook", "site", "*_cache")
        shutil.copytree(book.root, copy, ignore=leave)
        command = [sys.executable, "-m", "generator.cli", "--book", str(copy), "build", "--out", str(out)]

        def build() -> None:
            subprocess.run(command, check=True, cwd=book.root, stdout=subprocess.DEVNULL)

        print(f"build, cold  {milliseconds(build):8.0f} ms")
        print(f"build, warm  {median(build):8.0f} ms")


def bench_reconstruct(book: Book) -> None:
    """Reading and reconstructing apart, medians, in this process."""
    print("\nrun                     events   read ms   isolated ms   recorded ms")
    for run_id in run_ids(book.runs):
        manifest = read_manifest(book.runs / run_id / FILE_NAME)
        if manifest.kind == "training":
            print(reconstruct_row(book, manifest))


def reconstruct_row(book: Book, manifest: Manifest) -> str:
    link = manifest.link.calibration
    calibration = read_run_named(book.runs, link) if link else None
    run = read_run_named(book.runs, manifest.id)
    read = median(lambda: read_run_named(book.runs, manifest.id))
    isolated = median(lambda: reconstruct(run, mode="isolated", calibration=calibration))
    recorded = median(lambda: reconstruct(run, mode="recorded", calibration=calibration))
    events = sum(file.events for file in manifest.ranks)
    return f"{manifest.id:22}  {events:6}  {read:8.1f}  {isolated:12.1f}  {recorded:12.1f}"


def bench_read() -> None:
    """A generated trace of torch.profiler's kind, against unpacking and parsing it and nothing else."""
    baseline = "import gzip, orjson, sys; orjson.loads(gzip.decompress(open(sys.argv[1], 'rb').read()))"
    ours = (
        "import pathlib, sys; from generator.runs.chrome import read_rank\n"
        "read_rank(pathlib.Path(sys.argv[1]), 0)"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank-000.json.gz"
        path.write_bytes(generated_trace(200_000))
        print("\n200,000 events            s   peak MB   (each in a process of its own, medians)")
        found = [in_process(code, path) for code in (baseline, ours)]
        for name, (seconds, peak_mb) in zip(("gunzip + orjson", "runs.chrome"), found, strict=True):
            print(f"{name:18} {seconds:8.2f}  {peak_mb:8.0f}")
        print(f"{'ratio':18} {found[1][0] / found[0][0]:8.2f}  {found[1][1] / found[0][1]:8.2f}")


def in_process(code: str, path: Path) -> tuple[float, float]:
    """Median seconds and peak MB of a fresh process, its start-up not counted."""
    wrapped = (
        f"import resource, time; t = time.perf_counter()\n{code}\n"
        "print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", wrapped, str(path)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(REPEATS)]
    pairs = [[float(word) for word in run.stdout.split()] for run in runs]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def generated_trace(events: int) -> bytes:
    """57 % complete events, 30 % flows, 13 % instants, with names and args as torch.profiler writes them."""
    dice = random.Random(1)
    found: list[dict[str, object]] = []
    for i in range(events):
        event: dict[str, object] = {"pid": 1234, "tid": dice.randrange(8), "ts": round(i * 5.5, 3)}
        sort = dice.random()
        if sort < 0.57:
            event |= {
                "ph": "X",
                "cat": dice.choice(("cpu_op", "kernel", "cuda_runtime")),
                "name": f"aten::op_{dice.randrange(400)}<float, {dice.randrange(64)}>",
                "dur": round(dice.random() * 50, 3),
                "args": {
                    "External id": i,
                    "correlation": 3 * i,
                    "stream": 7,
                    "Input Dims": [[1024, 256], [256, 256]],
                    "Input type": ["float", "float"],
                    "grid": [1, 2, 3],
                    "block": [128, 1, 1],
                },
            }
        elif sort < 0.87:
            event |= {"ph": dice.choice("sf"), "id": i, "cat": "ac2g", "name": "ac2g", "bp": "e"}
        else:
            held = {"Bytes": dice.randrange(-(10**6), 10**6), "Total Allocated": dice.randrange(10**9)}
            event |= {"ph": "i", "s": "t", "name": "[memory]", "args": held | {"Device Id": 0, "Addr": i}}
        found.append(event)
    root = {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": found}
    return gzip.compress(orjson.dumps(root), mtime=0)


if __name__ == "__main__":
    this_book = find_book(Path(__file__).parent)
    bench_build(this_book)
    bench_reconstruct(this_book)
    bench_read()
