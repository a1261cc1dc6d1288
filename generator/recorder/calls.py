"""Collectives and point-to-point calls, seen by replacing the functions that issue and await them.

torch.profiler under gloo knows neither group nor sequence number nor wait. Three sets of functions
are replaced in the process of a rank (which records one run and then ends):

* the methods of ProcessGroup: every torch.distributed.* call of Python goes through them;
* Work.wait: where the thread blocks;
* the functional collectives, through which DTensor communicates without passing the first two.

A TorchDispatchMode would see the last kind as well, but slows the whole step by 9-18 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroup, Work
from torch.distributed import _functional_collectives as functional

from generator.recorder.log import EventLog, Span, Transfer, wall_ns

#: Method of ProcessGroup: our name of the operation, torch's name of the operator. Releases of
#: PyTorch differ in which of these they have; those that exist are replaced.
COLLECTIVES = {
    "allreduce": ("all_reduce", "c10d::allreduce_"),
    "allreduce_coalesced": ("all_reduce", "c10d::allreduce_coalesced_"),
    "allgather": ("all_gather", "c10d::allgather_"),
    "_allgather_base": ("all_gather", "c10d::_allgather_base_"),
    "all_gather_single": ("all_gather", "c10d::_allgather_base_"),
    "reduce_scatter": ("reduce_scatter", "c10d::reduce_scatter_"),
    "_reduce_scatter_base": ("reduce_scatter", "c10d::_reduce_scatter_base_"),
    "reduce_scatter_single": ("reduce_scatter", "c10d::_reduce_scatter_base_"),
    "alltoall": ("all_to_all", "c10d::alltoall_"),
    "alltoall_base": ("all_to_all", "c10d::alltoall_base_"),
    "all_to_all_single": ("all_to_all", "c10d::alltoall_base_"),
    "broadcast": ("broadcast", "c10d::broadcast_"),
    "barrier": ("barrier", "c10d::barrier"),
}
POINT_TO_POINT = {"send": "c10d::send", "recv": "c10d::recv_"}
FUNCTIONAL = {
    "all_reduce": ("all_reduce", "_c10d_functional::all_reduce"),
    "all_gather_single": ("all_gather", "_c10d_functional::all_gather_into_tensor"),
    "reduce_scatter_single": ("reduce_scatter", "_c10d_functional::reduce_scatter_tensor"),
    "all_to_all_single": ("all_to_all", "_c10d_functional::all_to_all_single"),
    "broadcast": ("broadcast", "_c10d_functional::broadcast"),
}


class CallProbe:
    """Logs each call of this rank as an issue, its wait, and its completion where it can be seen."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._calls = 0
        self._sequences: Counter[Any] = Counter()
        #: Works not waited for yet, kept alive so that their ids stay theirs.
        self._works: dict[int, tuple[int, str, Work]] = {}
        #: Results of functional collectives not waited for yet, by the address of their data.
        self._results: dict[int, tuple[int, str]] = {}
        #: The functional collective that is being issued, and its input, until its first wait.
        self._issuing: tuple[Span, Tensor] | None = None

    def attach(self) -> None:
        """Replace the functions, for the rest of the process."""
        for name, (op, operator) in COLLECTIVES.items():
            if hasattr(ProcessGroup, name):
                self._replace_collective(name, op, operator)
        for name, operator in POINT_TO_POINT.items():
            self._replace_point_to_point(name, operator)
        self._replace_wait()
        for name, (op, operator) in FUNCTIONAL.items():
            if hasattr(functional, name):
                self._replace_functional(name, op, operator)
        self._replace_wait_tensor()

    def _begin_collective(self, op: str, operator: str, group: str, ranks: list[int]) -> Span | None:
        if not self.log.on:
            return None
        key = ("collective", group)
        arguments = {
            "call": self._calls,
            "op": op,
            "group": group,
            "ranks": ranks,
            "seq": self._sequences[key],
        }
        self._calls += 1
        self._sequences[key] += 1
        return self.log.begin(operator, "cpu_op", arguments)

    def _replace_collective(self, name: str, op: str, operator: str) -> None:
        original = getattr(ProcessGroup, name)

        def issue(group: ProcessGroup, *values: Any, **named: Any) -> Work:
            span = self._begin_collective(op, operator, group.group_name, _ranks(group))
            work: Work = original(group, *values, **named)
            if span is not None:
                span.arguments.update(_payload(values[:2]))
                if op == "all_to_all":
                    span.arguments.update(_uneven(dist.get_rank(group), *values[:4]))
                self.log.communicate(values[:2])
                self._started(span, work)
                self.log.end(span)
            return work

        setattr(ProcessGroup, name, issue)

    def _started(self, span: Span, work: Work) -> None:
        """Remember the work for its wait, and ask to be told when it is complete."""
        arguments = span.arguments
        call, op = arguments["call"], arguments["op"]
        self._works[id(work)] = (call, op, work)
        try:
            future = work.get_future()
        except RuntimeError:
            # gloo's reduce-scatter has none: it is an all-reduce that the wait completes.
            return
        transfer = Transfer(call, op, arguments["group"], self.log.step, span.begin_ns)
        self.log.transfers.append(transfer)

        def completed(_: Any) -> None:
            transfer.completed_ns = wall_ns()

        future.add_done_callback(completed)

    def _replace_point_to_point(self, name: str, operator: str) -> None:
        original = getattr(ProcessGroup, name)

        def issue(group: ProcessGroup, tensors: list[Tensor], peer: int, tag: int) -> Work:
            if not self.log.on:
                untold: Work = original(group, tensors, peer, tag)
                return untold
            ranks = _ranks(group)
            here, there = dist.get_rank(), ranks[peer]
            source, destination = (here, there) if name == "send" else (there, here)
            key = (name, group.group_name, source, destination, tag)
            arguments = {
                "call": self._calls,
                "op": name,
                "group": group.group_name,
                "ranks": ranks,
                "seq": self._sequences[key],
                "src": source,
                "dst": destination,
                "tag": tag,
                **_payload([tensors]),
            }
            self._calls += 1
            self._sequences[key] += 1
            self.log.communicate(tensors)
            span = self.log.begin(operator, "cpu_op", arguments)
            work: Work = original(group, tensors, peer, tag)
            self._works[id(work)] = (arguments["call"], name, work)
            self.log.end(span)
            return work

        setattr(ProcessGroup, name, issue)

    def _replace_wait(self) -> None:
        original = Work.wait

        def wait(work: Work, *values: Any, **named: Any) -> bool:
            known = self._works.pop(id(work), None)
            if known is None:
                return original(work, *values, **named)
            with self._waiting(known[0], known[1]):
                return original(work, *values, **named)

        Work.wait = wait

    def _replace_functional(self, name: str, op: str, operator: str) -> None:
        original = getattr(functional, name)

        def issue(tensor: Tensor, *values: Any, **named: Any) -> Tensor:
            if not self.log.on:
                untold: Tensor = original(tensor, *values, **named)
                return untold
            group = _group_of(values, named)
            span = self._begin_collective(op, operator, group.group_name, _ranks(group))
            self._issuing = None if span is None else (span, tensor)
            result: Tensor = original(tensor, *values, **named)
            if self._issuing is not None and span is not None:
                self._issuing = None
                elements = result.elem if isinstance(result, functional.AsyncCollectiveTensor) else result
                span.arguments.update(_payload([elements, tensor]))
                self.log.communicate([elements, tensor])
                self._results[elements.data_ptr()] = (span.arguments["call"], op)
                self.log.end(span)
            return result

        setattr(functional, name, issue)

    def _replace_wait_tensor(self) -> None:
        original: Callable[[Tensor], Tensor] = functional.wait_tensor

        def wait_tensor(tensor: Tensor) -> Tensor:
            if self._issuing is not None:
                # A gather along another dimension than the first waits before it returns.
                span, given = self._issuing
                self._issuing = None
                span.arguments.update(_payload([tensor, given]))
                self.log.communicate([tensor, given])
                self.log.end(span)
                with self._waiting(span.arguments["call"], span.arguments["op"]):
                    return original(tensor)
            known = self._results.pop(tensor.data_ptr(), None)
            if known is None:
                return original(tensor)
            with self._waiting(*known):
                return original(tensor)

        functional.wait_tensor = wait_tensor

    def _waiting(self, call: int, op: str) -> _Waiting:
        return _Waiting(self.log, call, op)


