"""Whatever is wrong with a run's files, the reader says it in one line: what, where, what to do."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from generator.errors import UserError
from generator.runs.reader import read_run, read_run_named
from tests.timeline.synthetic import Issue, Wait, Work, write_run

BOTH = (0, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scripts = [[Work(100 + r), Issue("a", BOTH, 50), Wait("a")] for r in BOTH]
    write_run(tmp_path, scripts, run_id="two")
    return tmp_path / "two"


def replace_rank(folder: Path, data: bytes) -> None:
    """Put other bytes in rank 1's file and make the manifest agree with them."""
    path = folder / "rank-001.json.gz"
    manifest = folder / "run.toml"
    old = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(data)
    text = manifest.read_text(encoding="utf-8").replace(old, hashlib.sha256(data).hexdigest())
    manifest.write_text(text, encoding="utf-8")


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "run.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def packed(root: object) -> bytes:
    return gzip.compress(orjson.dumps(root), mtime=0)


DAMAGE: list[tuple[str, Callable[[Path], None], str]] = [
    ("a rank file is missing", lambda f: (f / "rank-001.json.gz").unlink(), r"run.toml:\d+: .*is missing"),
    ("a hash differs", lambda f: (f / "rank-001.json.gz").write_bytes(packed([])), "SHA-256 differs"),
    (
        "a gzip stream is cut off",
        lambda f: (f / "rank-001.json.gz").write_bytes((f / "rank-001.json.gz").read_bytes()[:-20]),
        "rank-001.json.gz: the gzip stream is cut off",
    ),
    ("a file is no gzip", lambda f: replace_rank(f, b"<html>"), "rank-001.json.gz: not a gzip file"),
    ("a file is empty", lambda f: replace_rank(f, b""), "rank-001.json.gz: the file is empty"),
    (
        "JSON is broken",
        lambda f: replace_rank(f, gzip.compress(b'{"traceEvents": [\n{"ts": inf}]}')),
        r"rank-001.json.gz:2: not valid JSON",
    ),
    ("there are no events", lambda f: replace_rank(f, packed({"a": 1})), "no list of traceEvents"),
    (
        "a time is a text",
        lambda f: replace_rank(f, packed([{"ph": "X", "ts": "soon", "dur": 1, "args": {}}])),
        "a value of the wrong type or size",
    ),
    (
        "a rank is a text",
        lambda f: replace_rank(
            f, packed([{"ph": "X", "ts": 1, "dur": 1, "args": {"call": 1, "op": "a", "bytes": "many"}}])
        ),
        "a value of the wrong type",
    ),
    (
        "a key is unknown",
        lambda f: edit(f, "scheme =", "sheme ="),
        r"run.toml:\d+: unknown key 'sheme'.*'scheme'",
    ),
    (
        "a key in a table is unknown",
        lambda f: edit(f, "rate_mbit", "rate_gbit"),
        r"run.toml:\d+: unknown key \[link\] 'rate_gbit'.*'rate_mbit'",
    ),
    ("a key is missing", lambda f: edit(f, 'title = "A run"\n', ""), "the key 'title' is missing"),
    ("a type is wrong", lambda f: edit(f, "cores = 2", 'cores = "2"'), "'machine.cores' must be of type int"),
    (
        "the schema is unknown",
        lambda f: edit(f, "schema = 1", "schema = 9"),
        r"run.toml:\d+: schema 9 is not known",
    ),
    (
        "the manifest is not TOML",
        lambda f: edit(f, "schema = 1", "schema = = 1"),
        r"run.toml:1: not valid TOML",
    ),
    ("the manifest is gone", lambda f: (f / "run.toml").unlink(), "there is none"),
    ("the id is another", lambda f: edit(f, 'id = "two"', 'id = "three"'), "differs from the folder's name"),
    (
        "a rank file lies elsewhere",
        lambda f: edit(f, "rank-001.json.gz", "../two/rank-001.json.gz"),
        "outside the run's folder",
    ),
    (
        "a folder in a rank file's place",
        lambda f: ((f / "rank-001.json.gz").unlink(), (f / "rank-001.json.gz").mkdir()),
        "rank-001.json.gz: cannot be read: Is a directory",
    ),
    (
        "a link to itself in a rank file's place",
        lambda f: (
            (f / "rank-001.json.gz").unlink(),
            (f / "rank-001.json.gz").symlink_to("rank-001.json.gz"),
        ),
        "rank-001.json.gz: cannot be read: Too many levels",
    ),
    (
        "a folder in the manifest's place",
        lambda f: ((f / "run.toml").unlink(), (f / "run.toml").mkdir()),
        "run.toml: cannot be read: Is a directory",
    ),
    (
        "the manifest is not UTF-8",
        lambda f: (f / "run.toml").write_bytes(b"schema = 1\nid = '\xe9'\n"),
        "run.toml:2: not UTF-8",
    ),
    (
        "a name with a NUL",
        lambda f: edit(f, "rank-001.json.gz", "a\\u0000b"),
        r"run.toml:\d+: an invisible control character \(U\+0000\)",
    ),
    (
        "a text that turns the reading direction",
        lambda f: edit(f, 'title = "A run"', 'title = "A \u202erun"'),
        r"run.toml:\d+: an invisible control character \(U\+202E\)",
    ),
    (
        "a loss that is no number",
        lambda f: edit(f, "loss = 1.0", "loss = nan"),
        r"run.toml:\d+: 'steps.loss' must be a finite number",
    ),
    (
        "a kind is unknown",
        lambda f: edit(f, '"training"', '"banana"'),
        r"run.toml:\d+: unknown kind 'banana'",
    ),
    (
        "a step occurs twice",
        lambda f: edit(f, "index = 0,", "index = 0}, {index = 0,"),
        "a step occurs twice",
    ),
    (
        "a rank file occurs twice",
        lambda f: edit(f, "rank-001.json.gz", "rank-000.json.gz"),
        "a rank file occurs twice",
    ),
    (
        "a run is its own partner",
        lambda f: edit(f, 'kind = "', 'partner = "two"\nkind = "'),
        "its own partner",
    ),
]

