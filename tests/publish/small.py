"""A small book with everything a site can hold, and text that tries to be markup wherever text goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from generator.book import Book, read_book
from generator.runs.manifest import Batch, Link, LinkRow, Model, Ratio, Step, read_manifest
from tests.timeline.synthetic import (
    Issue,
    Script,
    Wait,
    Work,
    manifest,
    one_f_one_b,
    write_manifest,
    write_run,
)

MS = 1_000_000
#: Shows as it is wherever it stands, or something is not escaped.
NASTY = "<script>pwned = 1</script><b onclick='pwned = 1'> \" onclick=\"pwned = 1 {{ 7*7 }} {% raw %} &"
NASTY_RUN = "pair <b>\"'{{7}}&%#"

CHAPTER_A = """+++
letter = "A"
title = "One device"
+++
Where the time of a step goes.
"""
CHAPTER_B = """+++
letter = "B"
title = "More than one"
+++
"""
FIRST = """+++
title = "Read a step"
summary = "Forward, backward, optimizer."
runs = ["alone"]
minutes = 8
cluster = "The same order on a GPU."
sources = ["A source, *in print*, 2020"]
+++
Why does the way back take longer?

```toml timeline
run = "alone"
caption = "One rank, one step."
```

```toml question
id = "ratio"
kind = "number"
prompt = "How many times longer than forward is backward?"
answer = "busy(phase='backward') / busy(phase='forward')"
tolerance = "5 %"
hint = "Divide the green by the blue."
explain = "Backward takes {busy(phase='backward') | ms}."
[[misconceptions]]
value = "busy(phase='backward') / step_time()"
say = "That is the share of the *step*."
```

```toml question
id = "forward"
kind = "number"
prompt = "How long is forward?"
unit = "ms"
answer = "busy(phase='forward')"
tolerance = "2 %"
explain = "It is {busy(phase='forward') | ms}, $n$ times a layer."
```

## Closed form

$$\\frac{p-1}{m+p-1} = \\frac{3}{11}$$

| form | value |
|---|--:|
| of four stages | {pipeline_bubble_fraction(4, 8) | %} |

The [other exercise](../02-more/02-pair.md#which), [its chapter](../02-more/chapter.md),
[a run](../../measured_runs/alone), [a metric](metric:step_time).
"""
SECOND = """+++
title = '''Two ranks PLAIN'''
summary = '''Sums NASTY'''
runs = ['''RUN''', "alone"]
minutes = 61
requires = ["read-a-step"]
cluster = '''On a cluster NASTY'''
sources = ['''Source PLAIN''']
+++
Prose NASTY

```toml timeline
run = '''RUN'''
mode = "recorded"
title = '''Title PLAIN'''
focus = "op == 'all_reduce'"
caption = '''Caption NASTY'''
```

```toml question
id = "which"
kind = "choice"
prompt = '''Which rank waits? NASTY'''
hint = '''Look below. NASTY'''
explain = '''Rank 0 arrives first. NASTY'''
[[choices]]
text = '''Rank 0 NASTY'''
correct = "wait(rank=0) > wait(rank=1)"
why = '''It is there first. NASTY'''
[[choices]]
text = "Rank 1"
correct = "wait(rank=1) > wait(rank=0)"
why = '''It is the last to arrive. NASTY'''
```

```toml question
id = "true-ones"
kind = "choice"
many = true
prompt = "What is true of this step?"
explain = "One call, two ranks."
[[choices]]
text = "It has one all-reduce."
correct = "count(op='all_reduce') == 1"
why = "It is counted once."
[[choices]]
text = "It has two ranks."
correct = "world_size() == 2"
why = "The manifest says so."
[[choices]]
text = "It has a send."
correct = "count(op='send') > 0"
why = "Nothing is sent from rank to rank."
```

```toml question
id = "share"
kind = "number"
prompt = '''What share of the step does rank 0 wait? NASTY'''
unit = "%"
answer = "wait(rank=0) / step_time()"
tolerance = "1 pp"
explain = '''It is {wait(rank=0) | ms}. NASTY'''
[[misconceptions]]
value = "transfer(rank=0) / step_time()"
say = '''That is the transfer. NASTY'''
```
"""


def alone() -> list[Script]:
    return [[Work(10 * MS), Work(20 * MS, "backward"), Work(5 * MS, "optimizer")]]


def pair() -> list[Script]:
    ranks = (0, 1)
    call = Issue("sum", ranks, 4 * MS, bytes=1 << 20, group=NASTY)
    return [
        [
            Work(late * MS, layer=0),
            Work(20 * MS, "backward", layer=0),
            call,
            Wait("sum"),
            Work(5 * MS, "optimizer"),
        ]
        for late in (10, 16)
    ]


def make_book(folder: Path, *, url: str = "") -> Book:
    """Write the book below `folder` and read it."""
    runs = folder / "measured_runs"
    runs.mkdir(parents=True)
    write_run(runs, alone(), run_id="alone", title="One process")
    write_run(runs, pair(), run_id=NASTY_RUN, title=f"Two ranks {NASTY}")
    write_run(
        runs,
        one_f_one_b(2, 3, (2 * MS, 2 * MS), (4 * MS, 4 * MS)),
        run_id="pipe",
        stages=2,
        microbatches=3,
        title="A pipeline",
    )
    write_link(runs)
    complete(runs / "alone")
    complete(runs / NASTY_RUN, partner="alone")
    complete(runs / "pipe", partner="alone")
    texts = {
        "exercises/01-alone/chapter.md": CHAPTER_A,
        "exercises/01-alone/01-read-a-step.md": FIRST,
        "exercises/02-more/chapter.md": CHAPTER_B,
        "exercises/02-more/02-pair.md": second(),
        "book.toml": f'title = "A small book"\ndescription = "For tests."\nurl = "{url}"\n',
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return read_book(folder)


def second() -> str:
    """The second exercise, nasty text in every place; where braces hold expressions, two stand for one."""
    doubled = NASTY.replace("{", "{{").replace("}", "}}")
    return SECOND.replace("NASTY", doubled).replace("PLAIN", NASTY).replace("RUN", NASTY_RUN)


def complete(folder: Path, partner: str = "") -> None:
    """Fill in what synthetic manifests leave out: model, batch, ratio, a partner."""
    found = read_manifest(folder / "run.toml")
    ranks = found.world_size
    full = replace(
        found,
        partner=partner,
        scheme=found.id,
        description=f"Described {NASTY}",
        command=f"shardbook record {NASTY}",
        model=Model(64, 2, 2, 1024, 100_000, (100_000,) * ranks),
        batch=Batch(8, 128, "text", "0" * 64, 1),
        ratio=Ratio(4.0, 40.0, 0.1),
        steps=(Step(0, loss=1.0),),
    )
    write_manifest(folder, full)


def write_link(runs: Path) -> None:
    sizes = (1024, 65536, 1 << 20, 1 << 22)
    rows = tuple(
        LinkRow(op, 2, size, 300_000 + 4 * size, 290_000 + 4 * size, 310_000 + 4 * size, 5, size)
        for op in ("all_reduce", "send")
        for size in sizes
    )
    found = manifest("link", kind="calibration", title="The link", table=rows)
    (runs / "link").mkdir()
    write_manifest(runs / "link", replace(found, steps=(), link=Link("tbf", 2000, 131072)))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
