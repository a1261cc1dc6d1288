"""The answer key of a question as it travels in the page.

JSON, XOR-ed with the bytes of the question's key, then base64. That keeps an answer from being read
at a glance in the page's source; it is no secret and is not meant to be one (without script the
answer stands in the page). The reader is `templates/js/key.js`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from itertools import cycle


def encode(answer: Mapping[str, object], key: str) -> str:
    """The JSON of `answer` (sorted, UTF-8), XOR-ed with `key` over and over, as base64 text.

    Raises ValueError for an empty key: nothing would be hidden.
    """
    if not key:
        raise ValueError("a question needs a key")
    plain = json.dumps(answer, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    mixed = bytes(a ^ b for a, b in zip(plain, cycle(key.encode()), strict=False))
    return base64.b64encode(mixed).decode("ascii")
