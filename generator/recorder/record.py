"""Record runs: start the ranks, collect what they saw, write measured_runs/<id>/ whole or not at all."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from generator.recorder.catalog import RUNS
from generator.recorder.launch import launch, terminate_as_interrupt
from generator.recorder.links import links
from generator.recorder.progress import Progress
from generator.recorder.resume import is_recorded
from generator.recorder.spec import LEARNING_RATE, SEED, WARMUP_STEPS, RunSpec
from generator.runs.manifest import (
    FILE_NAME,
    SCHEMA,
    Batch,
    Link,
    Machine,
    Manifest,
    Mesh,
    Model,
    Optimizer,
    Ratio,
    Step,
    to_toml,
)

if TYPE_CHECKING:
    from generator.recorder.model import Shape
    from generator.recorder.rank import Outcome

_NO_LINK = Link("none", 0, 0)


def record(
    ids: Iterable[str],
    out: Path,
    *,
    resume: bool = False,
    commit: str = "",
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Record runs by id into folders of their names below `out`, each replacing what was there.

    `resume` leaves out those that are there as they would be recorded now (see resume.is_recorded).
    Returns what was recorded. Raises UserError where a rank fails or hangs, and ModuleNotFoundError
    without PyTorch.
    """
    prepare_process()
    shown = progress or Progress()
    wanted = [RUNS[name] for name in dict.fromkeys(ids)]
    if resume:
        wanted = [spec for spec in wanted if not is_recorded(spec, _head(spec), out / spec.id)]
    together = list({specs[0].id: specs for specs in map(_together, wanted)}.values())
    shown.expect({specs[0].id: sum(s.expected_s for s in specs) for specs in together})
    for specs in together:
        record_specs(specs, out, commit=commit, progress=shown)
    return tuple(spec.id for specs in together for spec in specs)


def _together(spec: RunSpec) -> tuple[RunSpec, ...]:
    """The runs that are recorded with this one, in the catalog's order."""
    return tuple(RUNS[name] for name in RUNS if name in (spec.id, spec.beside))


def record_spec(
    spec: RunSpec,
    out: Path,
    *,
    commit: str,
    progress: Progress,
    shape: Shape | None = None,
    steps: int = 0,
    stall_s: float = 120.0,
) -> Manifest:
    """Record one run; `shape` and `steps` are smaller in tests."""
    (manifest,) = record_specs(
        (spec,), out, commit=commit, progress=progress, shape=shape, steps=steps, stall_s=stall_s
    )
    return manifest


def record_specs(
    specs: tuple[RunSpec, ...],
    out: Path,
    *,
    commit: str,
    progress: Progress,
    shape: Shape | None = None,
    steps: int = 0,
    stall_s: float = 120.0,
) -> tuple[Manifest, ...]:
    """Record runs that take turns, step by step; most often just one."""
    prepare_process()
    spec = specs[0]
    calibration = spec.calibration if spec.kind != "calibration" else ""
    with (
        terminate_as_interrupt(),
        links(spec.world_size, spec.rate_mbit, calibration, ranks_per_node=spec.ranks_per_node) as network,
        ExitStack() as stack,
    ):
        folders = tuple(stack.enter_context(_whole_folder(out, s.id)) for s in specs)
        if network.reason:
            progress.say(
                f"{spec.id}: the link's rate cannot be limited ({network.reason}); recording on loopback."
            )
        manifests = [_head(s, commit, network.link) for s in specs]
        if spec.kind == "calibration":
            from generator.recorder.calibrate import measure

            table = measure(spec, network, folders[0], progress, stall_s=stall_s)
            manifests = [replace(manifests[0], table=table)]
        else:
            from generator.recorder.model import Shape
            from generator.recorder.rank import Plan, run_rank

            shape = shape or Shape(**spec.shape)
            plan = Plan(specs, folders, shape, network, steps or spec.steps, time.monotonic_ns())
            outcomes: list[Outcome] = launch(
                partial(run_rank, plan),
                spec.world_size,
                plan.all_steps,
                what=spec.id,
                progress=progress,
                stall_s=stall_s,
            )
            if spec.kind == "training":
                manifests = [_training(manifest, shape, outcomes) for manifest in manifests]
            manifests = [_steps(m, outcomes, i, plan.steps_of(i)) for i, m in enumerate(manifests)]
        for folder, manifest in zip(folders, manifests, strict=True):
            (folder / FILE_NAME).write_text(tomli_w.dumps(to_toml(manifest)), encoding="utf-8")
    return tuple(manifests)


