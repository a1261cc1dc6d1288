"""Read a folder of measured runs: the manifest first, then each rank file it names, checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from generator.errors import UserError, did_you_mean, line_of
from generator.runs.chrome import read_rank
from generator.runs.manifest import FILE_NAME, Manifest, RankFile, read_manifest
from generator.runs.run import RankTrace, Run
from generator.texts import read_bytes, read_text


def run_ids(folder: Path) -> tuple[str, ...]:
    """Ids of the runs in a folder of runs, sorted."""
    if not folder.is_dir():
        return ()
    return tuple(sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")))


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of a folder of runs, and what is wrong with the others."""

    #: Ids of all runs, also of those whose manifest cannot be read, sorted.
    ids: tuple[str, ...]
    #: Those that can be used, by id: runs with steps first, those that others are compared with at the front.
    by_id: Mapping[str, Manifest]
    problems: tuple[UserError, ...]


def read_manifests(folder: Path) -> Manifests:
    """Read all manifests below `folder`, and make sure that the runs they name are there."""
    ids, found, problems = run_ids(folder), list[Manifest](), list[UserError]()
    for run_id in ids:
        try:
            found.append(read_manifest(folder / run_id / FILE_NAME))
        except UserError as error:
            problems.append(error)
    for manifest in found:
        for key, named in _named(manifest):
            if named not in ids:
                path = folder / manifest.id / FILE_NAME
                problems.append(
                    UserError(
                        f"'{key}' names an unknown run '{named}'",
                        path=path,
                        line=line_of(read_text(path), f"{key} ="),
                        remedy=did_you_mean(named, ids),
                    )
                )
    # A run cannot be used without those that it names.
    while found != (whole := [m for m in found if {n for _, n in _named(m)} <= {o.id for o in found}]):
        found = whole
    found.sort(key=lambda m: (not m.has_steps, m.model is None, bool(m.partner), m.id))
    return Manifests(ids, {m.id: m for m in found}, tuple(problems))


def _named(manifest: Manifest) -> list[tuple[str, str]]:
    """The runs that a manifest names, each with the key that does."""
    named = (("partner", manifest.partner), ("calibration", manifest.link.calibration))
    return [(key, name) for key, name in named if name]


def read_run_named(runs: Path, run_id: str) -> Run:
    """The run `run_id` below `runs`, with a remedy when there is none of that name."""
    known = run_ids(runs)
    if run_id not in known:
        raise UserError(f"there is no run '{run_id}'", path=runs, remedy=did_you_mean(run_id, known))
    return read_run(runs / run_id)


def read_run(folder: Path) -> Run:
    """Read a run whole. Raises UserError naming the file (and line of run.toml) that is at fault."""
    path = folder / FILE_NAME
    manifest = read_manifest(path)
    ranks = tuple(_read_rank_file(folder, entry, path) for entry in manifest.ranks)
    expected = list(range(len(ranks)))
    if [r.rank for r in ranks] != expected:
        raise UserError(
            "the rank files are not ranks 0, 1, 2, … in order",
            path=path,
            remedy="Restore the manifest as the recorder wrote it.",
        )
    return Run(folder=folder, manifest=manifest, ranks=_on_one_base(ranks))


def _on_one_base(ranks: tuple[RankTrace, ...]) -> tuple[RankTrace, ...]:
    """The same traces with all times relative to the earliest base of them.

    torch.profiler rounds the base down to a span of three months, so ranks that start on either side
    of its end have different ones.
    """
    first = min((r.base_ns for r in ranks), default=0)
    return tuple(r if r.base_ns == first else _moved(r, r.base_ns - first) for r in ranks)


def _moved(trace: RankTrace, by_ns: int) -> RankTrace:
    memory = replace(trace.memory, time_ns=trace.memory.time_ns + by_ns)
    base_ns = trace.base_ns - by_ns
    return replace(trace, base_ns=base_ns, start_ns=trace.start_ns + by_ns, memory=memory)


def _read_rank_file(folder: Path, entry: RankFile, manifest_path: Path) -> RankTrace:
    path = folder / entry.file
    line = line_of(read_text(manifest_path), f'"{entry.file}"')
    if Path(entry.file).name != entry.file:
        raise UserError(
            f"the rank file '{entry.file}' lies outside the run's folder",
            path=manifest_path,
            line=line,
            remedy="Name a file in the folder.",
        )
    if not os.path.lexists(path):
        raise UserError(
            f"the rank file '{entry.file}' is missing",
            path=manifest_path,
            line=line,
            remedy="Restore it, or record the run again.",
        )
    data = read_bytes(path)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        # A damaged file often says more precisely what is wrong with it than its hash does.
        read_rank(path, entry.rank, data)
        raise UserError(
            f"the SHA-256 differs from the one in {FILE_NAME}",
            path=path,
            remedy="Restore the file: it is not the one that was recorded.",
        )
    return read_rank(path, entry.rank, data)
