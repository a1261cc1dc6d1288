"""Rank files: Chrome-trace JSON as torch.profiler writes it, and what ours add to it.

A rank file is gzipped JSON: ``{"baseTimeNanoseconds": N, "traceEvents": [...], ...}``. ``ts`` and
``dur`` are microseconds whatever ``displayTimeUnit`` says; absolute ns = N + 1000·ts. Complete
events (``ph`` X) of our recorder are of these kinds; all but transfers lie on the rank's own thread
(tid 0), nest, and carry ``cpu_ts`` and ``cpu_dur`` (thread-CPU clock, µs) and ``step``:

========  ===============  ==========================================================================
kind      cat              name and args
========  ===============  ==========================================================================
step      user_annotation  ``ProfilerStep#N``; ``helpers_cpu_dur``: CPU time of the process's other
                           threads meanwhile (gloo's), µs
phase     user_annotation  ``phase``: forward, backward, backward_input, backward_weight, optimizer;
                           in pipelines also ``microbatch`` and ``chunk`` (the stage's index)
layer     user_annotation  ``module``: embedding, block or head; ``layer`` for a block; ``phase``
issue     cpu_op           torch's operator name; ``call`` (unique in the file), ``op``, ``group``,
                           ``ranks``, ``seq``, ``dtype``, ``bytes`` (payload: the full tensor); for
                           send and recv also ``src``, ``dst``, ``tag``; for an all-to-all with
                           uneven parts also ``out_splits``, ``in_splits`` (rows from and to each
                           member) and ``sent`` (bytes to the others), and ``bytes`` is the larger
                           of what this rank sends and gets, its own part included
transfer  gloo             ``gloo:<op>`` on tid 1, ``call``; its end is the call's completion here
wait      user_annotation  ``wait``, ``call``: the thread stands in Work.wait
operator  cpu_op           any other operator, only in the detail step: ``flops`` of a matrix product,
                           ``shapes``, ``bytes``
memory    ph "C"           bytes by category, only in the detail step
========  ===============  ==========================================================================

Any of these may be missing in a trace of somebody else; columns then hold MISSING.
"""

from __future__ import annotations

import gc
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from generator.errors import UserError
from generator.runs.run import I32, I64, MEMORY_CATEGORIES, MISSING, Kind, MemorySamples, RankTrace

Event = dict[str, Any]

_RECORD_AGAIN = "Restore the file from where it came, or record the run again."
#: So that differences of times fit 64 bits.
_LARGEST_US = 2.0**61 / 1000
_INT_COLUMNS = ("step", "layer", "microbatch", "chunk", "call", "seq", "src", "dst", "tag")
_TEXT_COLUMNS = ("phase", "op", "group", "dtype")
#: What an event of our recorder carries at least one of.
_OURS = frozenset(
    (*_INT_COLUMNS, *_TEXT_COLUMNS, "module", "bytes", "sent", "cpu_ts", "cpu_dur", "helpers_cpu_dur")
)
#: Args that become columns, or are looked into for one.
_COLUMNS = (*_INT_COLUMNS, *_TEXT_COLUMNS, "bytes", "sent", "cpu_ts", "cpu_dur", "helpers_cpu_dur", "flops",
            "ranks", "out_splits")  # fmt: skip
_STEP = "ProfilerStep#"


@dataclass(frozen=True, slots=True)
class _Complete:
    """The complete events of a file, and where each stands in it."""

    row: I32
    events: list[Event]


def read_rank(path: Path, rank: int, data: bytes | None = None) -> RankTrace:
    """Read one rank file into columns. `data` is its content where the caller already has it.

    Raises UserError, naming the file, for anything that is not a usable trace.
    """
    with _no_collections():
        return _read(path, rank, data)


