"""Writing a site: whole or not at all.

The site is written beside its place and then put there by renaming, so that a build that fails or is
interrupted leaves the previous site as it was.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from generator.book import Book
from generator.errors import UserError
from generator.texts import reason

try:
    import fcntl
except ImportError:  # not on Windows; two builds at once can get in each other's way there
    fcntl = None  # type: ignore[assignment]

#: Kept from one build to the next: it is the project's, not the site's.
KEPT = ".gitignore"
MARK = b'<meta name="generator" content="Shardbook">'


def check_target(book: Book, out: Path) -> None:
    """Refuse to replace a folder that is not a site: it could hold somebody's work."""
    out = out.resolve()
    for source in (book.root, book.exercises, book.runs, *book.templates):
        if source.resolve().is_relative_to(out) or (
            source != book.root and out.is_relative_to(source.resolve())
        ):
            raise UserError(
                "a site cannot take the place of its sources", path=out, remedy="Name another folder."
            )
    with _alone(out.parent):
        _recover(out)
    if out.exists() and not out.is_dir():
        raise UserError("this is a file", path=out, remedy="Name a folder.")
    present = sorted(p.name for p in out.iterdir() if p.name != KEPT) if out.is_dir() else []
    if present and not _is_site(out):
        raise UserError(
            "this folder holds something else than a site", path=out, remedy="Name an empty or a new folder."
        )
    if present and present[0].startswith("."):  # such as .git: no build made it, and none may remove it
        raise UserError(
            f"beside the site this folder holds {present[0]}, which a build would remove",
            path=out,
            remedy="Name another folder, and copy the site from there.",
        )


def write(files: Mapping[str, bytes | Path], out: Path) -> None:
    """Make `out` hold exactly `files` (address to content, or to a file to copy) and its .gitignore."""
    out = out.resolve()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _alone(out.parent):
            _write(files, out)
    except OSError as error:
        raise UserError(
            f"the site cannot be written: {reason(error)}",
            path=error.filename or out,
            remedy="Name another folder, or mend this one.",
        ) from None


def _write(files: Mapping[str, bytes | Path], out: Path) -> None:
    fresh, old = _beside(out, "new"), _beside(out, "old")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir()
        kept = out / KEPT
        # First, so that what an interrupted build leaves behind is ignored by git too.
        (fresh / KEPT).write_bytes(kept.read_bytes() if kept.is_file() else b"*\n")
        for address in sorted(files):
            content = files[address]
            path = fresh / address
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read_bytes() if isinstance(content, Path) else content)
        if not kept.is_file():
            (fresh / KEPT).unlink()
        _swap(fresh, out, old)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other build writes beside this one's site; nothing is left behind."""
    if fcntl is None or not folder.is_dir():
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _swap(fresh: Path, out: Path, old: Path) -> None:
    """Put `fresh` in the place of `out`. Stopped half-way, the previous site is put back."""
    shutil.rmtree(old, ignore_errors=True)
    moved = False
    try:
        if out.exists():
            out.rename(old)
            moved = True
        fresh.rename(out)
    except BaseException:
        if moved and not out.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _recover(out: Path) -> None:
    """A build that was killed between two renames left the previous site beside its place."""
    old = _beside(out, "old")
    if old.is_dir() and not out.exists():
        with suppress(OSError):
            old.rename(out)


def _beside(out: Path, what: str) -> Path:
    return out.with_name(f".{out.name}.{what}")


def _is_site(folder: Path) -> bool:
    try:
        return MARK in (folder / "index.html").read_bytes()
    except OSError:
        return False
