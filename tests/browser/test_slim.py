"""A slim script does what the readable one does: both are run in the browser, on what trips renamers up."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from generator.errors import UserError
from generator.publish.assets import JS, join
from generator.publish.slim import slim

TEMPLATES = Path(__file__).parent.parent.parent / "templates"
DATA = Path(__file__).parent / "data"

#: Bodies of a function that returns something, by what is tricky in them.
SCRIPTS: dict[str, str] = tomllib.loads((DATA / "scripts.toml").read_text())
SCRIPTS["more names than letters"] = (
    "".join(f"const name{i} = {i};" for i in range(120)) + "return [name0, name52, name53, name119]"
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_slim_script_gives_the_same(name: str, browser: Browser) -> None:
    script = f"globalThis.made = (function () {{\n{SCRIPTS[name]}\n}})();"
    short = slim(script.encode()).decode()
    assert len(short) <= len(script)
    page = browser.new_page()
    results = [
        page.evaluate(f"async () => {{ {text}\n return globalThis.made }}") for text in (script, short)
    ]
    page.close()
    assert results[0] == results[1]
    assert results[0] is not None


def test_globals_and_properties_keep_their_names() -> None:
    script = """"use strict";
        var Mine = Mine || {};
        Mine.part = (function () { const inner = (longer) => longer.deep; return { inner }; })();"""
    short = '"use strict";var Mine=Mine||{};Mine.part=(function(){let a=(a)=>a.deep;return{inner:a}})();\n'
    assert slim(script.encode()).decode() == short


def test_the_same_script_gives_the_same_bytes_again() -> None:
    script = join([TEMPLATES], "js", JS)
    short = slim(script)
    assert short == slim(script)
    # What is slim already is left as it is.
    assert slim(short) == short
    assert len(short) < len(script) / 2


def test_what_is_no_script_is_one_clear_line() -> None:
    with pytest.raises(UserError, match="line 2 of the joined scripts is not JavaScript"):
        slim(b"const a = 1;\nconst = 2;\n")
