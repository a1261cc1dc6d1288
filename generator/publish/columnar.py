"""Columns of integers as a short text: what the browser reads back with `templates/js/timeline/columns.js`.

The text is base64 of gzip of: the length of the head in bytes (4 bytes, little-endian); the head, JSON in
UTF-8; the columns one after the other, as the head's `columns` lists them. A column is delta-encoded where
that helps, made non-negative (0, -1, 1, -2 … become 0, 1, 2, 3 …), and written plane by plane: the lowest
byte of every value, then the next one. Nothing is rounded.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from generator.errors import UserError

Integers = npt.NDArray[np.int8] | npt.NDArray[np.int32] | npt.NDArray[np.int64]
#: Of what a column's values may be, so that a double holds them and their differences.
LARGEST = 2**51


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    values: Integers
    #: Whether each value is written as the difference to the one before it.
    delta: bool = False
    #: Whether the browser keeps it in doubles: times and bytes, which may need more than 31 bits.
    wide: bool = False


def encode(head: Mapping[str, object], columns: Sequence[Column]) -> str:
    """The text. The same head and columns give the same text. Raises UserError for values too large."""
    listed, planes = [], []
    for column in columns:
        width, data = _planes(column)
        listed.append([column.name, int(column.delta) + 2 * column.wide, width, len(column.values)])
        planes.append(data)
    described = json.dumps(
        {**head, "columns": listed}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    # A lone surrogate can stand in a file of JSON, and in no UTF-8.
    text = described.encode("utf-8", "replace")
    packed = gzip.compress(len(text).to_bytes(4, "little") + text + b"".join(planes), 9, mtime=0)
    return base64.b64encode(packed).decode("ascii")


def _planes(column: Column) -> tuple[int, bytes]:
    """Bytes a value needs, and the column's bytes."""
    values = column.values.astype(np.int64)
    if not len(values):
        return 0, b""
    limit = LARGEST if column.wide else 2**31
    if int(values.max()) >= limit or int(values.min()) < -limit:
        raise UserError(
            f"a value of {column.name} is too large for the browser",
            remedy="Check the run's files: no step is that long and nothing in it that large.",
        )
    if column.delta:
        values = np.diff(values, prepend=0)
    folded = ((values << 1) ^ (values >> 63)).astype("<u8")
    width = (int(folded.max()).bit_length() + 7) // 8
    return width, folded.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()
