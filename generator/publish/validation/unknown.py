"""What is not known, with the size of what is known of it; and what the ring model makes of the link."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from generator.publish import show
from generator.publish.figures import dots
from generator.publish.figures.dots import Dot
from generator.publish.library import Library
from generator.publish.validation.model import (
    DotFigure,
    Ledger,
    LedgerRow,
    PriceSection,
    StripLine,
    Unknown,
)
from generator.publish.validation.shown import RECONSTRUCTED, axis_percent, prose, runs, signed
from generator.runs.manifest import LinkRow
from generator.timeline.links import LinkModel, ring_link
from generator.timeline.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Price:
    """A call on a calibrated link: what the ring model asks for it, and what it took, ns."""

    calibration: str
    row: LinkRow
    ring_ns: int

    @property
    def difference(self) -> float:
        return self.ring_ns / self.row.median_ns - 1

    @property
    def name(self) -> str:
        return f"{show.size(self.row.bytes)}, {self.calibration}"


def prices(library: Library) -> tuple[Price, ...]:
    """Every calibrated call that takes a time under the ring model."""
    found = []
    for manifest in library.manifests.values():
        if manifest.table:
            link = ring_link(library.calibration(manifest.id))
            found += [
                Price(manifest.id, row, ns) for row in manifest.table if (ns := _ring_ns(link, row)) > 0
            ]
    return tuple(found)


def _ring_ns(link: LinkModel, row: LinkRow) -> int:
    return link.duration_ns(row.op, row.bytes, row.members, row.nodes)


def price_section(library: Library) -> PriceSection | None:
    found = prices(library)
    if not found:
        return None
    operations = {p.row.op: [q for q in found if q.row.op == p.row.op] for p in found}
    axis = dots.linear([0.0, *(p.difference for p in found)], axis_percent)
    lines = []
    for op, members in operations.items():
        values = [p.difference for p in members]
        name = op.replace("_", "-")
        title = f"{name}, {len(members)} sizes and groups: {signed(min(values))} to {signed(max(values))}"
        found_dots = [Dot(p.difference, p.name, RECONSTRUCTED) for p in members]
        picture = dots.strip(axis, found_dots, title, named=0, counted="")
        lines.append(StripLine(name, f"{len(members)} measured", Markup(picture)))
    figure = DotFigure(
        title="Price under the ring model against the measured call",
        note="a dot a size and group of a calibration",
        labels=(RECONSTRUCTED,),
        lines=tuple(lines),
        axis=Markup(dots.axis_picture(axis)),
        ledger=Ledger(
            "Price under the ring model against the measured call",
            ("operation", "measured", "least", "median", "most"),
            tuple(_ledger_row(op, [p.difference for p in members]) for op, members in operations.items()),
        ),
    )
    return PriceSection(figure, _message_words(library, found))


def _ledger_row(op: str, found: Sequence[float]) -> LedgerRow:
    shown = (signed(v, 0) for v in (min(found), statistics.median(found), max(found)))
    return LedgerRow(op.replace("_", "-"), "", (str(len(found)), *shown))


def _message_words(library: Library, found: tuple[Price, ...]) -> str:
    """The messages that are priced farthest from what was measured, in the most runs."""
    sizes: dict[tuple[str, int], list[str]] = {}
    for manifest in library.with_steps:
        if manifest.link.calibration:
            calls = library.timeline(manifest.id, "isolated").calls
            for size in {c.bytes for c in calls if c.point_to_point}:
                sizes.setdefault((manifest.link.calibration, size), []).append(manifest.id)
    priced = [p for p in found if p.row.op == "send" and (p.calibration, p.row.bytes) in sizes]
    if not priced:
        return ""
    far = max(priced, key=lambda p: abs(p.difference) * len(sizes[p.calibration, p.row.bytes]))
    among = sizes[far.calibration, far.row.bytes]
    return prose(
        f"Messages of {show.size(far.row.bytes)} occur in {runs(len(among))} over {far.calibration}: the "
        f"ring model asks {show.time(far.ring_ns, 2)} for one, and one took "
        f"{show.time(far.row.median_ns, 2)} when the link was calibrated ({signed(far.difference, 0)}). The "
        "first bytes pass a limited link at once, and a latency and a rate do not say so."
    )


# ---- what is not known


def unknown(library: Library, price: PriceSection | None, moved: str) -> tuple[Unknown, ...]:
    """What no check of this page reaches. `moved`: what is known of calls that the replay moves."""
    found = (*_devices(library), *_queue(moved), *_price(price), *_reductions(library), *_machine(library))
    return tuple(replace(u, text=prose(u.text)) for u in found)


def _devices(library: Library) -> Iterator[Unknown]:
    many = [m for m in library.with_steps if m.world_size > 2]
    if many:
        sizes = sorted({m.world_size for m in many})
        listed = " or ".join(map(str, sizes))
        checks = library.core_checks()
        rests = (
            "That a step with a core for each rank can be predicted was checked with two ranks."
            if checks
            else "That a step with a core for each rank can be predicted has not been checked in this book."
        )
        yield Unknown(
            "More ranks than two",
            f"{rests} {runs(len(many))} have {listed} ranks on fewer cores. Their isolated steps rest on the "
            "same method, and on nothing that was measured with as many cores.",
        )
    if library.with_steps:
        yield Unknown(
            "GPUs",
            "Nothing was held against a GPU. Kernels, streams and NCCL’s algorithms are not in these "
            "recordings. What is taught from them are ratios and orders of events, never milliseconds.",
        )


def _queue(moved: str) -> Iterator[Unknown]:
    if moved:
        yield Unknown("One queue a group", f"Calls of a group are laid out one after the other. {moved}")


def _price(price: PriceSection | None) -> Iterator[Unknown]:
    if price and price.words:
        yield Unknown("The price of small messages", price.words)


def _reductions(library: Library) -> Iterator[Unknown]:
    """FSDP2 on gloo waits for each reduce-scatter; how much of them is therefore not hidden."""
    shares = []
    for manifest in library.with_steps:
        if manifest.options.units and manifest.machine.backend == "gloo":
            timeline = library.timeline(manifest.id, "isolated")
            exposed, whole = (
                METRICS[name](timeline, op="reduce_scatter") for name in ("exposed_comm", "comm_time")
            )
            if whole:
                shares.append(exposed / whole)
    if shares:
        low, high = show.percent(min(shares), 0), show.percent(max(shares), 0)
        yield Unknown(
            "Reductions under FSDP",
            "On a CPU backward waits for each reduction of gradients; on a GPU these run beside it. So "
            f"{low if low == high else f'{low} to {high}'} of the time of reduce-scatters is exposed in "
            f"{runs(len(shares))}, and how much of it a GPU would hide is not known.",
        )


def _machine(library: Library) -> Iterator[Unknown]:
    machines = {(m.machine.cpu, m.machine.cores, m.machine.memory_gib) for m in library.with_steps}
    if len(machines) == 1:
        yield Unknown(
            "Other machines",
            "All runs were recorded on one kind of machine. Ranks on one processor also share its caches and "
            "its memory; the processor time of a thread is not free of that.",
        )
