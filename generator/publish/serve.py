"""`shardbook serve`: the site on this machine, built again when something in the book changes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import watchfiles

from generator.book import FILE_NAME, Book, read_book
from generator.errors import Problems, UserError
from generator.publish.site import build

Say = Callable[[str], None]


class Handler(SimpleHTTPRequestHandler):
    """Files of the site; unknown addresses get the site's own page, and nothing is kept by the browser."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_args: Any) -> None:
        """The terminal is for what was built and what went wrong."""


class Server(ThreadingHTTPServer):
    """A server that does not mind when somebody hangs up, as a browser does that reloads."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(
    book: Book, host: str, port: int, *, say: Say = click.echo, stop: threading.Event | None = None
) -> None:
    """Build and serve until interrupted (or `stop` is set), building again on every change.

    A book that cannot be built is said so in the terminal, and the last good site stays.
    """
    rebuild(book, say)
    try:
        server = Server((host, port), partial(Handler, directory=str(book.site)))
    except OSError as error:
        raise UserError(
            f"{host}:{port} cannot be served: {error.strerror}", remedy="Name another --port."
        ) from None
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say(f"Serving http://{host}:{server.server_port}/ (Ctrl+C stops)")
        changes = watchfiles.watch(
            *watched(book), stop_event=stop, raise_interrupt=False, yield_on_timeout=True, rust_timeout=200
        )
        try:
            # The first round, empty or not, says that the watcher is at work.
            seen = next(changes, None)
            say("Watching for changes")
            while seen is not None:
                if seen:
                    say("Changed: " + ", ".join(_names(seen)))
                    rebuild(book, say)
                seen = next(changes, None)
        finally:
            server.shutdown()


def watched(book: Book) -> tuple[Path, ...]:
    """What a site is made of; never the site itself or the cache."""
    places = (book.root / FILE_NAME, book.exercises, book.runs, *book.templates)
    return tuple(place for place in places if place.exists())


def rebuild(book: Book, say: Say) -> bool:
    """Build the site once; say what is wrong instead of raising it. Whether it was built."""
    try:
        build(read_book(book.root), book.site, say)
    except UserError as error:
        say(f"error: {error}")
    except Problems as problems:
        for problem in problems.problems:
            say(f"error: {problem}")
    else:
        return True
    return False


def _names(changes: Iterable[tuple[Any, str]]) -> list[str]:
    names = {Path(path).name for _, path in changes}
    return sorted(names)[:5]
