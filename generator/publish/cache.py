"""Results kept between builds, in the book's `.shardbook/`. Safe to delete.

An entry is named by the hash of everything it was made of: the inputs' bytes and the code that reads
and reconstructs. It carries the hash of its own content, so an entry that was damaged or cut short is
seen and made again. The cache never changes what is built, only how long it takes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read")

_PACKAGE = Path(__file__).resolve().parent.parent
#: The parts of the generator that a reconstruction depends on, and those that its pictures and its data for
#: the browser add.
RECONSTRUCTION = ("runs", "timeline", "texts.py", "units.py", "errors.py")
PICTURES = (*RECONSTRUCTION, "publish/figures", "publish/illustrate.py", "publish/show.py")
DATA = (*RECONSTRUCTION, "publish/pack.py", "publish/columnar.py", "publish/figures")


class Cache:
    """Byte strings by key, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str, make: Callable[[], bytes], read: Callable[[bytes], Read]) -> Read:
        """What `read` gives of the entry `key`, or of what `make` gives, which is then kept.

        Errors of `make` go through; an entry that cannot be read is made again.
        """
        path = self._folder / key
        kept = _read(path)
        if kept is not None:
            try:
                return read(kept)
            except (AttributeError, LookupError, TypeError, ValueError):
                pass
        made = make()
        _write(path, made)
        return read(made)


def key(kind: str, parts: Iterable[bytes], code: tuple[str, ...] = RECONSTRUCTION) -> str:
    """A file name for an entry of some kind, made of all that it depends on."""
    digest = hashlib.sha256(code_hash(code))
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return f"{kind}-{digest.hexdigest()[:32]}"


@lru_cache
def code_hash(code: tuple[str, ...]) -> bytes:
    """Hash of the source of some parts of the generator."""
    digest = hashlib.sha256()
    for name in code:
        root = _PACKAGE / name
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(path.relative_to(_PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.digest()


def _read(path: Path) -> bytes | None:
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest().encode() == digest else None


def _write(path: Path, content: bytes) -> None:
    """Keep an entry; where that is impossible (a read-only book) the next build makes it again."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
