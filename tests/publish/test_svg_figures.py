"""Figures: what they say, and what they may never contain."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from generator.publish.figures import (
    Entry,
    comparison,
    logo,
    rank_facts,
    rank_notes,
    standalone,
    steps_strip,
    timeline_figure,
    timeline_table,
)
from generator.publish.figures.compare import wrapped
from generator.publish.figures.facts import operations, remark
from generator.publish.figures.lanes import doing, schedule
from generator.publish.figures.layout import WIDE
from generator.publish.figures.markup import text_width
from generator.publish.figures.memory import sampled
from generator.publish.figures.scale import TimeScale
from generator.publish.figures.step import MOST_MARKS, narrow_end
from generator.publish.show import percent, size, time
from generator.runs.manifest import Mesh
from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.metrics import METRICS
from generator.timeline.spans import Activity, Timeline
from tests.publish import synthetic

STEPS = {name: make() for name, make in synthetic.ALL.items()}
CSS = Path(__file__).parents[2] / "templates" / "css"
SVG = "{http://www.w3.org/2000/svg}"


def everything() -> dict[str, str]:
    """One SVG of every sort, by name."""
    out = {}
    for name, step in STEPS.items():
        figure = timeline_figure(step, ident=name)
        out |= {f"{name} wide": figure.wide, f"{name} narrow": figure.narrow}
    compared = comparison([Entry(n, t) for n, t in STEPS.items()], ident="all")
    for row in compared.rows:
        out |= {f"row {row.run} wide": row.wide, f"row {row.run} narrow": row.narrow}
    out |= {"key": compared.legend_wide, "key narrow": compared.legend_narrow}
    strip = steps_strip([STEPS["tp"], replace(STEPS["tp"], step=4)], ident="strip", shown=4)
    return out | {"strip": strip.wide, "strip narrow": strip.narrow}


ALL = everything()


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ALL)
def test_a_figure_is_well_formed_named_and_small(name: str) -> None:
    root = ElementTree.fromstring(ALL[name])
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert root.get("role") == "img"
    assert set(root.get("aria-labelledby", "").split()) <= set(ids)
    assert (root.findtext(f"{SVG}title") or "").strip()
    assert sum(1 for _ in root.iter()) <= MOST_MARKS


@pytest.mark.parametrize("name", ALL)
def test_a_figure_obeys_the_security_policy(name: str) -> None:
    for element in ElementTree.fromstring(ALL[name]).iter():
        assert element.tag not in (f"{SVG}style", f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject")
        assert not [a for a in element.attrib if a == "style" or a.startswith("on") or "href" in a]


def test_ids_are_unique_in_a_page() -> None:
    ids = re.findall(r' id="([^"]+)"', "".join(ALL.values()))
    assert len(ids) == len(set(ids))


def test_the_same_step_gives_the_same_bytes() -> None:
    assert everything() == ALL


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", "\"'&<>{{ x }}{% y %}", "a\x00\x1b\ud800b"])
def test_names_from_a_run_are_only_ever_text(evil: str) -> None:
    step = replace(STEPS["ddp"], run=evil)
    step = replace(step, calls=tuple(replace(c, op=evil, group=evil) for c in step.calls[:3]))
    figure = timeline_figure(step, ident=evil, notes=(evil,) * 4)
    row = comparison([Entry(evil, step, evil)], ident=evil).rows[0]
    strip = steps_strip([step], ident=evil, shown=0, aside={3: evil})
    for svg in (figure.wide, figure.narrow, row.wide, row.narrow, strip.wide, strip.narrow):
        root = ElementTree.fromstring(svg)
        assert not list(root.iter(f"{SVG}script"))
        assert "<script" not in svg
    shown = evil if evil.isprintable() else "a\ufffd\ufffd\ufffdb"
    assert shown in texts(figure.wide)


def test_blocks_of_a_pipeline_carry_their_micro_batch() -> None:
    words = texts(timeline_figure(STEPS["pp-1f1b"], ident="x").wide)
    for number in range(8):
        assert words.count(f"F{number}") == words.count(f"B{number}") == 4
    assert "number: micro-batch" in words


def test_layers_stand_in_the_blocks_that_waits_cut() -> None:
    words = texts(timeline_figure(STEPS["fsdp"], ident="x").wide)
    assert all(words.count(str(layer)) >= 4 for layer in range(8))
    assert "number: layer" in words


@pytest.mark.parametrize("name", STEPS)
def test_idle_time_stays_bare_in_the_drawing_itself(name: str) -> None:
    step = STEPS[name]
    scale = TimeScale(0, step.step_ns, WIDE.left, WIDE.plot)
    drawn: dict[int, set[int]] = {}
    for data in re.findall(r'class="[FBWOH] k" d="([^"]+)"', timeline_figure(step, ident="x").wide):
        for x, y, width, height in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)", data):
            if int(height) == WIDE.compute:
                drawn.setdefault(int(y), set()).update(range(int(x), int(x) + int(width)))
    assert len(drawn) == len(step.ranks)
    for lane, y in zip(step.ranks, sorted(drawn), strict=True):
        still = doing(lane.computation, Activity.IDLE, Activity.BLOCKED)
        for start, end in still.tolist():
            if end - start >= 2 * scale.ns_per_px:
                touched = range(int(scale.x(start)), math.ceil(scale.x(end)))
                assert not set(touched) <= drawn[y]


def test_idle_time_is_written_on_the_ground() -> None:
    step = STEPS["pp-1f1b"]
    spans = step.ranks[3].computation
    first = int(spans.start_ns[spans.activity == 0][0])
    assert f"idle {time(first, 0)}" in texts(timeline_figure(step, ident="x").wide)


def test_brackets_follow_from_the_spans() -> None:
    assert [p.name for p in schedule(STEPS["pp-1f1b"])] == ["warm-up", "one forward, one backward", "drain"]
    assert [p.name for p in schedule(STEPS["tp"])] == ["forward", "backward"]
    one_batch = synthetic.one_forward_one_backward(stages=2, batches=1)
    assert [p.name for p in schedule(one_batch)] == ["all forwards", "all backwards"]
    warm, steady, drain = schedule(STEPS["pp-1f1b"])
    assert warm.end_ns <= steady.start_ns < steady.end_ns == drain.start_ns < drain.end_ns
    # Micro-batches without stages add up gradients: there is nothing to fill or drain.
    assert schedule(replace(STEPS["pp-1f1b"], stages=1)) == ()


@pytest.mark.parametrize("name", STEPS)
def test_facts_are_the_metrics(name: str) -> None:
    step = STEPS[name]
    for rank in range(len(step.ranks)):
        facts = rank_facts(step, rank)
        assert facts.exposed == METRICS["exposed_comm"](step, rank=rank) / step.step_ns
        assert facts.blocked == METRICS["blocked"](step, rank=rank) / step.step_ns
        assert facts.peak_bytes == METRICS["peak_memory"](step, rank=rank)
        shares = (facts.forward, facts.backward, facts.optimizer, facts.host, facts.blocked, facts.idle)
        assert sum(shares) == pytest.approx(1)


def test_the_table_says_what_the_figure_shows() -> None:
    table = timeline_table(STEPS["ddp"], ("dp 0", "dp 1", "dp 2", "dp 3"))
    facts = rank_facts(STEPS["ddp"], 2)
    assert table.head[0] == "rank"
    assert table.rows[2][0] == "rank 2, dp 2"
    assert percent(facts.backward) in table.rows[2]
    assert table.rows[2][-1] == size(facts.peak_bytes)
    assert all(len(row) == len(table.head) for row in table.rows)


def test_the_mesh_names_the_ranks() -> None:
    mesh = Mesh(pp=2, tp=2, coordinates=({"pp": 0, "tp": 0}, {"pp": 0, "tp": 1}, {"pp": 1, "tp": 0}))
    assert rank_notes(mesh) == ("stage 0 · tp 0", "stage 0 · tp 1", "stage 1 · tp 0")
    figure = timeline_figure(STEPS["ddp"], ident="x", notes=rank_notes(mesh))
    assert "stage 1 · tp 0" in texts(figure.narrow)
    # Beside the names of the lanes there is room for the numbers only; the legend names them.
    assert {"1 · 0", "under a rank: stage · tp"} <= set(texts(figure.wide))
    assert not any("stage 1" in words for words in texts(figure.wide))


def test_a_focus_outlines_what_it_picks_and_follows_the_messages() -> None:
    step = STEPS["pp-1f1b"]
    plain = timeline_figure(step, ident="x")
    followed = timeline_figure(step, ident="x", focus=lambda labels: labels["microbatch"] == 3)
    assert 'class="sel"' not in plain.wide
    # Forward and backward on four ranks, so eight boxes; six messages between neighbours.
    assert sum(path.count("z") for path in re.findall(r'class="sel" d="([^"]+)"', followed.wide)) == 8
    assert followed.wide.count('class="path"') == 6


def test_a_focus_on_calls_joins_their_members() -> None:
    step = STEPS["tp"]
    figure = timeline_figure(
        step, ident="x", focus=lambda labels: labels["op"] == "all_reduce" and labels["seq"] == 5
    )
    assert figure.wide.count('class="join"') == 1
    assert sum(p.count("z") for p in re.findall(r'class="sel-around" d="([^"]+)"', figure.wide)) == 4


def test_a_narrow_figure_is_cut_where_blocks_would_be_texture_and_says_so() -> None:
    long = synthetic.one_forward_one_backward(batches=40)
    assert timeline_figure(STEPS["pp-1f1b"], ident="x").note == ""
    until = narrow_end(long, 354)
    figure = timeline_figure(long, ident="x")
    assert 0 < until < long.step_ns
    assert f"{until / 1e6:,.0f}".replace(",", "\u2009") in figure.note
    assert 'class="tear"' in figure.narrow
    assert 'class="tear"' not in figure.wide


def test_a_figure_of_very_many_blocks_keeps_to_its_marks() -> None:
    figure = timeline_figure(synthetic.one_forward_one_backward(stages=8, batches=48), ident="x")
    assert figure.wide.count("<") - figure.wide.count("</") <= MOST_MARKS


def test_calls_that_follow_each_other_can_be_counted() -> None:
    step = STEPS["ddp"]
    # Back to back on one link, though all of them are ready long before their turn.
    long = [
        replace(
            c,
            members=tuple(
                replace(
                    m,
                    arrive_ns=(100 + k) * synthetic.MS,
                    begin_ns=(100 + k) * synthetic.MS,
                    end_ns=(112 + 12 * k) * synthetic.MS,
                )
                for m in c.members
            ),
        )
        for k, c in enumerate(step.calls)
    ]
    figure = timeline_figure(replace(step, calls=tuple(long)), ident="x")
    bars = [d for d in re.findall(r'class="X k" d="([^"]+)"', figure.wide) if "v11" in d]
    assert [bar.count("z") for bar in bars] == [26] * 4


def test_memory_keeps_the_peak_of_every_column() -> None:
    curve = STEPS["single"].ranks[0].memory
    levels = sampled(curve, TimeScale(0, STEPS["single"].step_ns, 0, 40))
    assert levels.sum(axis=1).max() == curve.bytes.sum(axis=1).max()
    np.testing.assert_array_equal(levels[0][:3], curve.bytes[0][:3])


def test_a_step_without_memory_or_calls_has_no_lane_for_them() -> None:
    step = STEPS["single"]
    none = np.zeros((0, len(MEMORY_CATEGORIES)), np.int64)
    empty = replace(step.ranks[0].memory, time_ns=np.zeros(0, np.int64), bytes=none)
    bare = replace(step, ranks=(replace(step.ranks[0], memory=empty),))
    words = texts(timeline_figure(bare, ident="x").wide)
    assert "layers" in words
    assert not {"memory", "comm.", "peak"} & set(words)
    assert "peak" in texts(timeline_figure(step, ident="x").wide)


def test_runs_are_compared_on_one_axis() -> None:
    compared = comparison([Entry(n, t) for n, t in STEPS.items()], ident="x")
    single, ddp, *_ = compared.rows
    assert single.speedup == "1×"
    assert ddp.speedup == f"{STEPS['single'].step_ns / STEPS['ddp'].step_ns:.1f}×"
    assert ddp.step in texts(ddp.wide)
    # The single device's step is far longer than the others: its band is torn off, and says its time.
    assert 'class="tear"' in single.wide
    assert single.step in texts(single.wide)
    assert {"forward", "backward"} <= set(texts(single.wide))
    first_lines = [re.findall(r'class="gl" d="([^"]+?)V', row.wide) for row in compared.rows]
    assert first_lines == [["M0.5 0"]] * 5
    with pytest.raises(ValueError, match="nothing"):
        comparison([], ident="x")


def test_a_first_run_of_like_length_is_shown_whole() -> None:
    first = replace(STEPS["tp"], run="first")
    rows = comparison([Entry("a", first), Entry("b", STEPS["fsdp"])], ident="x").rows
    assert not any('class="tear"' in svg for row in rows for svg in (row.wide, row.narrow))


def test_remarks_are_computed() -> None:
    assert remark(STEPS["single"]) == ""
    assert remark(STEPS["tp"]) == "32 all-reduces, none beside computation"
    bubble = METRICS["bubble_fraction"](STEPS["pp-1f1b"])
    assert percent(float(bubble)) in remark(STEPS["pp-1f1b"])
    assert operations(STEPS["fsdp"]) == "21 all-gathers and 10 reduce-scatters"
    assert remark(STEPS["ddp"]) == "26 all-reduces: 24 of 26 run beside computation"


def test_remarks_are_broken_into_lines_that_fit() -> None:
    words = "17 all-gathers and 9 reduce-scatters run beside computation, all but 12"
    lines = wrapped(words, 11, 200, most=3)
    assert " ".join(lines) == words
    assert all(text_width(line, 11) <= 200 for line in lines)
    assert wrapped(words, 11, 60, most=3) == []


def test_a_strip_marks_the_step_that_is_shown_and_says_why_others_are_not() -> None:
    steps: list[Timeline] = [replace(STEPS["tp"], step=n) for n in range(5)]
    strip = steps_strip(steps, ident="x", shown=3, aside={0: "warm-up", 4: "memory detail"})
    words = texts(strip.narrow)
    assert [w for w in words if w.startswith("step ")] == [f"step {n}" for n in range(5)]
    assert {"warm-up", "memory detail", "shown"} <= set(words)
    assert strip.wide.count('class="ink"') == 1
    with pytest.raises(ValueError, match="a step"):
        steps_strip([], ident="x", shown=0)


def test_a_standalone_figure_brings_both_themes_and_needs_nothing_else() -> None:
    css = "".join((CSS / name).read_text(encoding="utf-8") for name in ("tokens.css", "figure.css"))
    svg = standalone(STEPS["pp-1f1b"], css=css)
    root = ElementTree.fromstring(svg)
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme: dark" in style
    assert "/*" not in style
    assert not re.search(r"@import|url\((?!#)|https?:", style)
    classes = {c for e in root.iter() for c in (e.get("class") or "").split()}
    unstyled = {c for c in classes if f".{c}" not in style}
    assert unstyled == set()


def test_the_logo_is_decoration() -> None:
    assert ElementTree.fromstring(logo()).get("aria-hidden") == "true"
