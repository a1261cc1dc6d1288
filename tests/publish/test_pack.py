"""The data of a run as the browser gets them: small, exact, the same every time, and nothing but data."""

from __future__ import annotations

import base64
import gzip
import json
import re
import string
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import UserError
from generator.publish.columnar import LARGEST, Column, encode
from generator.publish.pack import collect, script
from generator.runs.run import I64, Kind, Run
from generator.timeline.collectives import match_step
from generator.timeline.program import program
from tests.committed import calibration_of, ids_with_steps, run
from tests.properties import examples
from tests.publish.html_pages import pages, parsed
from tests.publish.small import MS, NASTY, NASTY_RUN
from tests.timeline.synthetic import Issue, Wait, Work, write_run
from tests.timeline.test_links import calibration, sends

#: As docs and DESIGN promise: before base64, and the text.
BYTES_AN_EVENT = 4.0
LARGEST_RUN = 150_000
RUNS = ids_with_steps()


def decoded(text: str) -> tuple[dict[str, Any], dict[str, I64]]:
    """Read the text as it is described, without any of the code that writes it."""
    data = gzip.decompress(base64.b64decode(text, validate=True))
    size = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + size].decode("utf-8"))
    columns, at = {}, 4 + size
    for name, coding, width, count in head.pop("columns"):
        planes = [data[at + k * count : at + (k + 1) * count] for k in range(width)]
        folded = [sum(plane[i] << 8 * k for k, plane in enumerate(planes)) for i in range(count)]
        values = [f // 2 if f % 2 == 0 else -(f // 2) - 1 for f in folded]
        columns[name] = np.cumsum(values, dtype=np.int64) if coding & 1 else np.array(values, np.int64)
        at += width * count
    assert at == len(data)
    return head, columns


def text_of(data: str) -> str:
    """The text in a script."""
    found = re.fullmatch(r'Shardbook\.register\(("(?:[^"\\]|\\.)*"), "([A-Za-z0-9+/=]*)"\);\n', data)
    assert found, data[:200]
    return found[2]


small = st.integers(-(2**31), 2**31 - 1)
large = st.integers(-LARGEST, LARGEST - 1)


@given(st.lists(small), st.lists(large), st.booleans(), st.text())
@examples(200)
def test_any_columns_come_back_as_they_were(
    narrow: list[int], wide: list[int], delta: bool, name: str
) -> None:
    columns = [
        Column("narrow", np.array(narrow, np.int64), delta),
        Column("wide", np.array(wide, np.int64), delta, wide=True),
    ]
    head, found = decoded(encode({"name": name}, columns))
    assert head == {"name": name}
    assert found["narrow"].tolist() == narrow
    assert found["wide"].tolist() == wide


@pytest.mark.parametrize("column", [
    Column("rows", np.array([0, 2**31], np.int64)),
    Column("times", np.array([LARGEST], np.int64), wide=True),
    Column("times", np.array([-LARGEST - 1], np.int64), delta=True, wide=True),
])  # fmt: skip
def test_what_the_browser_cannot_hold_is_refused(column: Column) -> None:
    with pytest.raises(UserError, match=f"a value of {column.name} is too large for the browser"):
        encode({}, [column])


@pytest.mark.parametrize("run_id", ["3d", "ep-skewed", "late-rank"])
def test_a_run_comes_back_whole(run_id: str) -> None:
    ours = run(run_id)
    head, columns = decoded(text_of(script(ours, calibration=calibration_of(run_id))))
    kept, collected = collect(ours, calibration=calibration_of(run_id))
    assert head == json.loads(json.dumps(kept))
    for column in collected:
        np.testing.assert_array_equal(columns[column.name], column.values)
    programs = [program(trace, head["step"]) for trace in ours.ranks]
    assert columns["segmentWall"].tolist() == [ns for p in programs for ns in p.wall_ns.tolist()]
    assert [r["segments"] for r in head["ranks"]] == [len(p) for p in programs]
    assert [head["strings"][op] for op in columns["matchOp"]] == [
        m.op for m in match_step(ours, head["step"])
    ]


def test_the_committed_runs_are_small() -> None:
    """Events: those of the step that is shown, and the operators and samples of memory of the detail step."""
    packed = events = 0
    for run_id in RUNS:
        text = text_of(script(run(run_id), calibration=calibration_of(run_id)))
        head, columns = decoded(text)
        assert len(text) <= LARGEST_RUN, run_id
        packed += len(base64.b64decode(text))
        events += len(columns["operationRow"]) + len(columns["detailTime"])
        events += sum(
            int(((trace.step == head["step"]) & (trace.kind != Kind.OTHER)).sum())
            for trace in run(run_id).ranks
        )
    assert packed / events <= BYTES_AN_EVENT


def test_the_same_run_gives_the_same_script() -> None:
    found = [script(run("fsdp"), calibration=calibration_of("fsdp")) for _ in range(2)]
    assert found[0] == found[1]


# ---- runs that we did not record


def hostile(folder: Path, run_id: str) -> Run:
    """Text that tries to be markup and script wherever a trace has text."""
    call = Issue("sum", (0, 1), 4 * MS, group=f"{NASTY}\u2028", dtype='"]});</script>')
    scripts = [[Work(late * MS, layer=0), call, Wait("sum")] for late in (10, 16)]
    return write_run(folder, scripts, run_id=run_id, title=f"{NASTY}\\")


def test_names_are_data(tmp_path: Path) -> None:
    run_id = "a \"'<!--<b>&é"
    data = script(hostile(tmp_path, run_id), calibration=calibration(*sends(60, 1.0)))
    assert set(data) <= {*string.printable}
    assert "<" not in data
    head, _ = decoded(text_of(data))
    assert head["run"] == run_id
    assert head["title"] == f"{NASTY}\\"
    assert f"{NASTY}\u2028" in head["strings"]
    assert '"]});</script>' in head["strings"]


def test_a_run_without_a_detail_step_has_no_operators(tmp_path: Path) -> None:
    head, columns = decoded(text_of(script(write_run(tmp_path, [[Work(10), Work(20, "backward")]]))))
    assert head["detail"] == -1
    assert not len(columns["operationRow"])
    assert not len(columns["detailTime"])
    assert columns["segmentWall"].tolist() == [10, 20]


def test_operators_keep_their_rows_and_do_not_overlap() -> None:
    ours = run("pp-1f1b")
    head, columns = decoded(text_of(script(ours, calibration=calibration_of("pp-1f1b"))))
    assert (columns["operationGap"] >= 0).all()
    assert (columns["operationTicks"] >= 0).all()
    first = 0
    for trace, rank in zip(ours.ranks, head["ranks"], strict=True):
        mine = slice(first, first + rank["operations"])
        first = mine.stop
        place = {int(row): i for i, row in enumerate(trace.row)}
        chosen = [place[row] for row in columns["operationRow"][mine].tolist()]
        names = [head["strings"][name] for name in columns["operationName"][mine]]
        assert names == [trace.text(int(trace.name[i])) for i in chosen]
        assert set(trace.step[chosen]) == {head["detail"]}
        begin = np.cumsum(columns["operationGap"][mine] + columns["operationTicks"][mine])
        begin -= columns["operationTicks"][mine]
        own = program(trace, head["detail"])
        late = trace.start_ns[chosen] - own.begin_ns - begin * head["tick"]
        assert ((late >= 0) & (late < head["tick"])).all()
        labels = [head["labels"][label] for label in columns["operationLabel"][mine]]
        activities = {activity for activity, *_ in labels}
        assert {0, 1, 4} <= activities
        assert {layer for _, layer, *_ in labels} == {-1, *set(own.layer[own.layer >= 0].tolist())}


# ---- in a site


def test_every_timeline_of_a_site_names_a_script_with_its_run(site: Path) -> None:
    found = set()
    for page in pages(site):
        for element in parsed(page).all("trace-timeline"):
            data = page.parent / unquote(element["src"])
            assert re.fullmatch(r"data\.[0-9a-f]{12}\.js", data.name)
            head, _ = decoded(text_of(data.read_text(encoding="utf-8")))
            assert head["run"] == element["run"]
            found.add(element["run"])
    assert found == {"alone", "pipe", NASTY_RUN}