def prepare_process() -> None:
    """Import PyTorch once, for all ranks to be forked: one thread each, and no chatter."""
    for name, value in {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }.items():
        os.environ.setdefault(name, value)
    import torch

    # For a process that had imported it before.
    torch.set_num_threads(1)


def _head(spec: RunSpec, commit: str = "", link: Link = _NO_LINK) -> Manifest:
    """What is known before anything is run; of the link only once it has been set up."""
    return Manifest(
        schema=SCHEMA,
        id=spec.id,
        title=spec.title,
        kind=spec.kind,
        scheme=spec.scheme,
        description=spec.description,
        source=spec.source,
        command=f"shardbook record {spec.id}",
        commit=commit,
        date=datetime.now(UTC).date().isoformat(),
        machine=_machine(spec.world_size, spec.pinned_cores),
        link=link,
        partner=spec.partner if spec.kind == "training" else "",
        mesh=spec.full_mesh() if spec.mesh else Mesh(),
        schedule=spec.schedule,
        options=spec.options,
    )


def _training(manifest: Manifest, shape: Shape, outcomes: list[Outcome]) -> Manifest:
    """What was trained."""
    from generator.recorder import data
    from generator.recorder.model import count_parameters
    from generator.recorder.moe import count_moe_parameters

    experts = manifest.options.experts
    parameters = count_moe_parameters(shape, experts) if experts else count_parameters(shape)
    return replace(
        manifest,
        model=Model(
            shape.d_model,
            shape.layers,
            shape.heads,
            shape.vocabulary,
            parameters,
            tuple(o.parameters for o in outcomes),
        ),
        batch=Batch(shape.sequences, shape.tokens, data.TEXT.name, data.text_sha256(), SEED),
        optimizer=Optimizer("AdamW", LEARNING_RATE),
    )


def _steps(manifest: Manifest, outcomes: list[Outcome], which: int, own: range) -> Manifest:
    """What the ranks ran in one run's own steps. A bench has no losses: theirs are left at 0."""
    losses = {i: [loss for o in outcomes if (loss := o.losses[i]) is not None] for i in own}
    flags = [
        Step(
            i,
            warmup=number < WARMUP_STEPS,
            detail=number == len(own) - 1,
            loss=statistics.fmean(losses[i]) if losses[i] else 0.0,
        )
        for number, i in enumerate(own)
    ]
    timed = [s.index for s in flags if not s.warmup and not s.detail]
    return replace(
        manifest,
        ratio=_ratio(manifest.link.rate_mbit, outcomes, timed),
        steps=tuple(flags),
        ranks=tuple(o.files[which] for o in outcomes),
    )


def _ratio(rate_mbit: int, outcomes: list[Outcome], timed: list[int]) -> Ratio:
    """Communication alone over computation alone, at the link's nominal rate; 0 where it has none."""
    timed = timed or [0]
    sent = statistics.fmean(statistics.median(o.wire_bytes[i] for i in timed) for o in outcomes)
    computed = statistics.fmean(statistics.median(o.computation_ns[i] for i in timed) for o in outcomes)
    communication_ms = sent * 8 / (rate_mbit * 1e3) if rate_mbit else 0.0
    computation_ms = computed / 1e6
    return Ratio(
        round(communication_ms, 3), round(computation_ms, 3), round(communication_ms / computation_ms, 4)
    )


def _machine(ranks: int, pinned_cores: int) -> Machine:
    import torch

    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        cpu=_cpu_name(),
        cores=cores,
        memory_gib=round(memory, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        torch=torch.__version__,
        backend="gloo" if ranks > 1 else "none",
        threads_per_rank=1,
        ranks_per_core=ranks / (pinned_cores or cores),
        pinned_cores=pinned_cores,
    )


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


@contextmanager
def _whole_folder(out: Path, name: str) -> Iterator[Path]:
    """A folder that appears under its name only if nothing failed, in place of the one before it."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / name
    # Beside the target, so that renaming cannot cross file systems; hidden from whoever reads runs.
    folder, old = out / f".{name}.{os.getpid()}.new", out / f".{name}.{os.getpid()}.old"
    _clear_abandoned(out, name)
    folder.mkdir()
    try:
        yield folder
        (folder / ".store").unlink(missing_ok=True)
        if target.exists():
            target.rename(old)
        try:
            folder.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _clear_abandoned(out: Path, name: str) -> None:
    """Remove what a recorder left that was killed outright, or put back what it had moved aside."""
    for left in out.glob(f".{name}.*.*"):
        pid, kind = left.name.split(".")[-2:]
        if Path("/proc", pid).exists():
            continue
        if kind == "old" and not (out / name).exists():
            left.rename(out / name)
        else:
            shutil.rmtree(left, ignore_errors=True)