#: What an event may not say; the others of its file are sound.
EVENTS: list[tuple[str, dict[str, object], str]] = [
    ("a name is a number", {"name": 7}, "wrong type"),
    ("args are a list", {"args": [1]}, "wrong type"),
    ("a time is missing", {"ts": None}, "an event has no .ts."),
    ("a time does not fit", {"ts": 1e300}, "a ts that does not fit 64 bits"),
    ("a duration is negative", {"dur": -5}, "a negative dur"),
    ("a thread's time is negative", {"args": {"cpu_dur": -5}}, "a negative cpu_dur"),
    ("a size is negative", {"args": {"bytes": -7}}, "a negative number of bytes"),
    ("an operation is a number", {"args": {"op": 5}}, "5 where a text is needed"),
    ("ranks are a text", {"args": {"group": "g", "ranks": "all"}}, "not a list of whole numbers"),
    ("a counter without values", {"ph": "C", "name": "memory", "args": None}, "wrong type"),
]


@pytest.mark.parametrize(("event", "message"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS])
def test_an_event_that_cannot_be_is_refused_in_one_line(
    folder: Path, event: dict[str, object], message: str
) -> None:
    root = orjson.loads(gzip.decompress((folder / "rank-001.json.gz").read_bytes()))
    whole = {"ph": "X", "name": "x", "ts": 1.0, "dur": 1.0, "args": {}}
    root["traceEvents"].append(whole | event)
    replace_rank(folder, packed(root))
    with pytest.raises(UserError, match=message) as caught:
        read_run(folder)
    assert str(caught.value).count("rank-001.json.gz: ") == 1
    assert caught.value.remedy


@pytest.mark.parametrize(("damage", "message"), [d[1:] for d in DAMAGE], ids=[d[0] for d in DAMAGE])
def test_a_damaged_run_is_refused_in_one_line(
    folder: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


def test_an_undamaged_run_is_read_whole(folder: Path) -> None:
    run = read_run(folder)
    assert [trace.rank for trace in run.ranks] == [0, 1]


def test_an_unknown_run_gets_the_nearest_name(folder: Path) -> None:
    with pytest.raises(UserError, match=r"no run 'tow'.*'two'"):
        read_run_named(folder.parent, "tow")


def test_ranks_with_different_bases_are_put_on_one_clock(folder: Path) -> None:
    before = read_run(folder)
    path = folder / "rank-001.json.gz"
    root = orjson.loads(gzip.decompress(path.read_bytes()))
    later_ns = 250_000
    root["baseTimeNanoseconds"] += later_ns
    for event in root["traceEvents"]:
        event["ts"] -= later_ns / 1000
    replace_rank(folder, packed(root))
    after = read_run(folder)
    assert after.ranks[1].start_ns.tolist() == before.ranks[1].start_ns.tolist()
    assert after.ranks[1].base_ns == after.ranks[0].base_ns