@contextmanager
def _no_collections() -> Iterator[None]:
    """No collection of garbage meanwhile: a million objects are made, and none of them is garbage yet."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _read(path: Path, rank: int, data: bytes | None) -> RankTrace:
    root = _parse(_inflate(path.read_bytes() if data is None else data, path), path)
    events = root.get("traceEvents") if isinstance(root, dict) else root
    if not isinstance(events, list):
        raise UserError("there is no list of traceEvents in it", path=path, remedy=_RECORD_AGAIN)
    row = [i for i, e in enumerate(events) if isinstance(e, dict) and e.get("ph") == "X"]
    complete = _Complete(_int32(row), [events[i] for i in row])
    base = root.get("baseTimeNanoseconds", 0) if isinstance(root, dict) else 0
    if type(base) is not int:
        raise UserError("baseTimeNanoseconds is not a whole number", path=path, remedy=_RECORD_AGAIN)
    try:
        return _columns(path, rank, base, complete, _memory(events))
    except KeyError as error:
        raise UserError(f"an event has no {error}", path=path, remedy=_RECORD_AGAIN) from None
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"an event has a value of the wrong type or size ({error})", path=path, remedy=_RECORD_AGAIN
        ) from None


def _inflate(data: bytes, path: Path) -> bytes:
    if not data:
        raise UserError("the file is empty", path=path, remedy=_RECORD_AGAIN)
    if not path.name.endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise UserError("the gzip stream is cut off", path=path, remedy=_RECORD_AGAIN) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"not a gzip file ({error})", path=path, remedy=_RECORD_AGAIN) from None


def _parse(text: bytes, path: Path) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UserError(
            f"not valid JSON: {error.msg}", path=path, line=error.lineno, remedy=_RECORD_AGAIN
        ) from None


def _kind(event: Event, args: Event) -> Kind:
    """What an event that is no step is, by what it carries."""
    if "call" in args:
        if event.get("cat") == "gloo":
            return Kind.TRANSFER
        return Kind.ISSUE if "op" in args else Kind.WAIT
    if "module" in args:
        return Kind.LAYER
    return Kind.PHASE if "phase" in args else Kind.OTHER


def _columns(path: Path, rank: int, base_ns: int, found: _Complete, memory: MemorySamples) -> RankTrace:
    start_ns, dur_ns = _ns(found.events, "ts"), _ns(found.events, "dur")
    if (start_ns == MISSING).any():
        raise KeyError("ts")
    order = np.lexsort((-np.maximum(dur_ns, 0), start_ns))
    events = [found.events[i] for i in order.tolist()]
    args = [e.get("args") or {} for e in events]
    if not all(isinstance(a, dict) for a in args):
        raise TypeError("args that are no object")
    names = [e.get("name", "") for e in events]
    strings, count = _Strings(), len(events)
    # Most events of a trace of somebody else carry nothing of ours: the columns are filled where it is.
    told = [i for i, a in enumerate(args) if not _OURS.isdisjoint(a)]
    said = _said(args, told)

    def column(key: str, values: Callable[[list[Any]], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What `values` makes of a key's values, where it is said, and MISSING elsewhere."""
        rows, listed = said[key]
        made = values(listed)
        filled = np.full(count, MISSING, made.dtype)
        filled[rows] = made
        return filled

    def indices(texts: list[Any]) -> I32:
        return _int32([strings.index(text) for text in texts])

    kind = np.full(count, Kind.OTHER, np.int8)
    kind[told] = [_kind(events[i], args[i]) for i in told]
    ints = {key: column(key, _int32) for key in _INT_COLUMNS}
    for i, name in enumerate(names):
        if name.startswith(_STEP):
            kind[i] = Kind.STEP
            if ints["step"][i] == MISSING:
                ints["step"][i] = _step_number(name)
    for i in told:
        # So that blocks can be told from the two ends of the model.
        names[i] = str(args[i].get("module", names[i]))
    groups: dict[str, tuple[int, ...]] = {}
    for i, ranks in zip(*said["ranks"], strict=True):
        if "group" in args[i]:
            groups.setdefault(args[i]["group"], _ranks(ranks))
    uneven = [args[i] for i in said["out_splits"][0]]
    return RankTrace(
        rank=rank,
        path=path,
        base_ns=base_ns,
        row=found.row[order],
        kind=kind,
        name=indices(names),
        start_ns=start_ns[order],
        dur_ns=dur_ns[order],
        cpu_start_ns=column("cpu_ts", lambda values: _whole_ns(values, "cpu_ts")),
        cpu_dur_ns=column("cpu_dur", lambda values: _whole_ns(values, "cpu_dur")),
        helpers_cpu_ns=column("helpers_cpu_dur", lambda values: _whole_ns(values, "helpers_cpu_dur")),
        bytes=column("bytes", _sizes),
        sent=column("sent", _sizes),
        received=column("out_splits", lambda _splits: _sizes([_received(a) for a in uneven])),
        flops=column("flops", _sizes),
        memory=memory,
        **{key: column(key, indices) for key in _TEXT_COLUMNS},
        strings=tuple(strings.values),
        groups=groups,
        **ints,
    )


