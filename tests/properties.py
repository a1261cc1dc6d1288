"""How often properties are tried."""

from __future__ import annotations

import os

from hypothesis import settings

#: Examples of each property that `make fuzz` asks for; 0 in tests, where each property has its own number.
EXAMPLES = int(os.environ.get("SHARDBOOK_EXAMPLES") or 0)


def examples(count: int) -> settings:
    """Try a property `count` times, or as often as `make fuzz` asks for; 100 times without this."""
    return settings(max_examples=EXAMPLES or count)
