"""The browser lays every committed run out as Python does, to the nanosecond."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from generator.errors import UserError
from generator.publish.pack import script
from generator.runs.run import MEMORY_CATEGORIES
from generator.timeline.collectives import match_step
from generator.timeline.reconstruct import MODES, reconstruct, representative_step
from generator.timeline.replay import Schedule, recorded_schedule, replay
from generator.timeline.spans import Activity, Call, Spans, Timeline
from generator.timeline.whatif import Replayable, WhatIf, replay_what_if, replayable, what_if_timeline
from generator.timeline.whatif_text import PHASES, parse_what_if, what_if_text
from tests.browser.conftest import Reader, reader_of
from tests.browser.packed import ask, data_of, provide, whole, write_page
from tests.committed import calibration_of, ids_with_steps, run
from tests.publish.small import NASTY, NASTY_RUN
from tests.timeline.synthetic import Issue, Script, Wait, Work, one_f_one_b, write_run
from tests.timeline.test_links import calibration, sends

WHAT_IFS = 200
RUNS = ids_with_steps()
SCHEDULE = """(async () => {
  const data = await Shardbook.columns.of(a);
  const what = MODES.includes(b) ? b : Shardbook.whatif.parse(b);
  const found = Shardbook.replay.schedule(data, what, c);
  return { begin: sent(found.begin), end: sent(found.end), step: found.stepNs };
})()""".replace("MODES", str(list(MODES)))
#: A model, with the lane that Python's timeline has, too.
MODEL = """(async () => {
  const data = await Shardbook.columns.of(a);
  const what = MODES.includes(b) ? b : Shardbook.whatif.parse(b);
  const model = Shardbook.lanes.model(data, what), schedule = Shardbook.replay.schedule(data, what);
  const sending = (lane) =>
    Object.fromEntries(Object.entries(lane).map(([k, v]) => [k, k === "n" ? v : sent(v)]));
  return {
    ...model,
    ranks: model.ranks.map((rank, r) => {
      const own = Shardbook.lanes.computation(data, schedule, r);
      return {
        ...rank, phase: sending(rank.phase), layer: sending(rank.layer), operation: sending(rank.operation),
        comm: sending(rank.comm),
        memory: { time: sent(rank.memory.time), bytes: rank.memory.bytes.map(sent) },
        computation: own.map(sent),
      };
    }),
  };
})()""".replace("MODES", str(list(MODES)))


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = write_page(tmp_path_factory.mktemp("data"))
    with reader_of(browser) as reader:
        reader.page.goto(f"file://{path}")
        yield reader.page
        assert not reader.complaints


def in_the_page(page: Page, run_id: str, what: str, base: str = "isolated") -> Schedule:
    provide(page, run_id)
    found = ask(page, SCHEDULE, run_id, what, base)
    assert isinstance(found, dict), found
    laid = Schedule(begin_ns=whole(found["begin"]), end_ns=whole(found["end"]))
    assert found["step"] == laid.step_ns
    return laid


def assert_same(ours: Schedule, theirs: Schedule) -> None:
    np.testing.assert_array_equal(ours.begin_ns, theirs.begin_ns)
    np.testing.assert_array_equal(ours.end_ns, theirs.end_ns)


def what_of(run_id: str, base: str) -> Replayable:
    return replayable(run(run_id), mode=base, calibration=calibration_of(run_id))


@pytest.mark.parametrize("run_id", RUNS)
def test_every_node_begins_and_ends_as_in_python(page: Page, run_id: str) -> None:
    for base in MODES:
        what = what_of(run_id, base)
        plain = recorded_schedule(what.graph) if base == "recorded" else replay(what.graph, what.durations)
        assert_same(in_the_page(page, run_id, base), plain)
        index = RUNS.index(run_id)
        random_ones = random.Random(f"{base} {run_id}")
        # Some on the recorded durations, and enough on the isolated ones.
        for _ in range(1 if base == "recorded" else WHAT_IFS // len(RUNS) + (index < WHAT_IFS % len(RUNS))):
            what_if = any_what_if(random_ones, what)
            text = what_if_text(what_if)
            expected = laid_out(what, what_if)
            if expected is None:
                assert "circle" in ask(page, SCHEDULE, run_id, text, base)
            else:
                assert_same(in_the_page(page, run_id, text, base), expected)


def laid_out(what: Replayable, what_if: WhatIf) -> Schedule | None:
    """None where ranks wait for each other in a circle."""
    try:
        return replay_what_if(what, what_if)
    except UserError as error:
        if "circle" not in error.what:
            raise
        return None


def any_what_if(choose: random.Random, what: Replayable) -> WhatIf:
    """One of all that can be asked of a run, most with a few changes, some with many."""

    def factor() -> int:
        return choose.choice((choose.randrange(500, 2001), choose.randrange(0, 100_001), 0, 1, 999))

    def some(values: list[Any]) -> list[Any]:
        return [v for v in values if choose.random() < choose.choice((0.1, 0.5))]

    phases = {PHASES[n] for n in np.unique(what.phase).tolist() if 0 <= n < len(PHASES)}
    if phases & {"backward_input", "backward_weight"}:
        phases.add("backward")
    layers = np.unique(what.layer[what.layer >= 0]).tolist()
    asynchronous = some(list(what.ops))
    return WhatIf(
        ranks={rank: factor() for rank in some(np.unique(what.graph.rank).tolist())},
        phases={phase: factor() for phase in some(sorted(phases))},
        layers={layer: factor() for layer in some(layers)},
        latency=choose.choice((1000, factor())),
        bandwidth=choose.choice((1000, max(1, factor()))),
        free=choose.random() < 0.1,
        free_ops=frozenset(some(list(what.ops))),
        asynchronous=frozenset(asynchronous),
        blocking=frozenset(op for op in some(list(what.ops)) if op not in asynchronous),
        balance=choose.random() < 0.3,
    )


# ---- what is drawn


@pytest.mark.parametrize("run_id", RUNS)
def test_lanes_and_calls_are_those_of_pythons_timeline(page: Page, run_id: str) -> None:
    for mode in MODES:
        theirs = reconstruct(run(run_id), mode=mode, calibration=calibration_of(run_id))
        assert_alike(model_of(page, run_id, mode), theirs)


@pytest.mark.parametrize(
    ("run_id", "text"),
    [
        ("3d", "rank3=1700,balance"),
        ("fsdp", "block=all_gather,latency=0"),
        ("pp-interleaved-zb", "async=send,bandwidth=300"),
        ("ep-skewed", "balance,free=all_to_all"),
    ],
)
def test_so_they_are_under_other_costs(page: Page, run_id: str, text: str) -> None:
    theirs = what_if_timeline(what_of(run_id, "isolated"), parse_what_if(text))
    assert_alike(model_of(page, run_id, text), theirs)


def model_of(page: Page, run_id: str, what: str) -> dict[str, Any]:
    provide(page, run_id)
    found = ask(page, MODEL, run_id, what)
    assert isinstance(found, dict), found
    return found


def assert_alike(model: dict[str, Any], timeline: Timeline) -> None:
    """Everything of a timeline stands in a model, and nothing else."""
    for name, value in (
        ("run", timeline.run), ("mode", timeline.mode), ("linkModel", timeline.link_model),
        ("step", timeline.step),
        ("stepNs", timeline.step_ns), ("stages", timeline.stages), ("microbatches", timeline.microbatches),
        ("ranksPerNode", timeline.ranks_per_node), ("memoryCategories", list(MEMORY_CATEGORIES)),
    ):  # fmt: skip
        assert model[name] == value, name
    assert model["calls"] == [call_of(call) for call in timeline.calls]
    assert [r["rank"] for r in model["ranks"]] == [r.rank for r in timeline.ranks]
    for ours, theirs in zip(model["ranks"], timeline.ranks, strict=True):
        spans = theirs.computation
        labels = (spans.activity, spans.layer, spans.microbatch, spans.module, spans.chunk, spans.call)
        expected = np.stack([spans.start_ns, spans.end_ns, *labels, spans.row], axis=1)
        np.testing.assert_array_equal([whole(row) for row in ours["computation"]], expected)
        # numpy and the browser may round a half to different sides.
        np.testing.assert_allclose(whole(ours["memory"]["time"]), theirs.memory.time_ns, rtol=0, atol=1)
        for category, held in enumerate(ours["memory"]["bytes"]):
            np.testing.assert_array_equal(whole(held), theirs.memory.bytes[:, category])
        assert_drawn(ours, spans, model)


def call_of(call: Call) -> dict[str, Any]:
    names = ("rank", "arrive_ns", "begin_ns", "end_ns", "row", "sent", "received")
    members = [{name.removesuffix("_ns"): getattr(m, name) for name in names} for m in call.members]
    plain = {f.name: getattr(call, f.name) for f in fields(call)}
    return {**plain, "ranks": list(call.ranks), "p2p": call.point_to_point, "members": members}


def assert_drawn(rank: dict[str, Any], spans: Spans, model: dict[str, Any]) -> None:
    """The lanes that are drawn follow from the thread's: as long in all, in order, one thing at a time."""
    lanes = {name: spans_of(rank[name]) for name in ("phase", "layer", "operation", "comm")}
    for name, lane in lanes.items():
        assert (lane["end"] >= lane["start"]).all(), name
        assert (lane["start"][1:] >= lane["end"][:-1]).all(), name
        assert (lane["end"] <= model["stepNs"]).all(), name
        assert (lane["name"] >= 0).all(), name
        assert (lane["name"] < len(model["strings"])).all(), name
    took = spans.end_ns - spans.start_ns
    busy = spans.activity != Activity.IDLE
    assert time_by(lanes["phase"]["kind"], lanes["phase"]) == time_by(spans.activity[busy], took=took[busy])
    layered = (spans.activity <= Activity.OPTIMIZER) & ((spans.layer >= 0) | (spans.module >= 0))
    assert time_by(lanes["layer"]["layer"], lanes["layer"]) == time_by(
        spans.layer[layered], took=took[layered]
    )
    mine = [m for call in model["calls"] for m in call["members"] if m["rank"] == rank["rank"]]
    transfers = lanes["comm"]["kind"] == 9
    edges = sorted({t for m in mine for t in (m["begin"], m["end"])})
    in_transfer = sum(
        b - a for a, b in pairwise(edges) if any(m["begin"] <= a and b <= m["end"] for m in mine)
    )
    assert sum((lanes["comm"]["end"] - lanes["comm"]["start"])[transfers].tolist()) == in_transfer