def _said(args: Sequence[Event], told: Sequence[int]) -> dict[str, tuple[list[int], list[Any]]]:
    """For each key that becomes a column: the events that say it, and what they say.

    One pass over what is there; most events have few of the keys.
    """
    found: dict[str, tuple[list[int], list[Any]]] = {key: ([], []) for key in _COLUMNS}
    for i in told:
        for key, value in args[i].items():
            if key in found:
                rows, values = found[key]
                rows.append(i)
                values.append(value)
    return found


def _step_number(name: str) -> int:
    digits = name.removeprefix(_STEP)
    return int(digits) if digits.isdigit() else MISSING


def _ranks(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(rank) is int and rank >= 0 for rank in value):
        raise ValueError("the ranks of a group are not a list of whole numbers")
    return tuple(value)


def _received(args: Event) -> int:
    """Bytes that a rank gets from an all-to-all with uneven parts: `bytes` are those of its larger side."""
    out, given = sum(args["out_splits"]), sum(args["in_splits"])
    return int(args["bytes"]) * out // max(out, given, 1)


def _sizes(values: Sequence[int]) -> I64:
    sizes = np.array(values, np.int64)
    if sizes.size and sizes.min() < MISSING:
        raise ValueError("a negative number of bytes")
    return sizes


def _ns(items: Sequence[Event], key: str) -> I64:
    """A column of microseconds as whole ns. Relative to a base, float64 holds them exactly."""
    return _whole_ns([i.get(key, np.nan) for i in items], key)


def _whole_ns(values: Sequence[float], key: str) -> I64:
    raw = np.array(values, np.float64)
    missing = ~np.isfinite(raw)
    if np.nanmax(np.abs(raw), initial=0.0) > _LARGEST_US:
        raise ValueError(f"a {key} that does not fit 64 bits")
    if key.endswith("dur") and np.nanmin(raw, initial=0.0) < 0:
        raise ValueError(f"a negative {key}")
    whole: I64 = np.rint(np.where(missing, 0.0, raw) * 1000).astype(np.int64)
    whole[missing] = MISSING
    return whole


def _int32(values: Sequence[int]) -> I32:
    return np.array(values, np.int32)


def _memory(events: Sequence[Any]) -> MemorySamples:
    samples = [e for e in events if isinstance(e, dict) and e.get("ph") == "C" and e.get("name") == "memory"]
    samples.sort(key=_timestamp)
    rows = [[int(e["args"].get(c, 0)) for c in MEMORY_CATEGORIES] for e in samples]
    return MemorySamples(
        time_ns=_ns(samples, "ts"),
        bytes=np.array(rows, np.int64).reshape(len(rows), len(MEMORY_CATEGORIES)),
    )


def _timestamp(event: Event) -> float:
    return float(event["ts"])


class _Strings:
    """Gives every distinct text a number."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._known: dict[str, int] = {}

    def index(self, text: str | None) -> int:
        if text is None:
            return MISSING
        if text not in self._known:
            if not isinstance(text, str):
                raise TypeError(f"{text!r} where a text is needed")
            self._known[text] = len(self.values)
            self.values.append(text)
        return self._known[text]
