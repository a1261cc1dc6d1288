"""The pages of the runs: what was run, how right its reconstruction is, and the files to check it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import generator
from generator.errors import UserError
from generator.lessons.vocabulary import metric_label
from generator.publish import cluster, markdown, show
from generator.publish.illustrate import run_figures
from generator.publish.library import MODES, Library
from generator.publish.model import (
    CalibrationLine,
    Check,
    Fact,
    FileLine,
    Link,
    LossLine,
    MetricLine,
    Page,
    RunData,
    RunLine,
    RunsData,
)
from generator.publish.promises import meter
from generator.publish.urls import RUNS, run_file_url, run_url
from generator.runs.manifest import FILE_NAME, Manifest
from generator.timeline.metrics import METRICS, Metric
from generator.timeline.spans import Timeline
from generator.timeline.validation import LOSS_TOLERANCE, REPLAY_TOLERANCE


def run_pages(library: Library, used_in: Mapping[str, Sequence[Link]]) -> tuple[Page, ...]:
    """One page a run and the list of all. `used_in`: the exercises that use each run, by id."""
    pages = [_run_page(library, manifest, tuple(used_in.get(manifest.id, ()))) for manifest in _all(library)]
    lines = tuple(_line(library, manifest) for manifest in _all(library))
    index = Page(
        url=RUNS, template="runs.html", title="Recorded runs", data=RunsData(runs=lines),
        description="All recorded runs of this book, with their step times and links.",
    )  # fmt: skip
    return (index, *pages)


def _all(library: Library) -> tuple[Manifest, ...]:
    return tuple(library.manifests.values())


def _run_page(library: Library, manifest: Manifest, used_in: tuple[Link, ...]) -> Page:
    stepped = manifest.has_steps
    timelines = {mode: library.timeline(manifest.id, mode) for mode in MODES} if stepped else {}
    shown = timelines.get("isolated")
    if not stepped:
        library.check(manifest.id)
    ids = [m.id for m in _all(library)]
    at = ids.index(manifest.id)
    neighbours = tuple(Link(run_url(i), i) for i in (*ids[max(0, at - 1) : at], *ids[at + 1 : at + 2]))
    partner = Link(run_url(manifest.partner), manifest.partner) if manifest.partner else None
    name, text = scheme_source(manifest.source)
    data = RunData(
        id=manifest.id,
        title=manifest.title,
        text=manifest.description,
        manifest_url=run_file_url(manifest.id, FILE_NAME),
        used_in=used_in,
        neighbours=neighbours,
        figures=run_figures(library, manifest, timelines),
        checks=_checks(library, manifest) if stepped else (),
        losses=_losses(library, manifest, shown) if stepped else (),
        partner=partner,
        what=_what(manifest),
        where=_where(manifest),
        step=shown.step if shown else 0,
        ranks=tuple(r.rank for r in shown.ranks) if shown else (),
        metrics=_metrics(timelines),
        table=_table(manifest),
        files=_files(manifest),
        command=manifest.command,
        source_name=name,
        source=markdown.code(text, "python"),
    )
    return Page(
        url=run_url(manifest.id), template="run.html", title=f"Run {manifest.id}", data=data,
        description=f"{manifest.title}: the recording, how right its reconstruction is, and its files.",
    )  # fmt: skip


def scheme_source(source: str) -> tuple[str, str]:
    """The file of the recorder that defines a scheme: its name and text, empty where it is not there."""
    package = Path(generator.__file__).resolve().parent
    path = (package.parent / source).resolve()
    if path.suffix != ".py" or not path.is_relative_to(package) or not path.is_file():
        return source, ""
    return path.relative_to(package.parent).as_posix(), path.read_text(encoding="utf-8")


def _line(library: Library, manifest: Manifest) -> RunLine:
    times = dict.fromkeys(MODES, "–")
    matched = loss = "–"
    if manifest.has_steps:
        times = {mode: show.milliseconds(library.timeline(manifest.id, mode).step_ns) for mode in MODES}
        found = library.validation(manifest.id)
        if found.calls:
            matched = f"{show.integer(found.matched)} of {show.integer(found.calls)}"
        if found.loss_difference is not None:
            loss = show.power(found.loss_difference)
    return RunLine(
        id=manifest.id,
        title=manifest.title,
        url=run_url(manifest.id),
        ranks=str(manifest.world_size) if manifest.ranks else "–",
        link=link_rate(manifest),
        ratio=show.number(manifest.ratio.value, 2) if manifest.ratio and manifest.world_size > 1 else "–",
        matched=matched,
        loss=loss,
        partner=manifest.partner,
        **times,
    )


def link_rate(manifest: Manifest) -> str:
    """The link in a word or two: its rate, or that nothing limits it."""
    if manifest.world_size == 1:
        return "none"
    if not manifest.link.rate_mbit:
        return "loopback"
    rate, shared = manifest.link.rate_mbit, manifest.link.ranks_per_node
    each = f" for {shared} ranks" if shared > 1 else ""
    if rate < 1000:
        return f"{rate}{show.THIN}Mbit/s{each}"
    return f"{show.number(rate / 1000, 0 if rate % 1000 == 0 else 1)}{show.THIN}Gbit/s{each}"


def _checks(library: Library, manifest: Manifest) -> tuple[Check, ...]:
    found = library.validation(manifest.id)
    checks = []
    if found.loss_difference is not None:
        checks.append(Check(
            f"Loss against {manifest.partner}, {len(manifest.steps)} steps, largest relative difference",
            show.power(found.loss_difference), "10⁻⁶", meter(found.loss_difference, LOSS_TOLERANCE),
        ))  # fmt: skip
    if found.calls:
        checks.append(Check(
            "Collectives and sends matched across ranks, all steps",
            f"{show.integer(found.matched)} of {show.integer(found.calls)}", "all",
            meter(found.calls - found.matched, found.calls),
        ))  # fmt: skip
    error = found.median_replay_error
    checks.append(Check(
        "Replay with recorded durations against the recorded step, median", show.percent(error, 2),
        show.percent(REPLAY_TOLERANCE, 0), meter(abs(error), REPLAY_TOLERANCE),
    ))  # fmt: skip
    checks.append(
        Check(
            "The same without the edges between ranks",
            show.percent(found.median_replay_error_alone, 2),
            "",
            None,
        )
    )
    checks.append(Check(
        f"Spread of the {len(found.step_ns)} timed steps, (longest − shortest) ÷ median",
        show.percent(found.spread), "", None,
    ))  # fmt: skip
    return tuple(checks)


def _losses(library: Library, manifest: Manifest, shown: Timeline | None) -> tuple[LossLine, ...]:
    partner = library.manifests.get(manifest.partner)
    theirs = {s.index: s.loss for s in partner.steps} if partner else {}
    lines = []
    for step, ns in zip(manifest.steps, library.validation(manifest.id).all_steps_ns, strict=True):
        other = theirs.get(step.index)
        use = "warm-up" if step.warmup else "memory; its times are not used" if step.detail else ""
        if shown and step.index == shown.step:
            use = "the one shown"
        lines.append(LossLine(
            step=step.index,
            loss=show.number(step.loss, 6) if manifest.model else "–",
            partner="" if other is None else show.number(other, 6),
            difference="" if not other else show.power(abs(step.loss / other - 1)),
            time=show.milliseconds(ns),
            use=use,
        ))  # fmt: skip
    return tuple(lines)


def _metrics(timelines: Mapping[str, Timeline]) -> tuple[MetricLine, ...]:
    """Metrics over all ranks and by rank, in each mode; a count that has no mode stands once."""
    lines = []
    for metric in (m for m in METRICS.values() if m.of_a_run):
        again = False
        labels = set()
        for mode, timeline in timelines.items():
            label = metric_label(metric, mode)
            line = _metric(metric, timeline, label, again) if label not in labels else None
            if line:
                lines.append(line)
                labels.add(label)
                again = True
    return tuple(lines)


def _metric(metric: Metric, timeline: Timeline, label: str, again: bool) -> MetricLine | None:
    try:
        whole = metric(timeline)
        by_rank = (
            [metric(timeline, rank=r.rank) for r in timeline.ranks] if "rank" in metric.parameters else []
        )
    except UserError:
        return None  # the metric has no meaning here: a bubble without a pipeline
    return MetricLine(
        name=metric.name,
        unit=show.metric_unit(whole, metric.unit),
        values=tuple(show.metric(v, metric.unit) for v in by_rank) or ("",) * len(timeline.ranks),
        all=show.metric(whole, metric.unit),
        label=label,
        again=again,
    )


def _what(manifest: Manifest) -> tuple[Fact, ...]:
    mesh = manifest.mesh
    sizes = {"dp": mesh.dp, "shard": mesh.shard, "tp": mesh.tp, "pp": mesh.pp, "cp": mesh.cp, "ep": mesh.ep}
    used = " × ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    if not used and manifest.world_size > 1:
        used = f"{manifest.world_size} ranks"
    facts = [Fact("scheme", manifest.scheme), Fact("mesh", used or "1 rank")]
    if manifest.schedule:
        facts.append(
            Fact("schedule", f"{manifest.schedule.name}, {manifest.schedule.microbatches} micro-batches")
        )
    if model := manifest.model:
        own = sorted(set(model.parameters_per_rank))
        share = " to ".join(show.integer(n) for n in ([own[0], own[-1]] if len(own) > 1 else own))
        facts += [
            Fact("model", f"{model.layers} layers, width {model.d_model}, {model.heads} heads, "
                          f"vocabulary {show.integer(model.vocabulary)}"),
            Fact("parameters", show.integer(model.parameters), f"a rank owns {share}"),
        ]  # fmt: skip
    if batch := manifest.batch:
        facts += [
            Fact("batch", f"{batch.sequences} × {batch.tokens} tokens", f"seed {batch.seed}"),
            Fact("text", batch.text, f"SHA-256 {batch.text_sha256[:12]}…"),
        ]
    if manifest.optimizer:
        facts.append(
            Fact("optimizer", f"{manifest.optimizer.name}, rate {manifest.optimizer.learning_rate:g}")
        )
    if manifest.model:
        precision = manifest.precision
        same = {precision.parameters, precision.gradients, precision.reduction}
        each = (f"{kind} {getattr(precision, kind)}" for kind in ("parameters", "gradients", "reduction"))
        facts.append(Fact("precision", precision.parameters if len(same) == 1 else ", ".join(each)))
    options = manifest.options
    named = {
        "bucket": f"{options.bucket_mib:g} MiB" if options.bucket_mib else "",
        "FSDP units": f"{options.units} below the root" if options.units else "",
        "prefetch": f"{options.prefetch} unit" if options.prefetch else "",
        "unshard": "asynchronous" if options.asynchronous_unshard else "",
        "after forward": "resharded" if options.reshard_after_forward else "kept" if options.units else "",
        "accumulation": f"{options.accumulation} micro-batches" if options.accumulation else "",
        "gradients reduced": "for each of them" if options.reduce_each else "",
        "recomputation": options.recompute.replace("-", " "),
    }
    facts += [Fact(name, value) for name, value in named.items() if value]
    return tuple(facts)


def _where(manifest: Manifest) -> tuple[Fact, ...]:
    machine, link = manifest.machine, manifest.link
    facts = [
        Fact("machine", f"{machine.cores} cores, {machine.cpu}", f"{machine.memory_gib:g} GiB"),
        Fact("kernel", machine.kernel),
        Fact("software", f"Python {machine.python}, PyTorch {machine.torch}, {machine.backend}"),
        Fact("ranks per core", f"{machine.ranks_per_core:g}", f"threads a rank: {machine.threads_per_rank}"),
        Fact("link", link_rate(manifest), f"{link.method}, burst {show.size(link.burst_bytes)}"
             if link.burst_bytes else link.method),
    ]  # fmt: skip
    if link.calibration:
        facts.append(Fact("calibration", link.calibration, url=run_url(link.calibration)))
    if ratio := manifest.ratio:
        facts.append(Fact("comm. ÷ comp.", show.number(ratio.value, 2), label="recorded"))
        if stands := cluster.stands_for(manifest):
            facts.append(Fact("same on a cluster", stands, cluster.ASSUMED, label="formula"))
    facts.append(Fact("recorded", manifest.date, f"commit {manifest.commit}" if manifest.commit else ""))
    return tuple(facts)


def _files(manifest: Manifest) -> tuple[FileLine, ...]:
    return tuple(
        FileLine(
            name=r.file,
            url=run_file_url(manifest.id, r.file),
            size=show.size(r.bytes),
            events=show.integer(r.events),
            sha256=r.sha256,
        )
        for r in manifest.ranks
    )


def _counted_nodes(nodes: int) -> str:
    return "one node" if nodes == 1 else f"{nodes} nodes"


def _table(manifest: Manifest) -> tuple[CalibrationLine, ...]:
    return tuple(
        CalibrationLine(
            op=row.op.replace("_", "-"),
            members=f"{row.members} on {_counted_nodes(row.nodes)}" if row.nodes else str(row.members),
            payload=show.size(row.bytes),
            median=show.number(row.median_ns / 1e6, 2),
            quartiles=f"{show.number(row.low_ns / 1e6, 2)} to {show.number(row.high_ns / 1e6, 2)}",
            sent=show.size(row.sent_bytes),
            repeats=row.repeats,
        )
        for row in manifest.table
    )
