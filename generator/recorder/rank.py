"""What one rank does: enter its network, join the group, build its scheme, train, log, write its file."""

from __future__ import annotations

import gc
import importlib
import os
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from generator.recorder.calls import CallProbe
from generator.recorder.data import Batch, make_batch
from generator.recorder.launch import Desk
from generator.recorder.links import Links
from generator.recorder.log import EventLog
from generator.recorder.memory import MemoryProbe, local
from generator.recorder.model import Shape
from generator.recorder.probe import Probe
from generator.recorder.rankfile import of_steps, write_rank_file
from generator.recorder.schemes.base import Context, Scheme
from generator.recorder.spec import LEARNING_RATE, SEED, RunSpec
from generator.runs.manifest import RankFile, nodes_of
from generator.units import wire_bytes

#: Longer than the supervisor waits for a sign of life: it, not gloo, is to find a hang.
_GROUP_TIMEOUT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Plan:
    """What all ranks are told: the runs to record, a step of each in turn, and a folder for each.

    Runs that are recorded together differ by where their ranks are pinned and by nothing else.
    """

    specs: tuple[RunSpec, ...]
    folders: tuple[Path, ...]
    shape: Shape
    links: Links
    #: Of each run.
    steps: int
    base_ns: int

    @property
    def all_steps(self) -> int:
        return self.steps * len(self.specs)

    def steps_of(self, which: int) -> range:
        """Indices of the steps of one of the runs."""
        return range(which, self.all_steps, len(self.specs))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rank tells its supervisor at the end."""

    #: By run.
    files: tuple[RankFile, ...]
    #: By step of all runs; None on a rank that computes no loss.
    losses: tuple[float | None, ...]
    parameters: int
    #: Thread-CPU time outside waits, and bytes sent over the link under the ring algorithm, by step.
    computation_ns: tuple[int, ...]
    wire_bytes: tuple[float, ...]


def run_rank(plan: Plan, desk: Desk) -> Outcome:
    """Train as one rank of the plan. The last step of a run also records memory."""
    spec, turns = plan.specs[0], len(plan.specs)
    rank, world_size = desk.rank, spec.world_size
    usable = sorted(os.sched_getaffinity(0))
    join_group(plan.links, plan.folders[0], rank, world_size)
    log = EventLog(report=desk.report)
    scheme = importlib.import_module(spec.module).build(
        Context(
            rank=rank,
            world_size=world_size,
            shape=plan.shape,
            seed=SEED,
            learning_rate=LEARNING_RATE,
            mesh=spec.mesh,
            options=spec.options,
            schedule=spec.schedule,
        )
    )
    CallProbe(log).attach()
    probe = Probe(log, microbatches=spec.options.accumulation)
    probe.attach(scheme)
    parameters = sum(local(p).numel() for m in scheme.modules for p in m.parameters())
    losses: list[float | None] = []
    # A collection of garbage on one rank makes all others wait: it is done between steps, and does not
    # look at PyTorch itself, which is no garbage and takes longer to go through than a small step.
    gc.disable()
    gc.freeze()
    calm_loops()
    for index in range(plan.all_steps):
        if cores := plan.specs[index % turns].pinned_cores:
            _pin(usable[rank % cores])
        batch = make_batch(index, plan.shape.sequences, plan.shape.tokens, SEED)
        gc.collect()
        memory = MemoryProbe(log, scheme) if index >= plan.all_steps - turns else None
        desk.report(f"step {index}, barrier before it")
        if world_size > 1:
            dist.barrier()
        if memory is None:
            loss = _step(log, probe, scheme, index, batch)
        else:
            with memory:
                loss = _step(log, probe, scheme, index, batch)
        losses.append(None if loss is None else loss.item())
        desk.finished(index + 1)
    if world_size > 1:
        dist.barrier()
    desk.report("writing its file")
    computation_ns, sent = _totals(log, plan.all_steps, spec.ranks_per_node)
    files = tuple(
        write_rank_file(folder, rank, world_size, of_steps(log, plan.steps_of(which)), plan.base_ns)
        for which, folder in enumerate(plan.folders)
    )
    if world_size > 1:
        # Nobody leaves before all have what they need from the others.
        dist.barrier()
    return Outcome(files, tuple(losses), parameters, computation_ns, sent)


def _step(log: EventLog, probe: Probe, scheme: Scheme, index: int, batch: Batch) -> Tensor | None:
    before_ns = _helpers_cpu_ns()
    step = log.begin_step(index)
    loss = scheme.step(batch)
    probe.end_step()
    log.end(step)
    # The two clocks are read one after the other: where nobody helps, their difference may fall below 0.
    step.arguments["helpers_cpu_dur"] = max(0, _helpers_cpu_ns() - before_ns) / 1000
    return loss


def _helpers_cpu_ns() -> int:
    """CPU time so far of all threads but this one: gloo's, which work on the rank's core too."""
    return time.process_time_ns() - time.thread_time_ns()


def calm_loops() -> None:
    """Keep gloo's polling threads from preempting the threads whose locks they poll for.

    A polling thread that finds a lock taken asks again at once, and on the core of the lock's holder it
    does so until the scheduler's next tick, 4 ms later. In the batch class it does not preempt.
    """
    for task in Path("/proc/self/task").glob("*"):
        if (task / "comm").read_text().strip() == "gloo_tcp_loop":
            os.sched_setscheduler(int(task.name), os.SCHED_BATCH, os.sched_param(0))


def _pin(core: int) -> None:
    """Let all threads of this process run on one core."""
    for task in Path("/proc/self/task").glob("*"):
        os.sched_setaffinity(int(task.name), {core})


def join_group(links: Links, folder: Path, rank: int, world_size: int) -> None:
    """Enter the rank's network and make the default process group, if there are others."""
    torch.set_num_threads(1)
    if world_size == 1:
        return
    links.enter(rank)
    # A file as the meeting point: ranks in namespaces of their own share no port, but the disk.
    store = dist.FileStore(str(folder / ".store"), world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=_GROUP_TIMEOUT)


def _totals(log: EventLog, steps: int, ranks_per_node: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Computation and ring bytes over the link of each step.

    Calls inside a node do not use the link. Across nodes a rank's part of the interface is smaller by the
    groups that share it, which counts as so many more bytes.
    """
    computation: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for span in log.spans:
        cpu = span.end_cpu_ns - span.begin_cpu_ns
        step = span.arguments["step"]
        if span.name.startswith("ProfilerStep"):
            computation[step] += cpu
        elif span.name == "wait":
            computation[step] -= cpu
        elif "call" in span.arguments:
            a = span.arguments
            ranks = [a["src"], a["dst"]] if a["op"] in ("send", "recv") else a["ranks"]
            nodes = nodes_of(ranks, ranks_per_node)
            shared = ranks_per_node * nodes / len(ranks) if nodes else 1
            exact = wire_bytes(a["op"], a["bytes"], len(ranks))
            sent[step] += 0 if nodes == 1 else a.get("sent", exact) * shared
    return tuple(computation[i] for i in range(steps)), tuple(float(sent[i]) for i in range(steps))