def spans_of(lane: dict[str, Any]) -> dict[str, Any]:
    return {name: value if name == "n" else whole(value) for name, value in lane.items()}


def time_by(labels: Any, lane: dict[str, Any] | None = None, took: Any = None) -> Counter[int]:
    lengths = lane["end"] - lane["start"] if lane is not None else took
    found: Counter[int] = Counter()
    for label, length in zip(labels.tolist(), lengths.tolist(), strict=True):
        found[label] += length
    return found


def test_operators_keep_their_layer_and_their_place_in_the_file(page: Page) -> None:
    """Operators of the detail step lie within the layer of the shown step that they worked on."""
    model = model_of(page, "single", "recorded")
    assert model["detail"] == next(s.index for s in run("single").manifest.steps if s.detail)
    operations, layers = (spans_of(model["ranks"][0][name]) for name in ("operation", "layer"))
    trace = run("single").ranks[0]
    names = {int(row): trace.text(int(name)) for row, name in zip(trace.row, trace.name, strict=True)}
    found = dict(zip(operations["row"].tolist(), operations["name"].tolist(), strict=True))
    assert {row: model["strings"][name] for row, name in found.items()} == {row: names[row] for row in found}
    middle = (operations["start"] + operations["end"]) // 2
    inside = 0
    for layer in (0, 3, 7):
        mine = operations["layer"] == layer
        there = layers["layer"] == layer
        for at in middle[mine].tolist():
            inside += bool(
                ((layers["start"][there] - 1000 <= at) & (at <= layers["end"][there] + 1000)).any()
            )
        assert mine.sum() > 50
    assert inside == sum((operations["layer"] == layer).sum() for layer in (0, 3, 7))


