"""What one rank does: enter its network, join the group, build its scheme, train, log, write its file."""

from __future__ import annotations

import gc
import importlib
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
from generator.recorder.rankfile import write_rank_file
from generator.recorder.schemes.base import Context, Scheme
from generator.recorder.spec import LEARNING_RATE, SEED, RunSpec
from generator.runs.manifest import RankFile, nodes_of
from generator.units import wire_bytes

#: Longer than the supervisor waits for a sign of life: it, not gloo, is to find a hang.
_GROUP_TIMEOUT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Plan:
    """What all ranks of a run are told."""

    spec: RunSpec
    shape: Shape
    links: Links
    steps: int
    folder: Path
    base_ns: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rank tells its supervisor at the end."""

    file: RankFile
    #: By step; None on a rank that computes no loss.
    losses: tuple[float | None, ...]
    parameters: int
    #: Thread-CPU time outside waits, and bytes sent over the link under the ring algorithm, by step.
    computation_ns: tuple[int, ...]
    wire_bytes: tuple[float, ...]


def run_rank(plan: Plan, desk: Desk) -> Outcome:
    """Train as one rank of the plan. The last step also records memory."""
    rank, world_size = desk.rank, plan.spec.world_size
    join_group(plan.links, plan.folder, rank, world_size)
    log = EventLog(report=desk.report)
    scheme = importlib.import_module(plan.spec.module).build(
        Context(
            rank=rank,
            world_size=world_size,
            shape=plan.shape,
            seed=SEED,
            learning_rate=LEARNING_RATE,
            mesh=plan.spec.mesh,
            options=plan.spec.options,
            schedule=plan.spec.schedule,
        )
    )
    CallProbe(log).attach()
    probe = Probe(log, microbatches=plan.spec.options.accumulation)
    probe.attach(scheme)
    parameters = sum(local(p).numel() for m in scheme.modules for p in m.parameters())
    losses: list[float | None] = []
    # A collection of garbage on one rank makes all others wait: it is done between steps, and does not
    # look at PyTorch itself, which is no garbage and takes longer to go through than a small step.
    gc.disable()
    gc.freeze()
    for index in range(plan.steps):
        batch = make_batch(index, plan.shape.sequences, plan.shape.tokens, SEED)
        gc.collect()
        memory = MemoryProbe(log, scheme) if index == plan.steps - 1 else None
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
    computation_ns, sent = _totals(log, plan.steps, plan.spec.ranks_per_node)
    file = write_rank_file(plan.folder, rank, world_size, log, plan.base_ns)
    if world_size > 1:
        # Nobody leaves before all have what they need from the others.
        dist.barrier()
    return Outcome(file, tuple(losses), parameters, computation_ns, sent)


def _step(log: EventLog, probe: Probe, scheme: Scheme, index: int, batch: Batch) -> Tensor | None:
    step = log.begin_step(index)
    loss = scheme.step(batch)
    probe.end_step()
    log.end(step)
    return loss


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
