"""run.toml: what was run, on what, and what the rank files are (schema 1).

The recorder writes it and everything else reads it, so this module is the one place that knows the
keys. Unknown keys and an unknown schema are errors: a manifest that is half understood would give
numbers that are half right.
"""

from __future__ import annotations

import math
import os
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from generator.errors import UserError, did_you_mean, line_of
from generator.texts import parse_toml, read_text

SCHEMA = 1
FILE_NAME = "run.toml"
KINDS = ("training", "bench", "calibration")
_RESTORE = "Restore the file as the recorder wrote it."


@dataclass(frozen=True, slots=True)
class Mesh:
    """Sizes of the parallel dimensions, and where each rank stands in them."""

    dp: int = 1
    shard: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    #: One table a rank: dimension name to coordinate.
    coordinates: tuple[dict[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Of a pipeline: its name and the micro-batches of a step."""

    name: str
    microbatches: int
    #: Stages on each rank.
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class Model:
    """Dimensions of the decoder-only transformer and what they come to."""

    d_model: int
    layers: int
    heads: int
    vocabulary: int
    #: Parameters of the whole model, and those that each rank owns (its shard or stage).
    parameters: int
    parameters_per_rank: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of one step over all ranks, tokens of a sequence, and the text they are cut from."""

    sequences: int
    tokens: int
    text: str
    text_sha256: str
    seed: int


@dataclass(frozen=True, slots=True)
class Precision:
    """Element types by what they hold."""

    parameters: str = "float32"
    gradients: str = "float32"
    reduction: str = "float32"


@dataclass(frozen=True, slots=True)
class Optimizer:
    name: str
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a scheme that change its communication; zero or false where they do not apply."""

    bucket_mib: float = 0.0
    #: FSDP units below the root.
    units: int = 0
    prefetch: int = 0
    asynchronous_unshard: bool = False
    reshard_after_forward: bool = False
    #: Micro-batches whose gradients are added up before a step; 0 for none.
    accumulation: int = 0
    #: Whether each of them is reduced over the ranks, not only their sum.
    reduce_each: bool = False
    #: Activation checkpointing of each block: "", "reentrant" or "early-stop".
    recompute: str = ""
    #: How a long sequence is cut: "", "contiguous" or "zigzag".
    sequence_order: str = ""
    #: Of a mixture of experts: experts over all ranks, and how tokens find them.
    experts: int = 0
    router: str = ""
    #: Layers of each pipeline stage, where they are not equal.
    layers_per_stage: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    torch: str
    backend: str
    threads_per_rank: int
    ranks_per_core: float
    #: Cores that the ranks are pinned to, in turn; 0 where they run on any.
    pinned_cores: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """The network between ranks. Rates are of one node's interface, each direction."""

    #: "tbf" (namespaces behind a token bucket), "loopback" (nothing limits it) or "none" (one rank).
    method: str
    #: Mbit/s; 0 where the rate is not limited.
    rate_mbit: int
    #: Bytes that pass before the token bucket limits; 0 without one.
    burst_bytes: int
    #: Id of the calibration run of this link; empty for a calibration itself or when there is none.
    calibration: str = ""
    #: Ranks that share an interface; among themselves nothing limits them.
    ranks_per_node: int = 1


def nodes_of(ranks: Sequence[int], ranks_per_node: int) -> int:
    """Nodes that some ranks are spread over; 0 where every rank is a node of its own."""
    return len({rank // ranks_per_node for rank in ranks}) if ranks_per_node > 1 else 0


@dataclass(frozen=True, slots=True)
class Ratio:
    """Communication alone over computation alone, dimensionless: what makes a scale model comparable.

    Communication is the wire bytes of the ring algorithm over the link's nominal rate, computation
    the thread-CPU time outside waits, both of one rank and step (medians over steps, mean over ranks).
    Where ranks share an interface, calls inside a node do not count, and a rank's part of the rate is
    smaller by the groups that use it at once.
    """

    communication_ms: float
    computation_ms: float
    value: float


@dataclass(frozen=True, slots=True)
class Step:
    index: int
    #: Warm-up steps are kept but never shown as representative.
    warmup: bool = False
    #: The step that recorded memory; its times are inflated by that and are not used.
    detail: bool = False
    loss: float = 0.0


@dataclass(frozen=True, slots=True)
class RankFile:
    rank: int
    file: str
    bytes: int
    events: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One line of a link's calibration: an operation at one size in one group shape."""

    op: str
    members: int
    #: Payload, bytes (the full tensor).
    bytes: int
    #: Wall from the last arrival to the last end, ns: median and quartiles over repeats.
    median_ns: int
    low_ns: int
    high_ns: int
    repeats: int
    #: Bytes that one member's interface sent, per call (mean over members); where ranks share it, all theirs.
    sent_bytes: int
    #: Nodes that the members are spread over, evenly; 0 where every rank is a node of its own.
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything run.toml holds."""

    schema: int
    id: str
    title: str
    #: "training", "bench" (steps that train nothing: no model, no losses) or "calibration" (no steps).
    kind: str
    scheme: str
    description: str
    #: The file of the recorder that defines the scheme, relative to the project.
    source: str
    command: str
    commit: str
    date: str
    machine: Machine
    link: Link
    #: Id of the run whose losses this one must reproduce.
    partner: str = ""
    mesh: Mesh = field(default_factory=Mesh)
    schedule: Schedule | None = None
    model: Model | None = None
    batch: Batch | None = None
    precision: Precision = field(default_factory=Precision)
    optimizer: Optimizer | None = None
    options: Options = field(default_factory=Options)
    ratio: Ratio | None = None
    steps: tuple[Step, ...] = ()
    ranks: tuple[RankFile, ...] = ()
    #: Only of a calibration.
    table: tuple[LinkRow, ...] = ()

    @property
    def world_size(self) -> int:
        return len(self.ranks)

    @property
    def has_steps(self) -> bool:
        """Whether its ranks ran steps that can be laid out in time: all but calibrations."""
        return self.kind != "calibration"

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step: a pipeline's, or those whose gradients are added up."""
        return self.schedule.microbatches if self.schedule else max(1, self.options.accumulation)

    @property
    def timed_steps(self) -> tuple[int, ...]:
        """Indices of the steps that may be representative: neither warm-up nor detail."""
        return tuple(s.index for s in self.steps if not s.warmup and not s.detail)


def read_manifest(path: Path) -> Manifest:
    """Read and check a run.toml. Raises UserError with file, line and remedy."""
    if not os.path.lexists(path):
        raise UserError(
            f"a run needs a {FILE_NAME} and there is none",
            path=path.parent,
            remedy="Record it with 'shardbook record', or remove the folder.",
        )
    text = read_text(path)
    data = parse_toml(text, path, remedy=_RESTORE)
    schema = data.get("schema")
    if schema != SCHEMA:
        raise UserError(
            f"schema {schema!r} is not known, only {SCHEMA} is",
            path=path,
            line=line_of(text, "schema"),
            remedy="Record the run again, or update Shardbook.",
        )
    manifest: Manifest = _build(Manifest, data, path, text, "")
    if manifest.id != path.parent.name:
        raise UserError(
            f"the id '{manifest.id}' differs from the folder's name '{path.parent.name}'",
            path=path,
            line=line_of(text, "id ="),
            remedy="Rename one of them.",
        )
    for what, where in _mistakes(manifest):
        raise UserError(what, path=path, line=line_of(text, where), remedy=_RESTORE)
    return manifest


def _mistakes(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What its values contradict, each with the text to find its line by."""
    if manifest.id.lower() == "index.html":
        yield f"the id '{manifest.id}' is the address of the list of runs", "id ="
    if not manifest.id.isprintable():
        yield "the id is not on one line", "id ="
    if manifest.kind not in KINDS:
        yield f"unknown kind '{manifest.kind}', known are {', '.join(KINDS)}", "kind ="
    if manifest.partner == manifest.id:
        yield "a run cannot be its own partner", "partner ="
    if manifest.has_steps and not manifest.ranks:
        yield f"a {manifest.kind} run needs rank files", "kind ="
    if manifest.has_steps and not manifest.timed_steps:
        yield f"a {manifest.kind} run needs a step that is neither warm-up nor detail", "steps"
    indices = [s.index for s in manifest.steps]
    if len(set(indices)) < len(indices):
        yield "a step occurs twice", "steps"
    names = [r.file for r in manifest.ranks]
    if len(set(names)) < len(names):
        yield "a rank file occurs twice", "ranks"
    mesh, ranks = manifest.mesh, manifest.world_size
    if min(mesh.dp, mesh.shard, mesh.tp, mesh.pp, mesh.cp, mesh.ep) < 1:
        yield "a dimension of the mesh is smaller than 1", "[mesh]"
    if mesh.coordinates and len(mesh.coordinates) != ranks:
        yield (
            f"the mesh has coordinates of {len(mesh.coordinates)} ranks and there are {ranks}",
            "coordinates",
        )
    if manifest.has_steps and manifest.model and len(manifest.model.parameters_per_rank) != ranks:
        yield f"'parameters_per_rank' does not name each of {ranks} ranks", "parameters_per_rank"


def to_toml(manifest: Manifest) -> dict[str, Any]:
    """The manifest as plain data in the order of its fields, leaving out what is at its default."""
    plain: dict[str, Any] = _plain(manifest)
    return plain


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        out = {}
        for f in fields(value):
            item = getattr(value, f.name)
            default = f.default_factory() if f.default_factory is not NO_DEFAULT else f.default
            if item is None or (default is not NO_DEFAULT and item == default):
                continue
            out[f.name] = _plain(item)
        return out
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _build(cls: type[Any], data: Any, path: Path, text: str, where: str) -> Any:
    """Make a dataclass of parsed TOML, strictly: no unknown key, no missing key, no wrong type."""
    known = {f.name: f for f in fields(cls)}
    hints = typing.get_type_hints(cls)
    if not isinstance(data, dict):
        raise UserError(f"'{where}' must be a table", path=path, line=line_of(text, where.split(".")[-1]))
    for key in data:
        if key not in known:
            at = f"[{where}] " if where else ""
            raise UserError(
                f"unknown key {at}'{key}'",
                path=path,
                line=line_of(text, key),
                remedy=did_you_mean(key, known),
            )
    values = {}
    for name, f in known.items():
        at = f"{where}.{name}" if where else name
        if name in data:
            values[name] = _convert(hints[name], data[name], path, text, at)
        elif f.default is NO_DEFAULT and f.default_factory is NO_DEFAULT:
            raise UserError(f"the key '{at}' is missing", path=path, remedy=_RESTORE)
    return cls(**values)


def _convert(hint: Any, value: Any, path: Path, text: str, where: str) -> Any:
    """One value as its annotation asks: scalars, tuples of something, tables, optional tables."""
    origin = typing.get_origin(hint)
    if origin is types.UnionType:
        inner = next(a for a in typing.get_args(hint) if a is not types.NoneType)
        return _convert(inner, value, path, text, where)
    if origin is tuple and isinstance(value, list):
        inner = typing.get_args(hint)[0]
        return tuple(_convert(inner, v, path, text, where) for v in value)
    if origin is dict and isinstance(value, dict):
        inner = typing.get_args(hint)[1]
        return {k: _convert(inner, v, path, text, f"{where}.{k}") for k, v in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, value, path, text, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(
            f"'{where}' must be a finite number",
            path=path,
            line=line_of(text, where.split(".")[-1]),
            remedy=_RESTORE,
        )
    if isinstance(hint, type) and type(value) is hint:
        return value
    wanted = getattr(hint, "__name__", str(hint))
    raise UserError(
        f"'{where}' must be of type {wanted}, not {type(value).__name__}",
        path=path,
        line=line_of(text, where.split(".")[-1]),
        remedy=_RESTORE,
    )
