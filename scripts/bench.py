"""Time building the book, its runs, what-ifs, the timeline and a large trace: make bench."""

from __future__ import annotations

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
from scripts.bench_viewer import bench_viewer
from scripts.bench_whatif import bench_what_if
from scripts.generated import CALLS, EVENTS, RANKS, write_generated_run

ROOT = Path(__file__).resolve().parent.parent
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


# ---- a large trace


def bench_trace() -> None:
    """Reading, matching and measuring a generated run, against unpacking and parsing its files."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "generated"
        megabytes = write_generated_run(run)
        baseline = fresh_processes("parse", run)
        quickest = fresh_processes("parse-only", run)
        ours = fresh_processes("measure", run)
    print(
        f"\n{EVENTS:,} events, {megabytes:.0f} MB in each of {RANKS} files, {CALLS:,} calls"
        f"\n{'(processes of their own, medians)':36} s    peak MB"
    )
    print(f"{'gunzip + orjson':30} {baseline['all']:8.2f}   {baseline['peak']:8.0f}")
    print(f"{'  without garbage collection':30} {quickest['all']:8.2f}   {quickest['peak']:8.0f}")
    for part in ("read", "match", "measure"):
        print(f"{part:30} {ours[part]:8.2f}")
    print(f"{'read, match and measure':30} {ours['all']:8.2f}   {ours['peak']:8.0f}")
    for name, base in (("ratio", baseline), ("  without garbage collection", quickest)):
        print(f"{name:30} {ours['all'] / base['all']:8.2f}   {ours['peak'] / base['peak']:8.2f}")
    print(f"{'replay, apart':30} {ours['replay']:8.2f}")


def fresh_processes(what: str, run: Path) -> dict[str, float]:
    """Medians over fresh processes of the seconds that each part of some work takes, and of peak MB.

    Imports count: the clock starts before any but those of the interpreter.
    """
    found = []
    for _ in range(REPEATS):
        command = [sys.executable, "-m", "scripts.bench_trace", what, str(run)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        found.append(orjson.loads(done.stdout))
    return {part: statistics.median(f[part] for f in found) for part in found[0]}


if __name__ == "__main__":
    this_book = find_book(Path(__file__).parent)
    bench_build(this_book)
    bench_reconstruct(this_book)
    bench_what_if(this_book)
    bench_viewer()
    bench_trace()