# ---- runs that we did not record

EVERYONE = (0, 1, 2)
STRANGE: dict[str, list[Script]] = {
    "a member that never comes": [
        [Work(5), Issue("c", EVERYONE[:2], 7, claims=EVERYONE), Work(9, "backward"), Wait("c", 2)]
        for _ in range(2)
    ]
    + [[Work(30, layer=1)]],
    "two waits for one call": [
        [
            Work(10 + rank),
            Issue("c", EVERYONE, 50, reported=False),
            Work(3),
            Wait("c", rank),
            Wait("c", 1),
            Work(4),
        ]
        for rank in EVERYONE
    ],
    "late begins and no time at all": [
        [Issue("a", EVERYONE, 0), Issue("b", EVERYONE, 40, "all_gather"), Wait("b"), Work(0), Wait("a", 1)]
        for _ in EVERYONE
    ],
    "sends of both kinds": one_f_one_b(3, 4, (20, 21, 22), (30, 31, 32), send_ns=60),
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("text", ["", "rank1=1500,balance", "async=all_reduce,latency=3000"])
def test_strange_runs_are_laid_out_alike(page: Page, tmp_path: Path, name: str, text: str) -> None:
    ours, link = write_run(tmp_path, STRANGE[name], run_id=name), calibration(*sends(60, 1.0))
    page.add_script_tag(content=script(ours, calibration=link))
    for base in MODES:
        what = replayable(ours, mode=base, calibration=link)
        what_if = parse_what_if(text if set(what.ops) > {"send"} or "async" not in text else "latency=3000")
        expected = replay_what_if(what, what_if)
        found = ask(page, SCHEDULE, name, what_if_text(what_if), base)
        assert isinstance(found, dict), found
        assert_same(Schedule(whole(found["begin"]), whole(found["end"])), expected)
        assert_alike(ask(page, MODEL, name, base), reconstruct(ours, mode=base, calibration=link))


def test_a_site_hands_its_runs_to_the_page(reader: Reader, address: str) -> None:
    """Whatever the name of a run: the element's address leads to its data."""
    reader.page.goto(f"{address}pair/index.html")
    code = """(async () => {
      const element = document.querySelector("trace-timeline"), script = document.createElement("script");
      script.src = element.getAttribute("src");
      document.head.append(script);
      await new Promise((done) => script.addEventListener("load", done));
      const data = await Shardbook.columns.of(element.getAttribute("run"));
      return [data.run, data.title, Shardbook.lanes.model(data, "recorded").calls[0].group];
    })()"""
    assert ask(reader.page, code) == [NASTY_RUN, f"Two ranks {NASTY}", NASTY]


# ---- what-ifs as text


@pytest.mark.parametrize("seed", range(30))
def test_a_what_if_has_the_same_text(page: Page, seed: int) -> None:
    choose = random.Random(seed)
    what_if = any_what_if(choose, what_of("3d", "isolated"))
    text = what_if_text(what_if)
    items = text.split(",")
    choose.shuffle(items)
    again = ask(page, "Shardbook.whatif.print(Shardbook.whatif.parse(a))", " , ".join(items))
    assert again == text


@pytest.mark.parametrize(
    "text",
    [
        "rank2", "rank2=1.5", "rank2=-1", "rank02=5", "rank2=100001", "rank2=1200,rank2=1200", "bandwidth=0",
        "latency=", "forwards=2", "balance=1", "async", "async=", "async=All", "block=send,async=send",
        "free=", "constructor=1", "toString", "__proto__=3", "free=<b>",
    ],
)  # fmt: skip
def test_a_text_that_python_refuses_is_refused_in_one_line(page: Page, text: str) -> None:
    with pytest.raises(UserError):
        parse_what_if(text)
    said = ask(page, "Shardbook.whatif.parse(a)", text)
    assert said.startswith("Error: ")
    assert "\n" not in said


@pytest.mark.parametrize("text", ["rank9=2", "layer8=2", "backward_input=2", "async=all_gather"])
def test_what_a_run_has_not_is_said(page: Page, text: str) -> None:
    with pytest.raises(UserError):
        replay_what_if(what_of("ddp", "isolated"), parse_what_if(text))
    provide(page, "ddp")
    said = ask(page, SCHEDULE, "ddp", text, "isolated")
    assert said.startswith("Error: The run “ddp” has no ")


def test_what_of_a_run_can_be_changed_is_listed(page: Page) -> None:
    provide(page, "pp-zbv")
    known = ask(page, "Shardbook.columns.of(a).then((data) => Shardbook.replay.known(data))", "pp-zbv")
    assert known["ranks"] == [0, 1, 2, 3]
    assert known["layers"] == list(range(8))
    assert known["ops"] == sorted(
        {m.op for m in match_step(run("pp-zbv"), representative_step(run("pp-zbv")))}
    )
    assert known["phases"] == [
        "forward", "backward", "backward_input", "backward_weight", "optimizer", "host",
    ]  # fmt: skip


# ---- damage


def test_damaged_data_are_refused_in_one_line(page: Page) -> None:
    text = data_of("late-rank").split('"')[3]
    choose = random.Random(5)
    spoilt = ["", "?", text[: len(text) // 2], text[:-8], text + text, "é" + text[1:]]
    for _ in range(100):
        at = choose.randrange(20, len(text) - 16)  # not where a stream may be padded with anything
        other = choose.choice("ABCDEFGHabcdefgh0123456789+/".replace(text[at], ""))
        spoilt.append(text[:at] + other + text[at + 1 :])
    for one in spoilt:
        said = ask(page, "Shardbook.columns.decode(a)", one)
        assert said == "Error: The data of this timeline are damaged: load the page again."
    assert ask(page, "Shardbook.columns.of(a)", "no such run") == said


def test_data_that_come_again_take_the_place_of_the_old(page: Page) -> None:
    text = data_of("late-rank").split('"')[3]
    code = """(async () => {
      Shardbook.register("twice", "broken");
      const first = await Shardbook.columns.of("twice").catch(() => "refused");
      Shardbook.register("twice", a);
      return [first, (await Shardbook.columns.of("twice")).run];
    })()"""
    assert ask(page, code, text) == ["refused", "late-rank"]