class _Waiting:
    """The thread is blocked until a call is complete."""

    __slots__ = ("arguments", "log", "op", "span")

    def __init__(self, log: EventLog, call: int, op: str) -> None:
        self.log, self.op, self.arguments = log, op, {"call": call}
        self.span: Span | None = None

    def __enter__(self) -> None:
        self.span = self.log.begin("wait", "user_annotation", self.arguments)
        self.log.report(f"wait for {self.op} (call {self.arguments['call']})")

    def __exit__(self, *_: object) -> None:
        self.log.end(self.span)


def _ranks(group: ProcessGroup) -> list[int]:
    """Global ranks of a group, in the order of their ranks in it."""
    ranks: list[int] = dist.get_process_group_ranks(group)
    return ranks


def _group_of(values: tuple[Any, ...], named: dict[str, Any]) -> ProcessGroup:
    """The process group that a functional collective was told to use, in one of its five spellings."""
    given = named.get("group")
    if given is None:
        given = next(v for v in reversed(values) if not isinstance(v, (str, int, Tensor)))
    resolved = functional._resolve_group(given)
    if isinstance(resolved, str):
        resolved = torch.distributed.distributed_c10d._resolve_process_group(resolved)
    group: ProcessGroup = resolved
    return group


def _payload(tensors: Any) -> dict[str, Any]:
    """Bytes of the larger of a call's buffers (that is the full tensor), and its element type."""
    sizes = [_bytes(t) for t in tensors]
    first = next((t for t in _flat(tensors)), None)
    dtype = str(first.dtype).removeprefix("torch.") if first is not None else ""
    return {"dtype": dtype, "bytes": max(sizes, default=0)}


def _uneven(
    rank: int, received: Any, given: Any, out_splits: Any = (), in_splits: Any = (), *_: Any
) -> dict[str, Any]:
    """Of an all-to-all with uneven parts: rows from and to each member, and bytes to the others.

    Rows are of the tensors' first dimension, and `rank` is the own one in the group.
    """
    if not (isinstance(out_splits, list) and isinstance(in_splits, list) and (out_splits or in_splits)):
        return {}
    row_bytes = given.element_size() * given.shape[1:].numel()
    sent = row_bytes * (sum(in_splits) - in_splits[rank])
    return {"out_splits": out_splits, "in_splits": in_splits, "sent": sent}


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _flat(item)]
    return []


def _bytes(value: Any) -> int:
    return sum(t.numel() * t.element_size() for t in _flat(value))
