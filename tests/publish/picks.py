"""A small book with questions that are answered by pointing into a figure, and with figures that point."""

from __future__ import annotations

from pathlib import Path

from generator.book import Book, read_book
from tests.publish.small import MS, NASTY, complete, write_link
from tests.timeline.synthetic import Issue, Script, Wait, Work, one_f_one_b, write_run

PAGE = "pointing/index.html"
FILE = "exercises/01-pipes/01-pointing.md"
CHAPTER = """+++
letter = "A"
title = "Pipes"
+++
"""
EXERCISE = """+++
title = "Pointing"
summary = "Point to it."
runs = ["pipe", "layers"]
minutes = 5
+++
Follow [micro-batch 1](#show:second) down and up.

```toml timeline
run = "pipe"
id = "pipeline"
caption = "Two stages."
[[views]]
name = "second"
focus = "microbatch == 1"
caption = '''Two forwards and two backwards. NASTY'''
[[views]]
name = "turn"
focus = "first(phase == 'backward')"
caption = "Here it turns."
```

```toml question
id = "block"
kind = "pick"
what = "event"
prompt = '''Pick the first backward of rank 0. NASTY'''
answer = "first(phase == 'backward' and rank == 0)"
hint = '''It is green. NASTY'''
explain = '''It [turns](#show:turn) here. NASTY'''
[[misconceptions]]
value = "first(phase == 'backward' and rank == 1)"
say = '''That is the other stage. NASTY'''
[[misconceptions]]
value = "rest(phase == 'backward' and rank == 0)"
say = "Another one comes before it."
[[misconceptions]]
value = "op == 'send'"
say = "That is a message."
```

```toml question
id = "idle"
kind = "pick"
what = "gap"
prompt = "Pick the longest gap of rank 0."
answer = "longest(rank == 0)"
explain = "It waits for the other stage."
[[misconceptions]]
value = "first(rank == 1)"
say = "There rank 1 waits for its first micro-batch."
```

```toml timeline
run = "layers"
id = "ranks"
focus = "layer == 1 and phase == 'forward'"
highlight = "op == 'all_reduce'"
```

```toml question
id = "layer"
kind = "pick"
what = "event"
figure = "ranks"
prompt = "Pick a forward of layer 1."
answer = "layer == 1 and phase == 'forward'"
explain = "It is the second."
```

```toml question
id = "late"
kind = "pick"
what = "rank"
prompt = "Pick the rank that waits."
answer = "rank_of_max(wait(rank='each', run='layers'))"
hint = "Look at the orange."
explain = "It came first."
[[misconceptions]]
value = "rank_of_min(wait(rank='each', run='layers'))"
say = "It is the one that is waited for."
```

```toml timeline
run = "layers"
mode = "recorded"
title = "As recorded"
blur = "until predicted"
question = "late"
caption = "COVERED WORDS"
```
"""


def layers() -> list[Script]:
    """Two ranks with two layers; rank 0 is early and waits."""
    call = Issue("sum", (0, 1), 4 * MS, bytes=1 << 20)
    return [
        [
            Work(late * MS, layer=0),
            Work(8 * MS, layer=1),
            Work(9 * MS, "backward", layer=1),
            Work(9 * MS, "backward", layer=0),
            call,
            Wait("sum"),
            Work(5 * MS, "optimizer"),
        ]
        for late in (10, 16)
    ]


def make_book(folder: Path) -> Book:
    """Write the book below `folder` and read it."""
    runs = folder / "measured_runs"
    runs.mkdir(parents=True)
    pipe = one_f_one_b(2, 3, (2 * MS, 2 * MS), (4 * MS, 4 * MS), MS // 2)
    write_run(runs, pipe, run_id="pipe", stages=2, microbatches=3, title="A pipeline")
    write_run(runs, layers(), run_id="layers", title="Two layers")
    write_link(runs)
    complete(runs / "pipe")
    complete(runs / "layers")
    texts = {
        "exercises/01-pipes/chapter.md": CHAPTER,
        FILE: EXERCISE.replace("NASTY", NASTY.replace("{", "{{").replace("}", "}}")),
        "book.toml": 'title = "Picks"\ndescription = "For tests."\n',
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return read_book(folder)
