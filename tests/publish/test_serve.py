"""Serving: the last good site stays, errors are said in the terminal, changes are built."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from generator.book import Book
from generator.publish.serve import Handler, Server, rebuild, serve, watched
from tests.publish.small import contents, make_book

PATIENCE_S = 60


@pytest.fixture
def small(tmp_path: Path) -> Book:
    return make_book(tmp_path / "book")


def test_a_book_that_cannot_be_built_is_said_and_the_last_site_stays(small: Book) -> None:
    said: list[str] = []
    assert rebuild(small, said.append)
    before = contents(small.site)
    (small.exercises / "01-alone" / "01-read-a-step.md").write_text("no front matter")

    assert not rebuild(small, said.append)

    assert said[-1].startswith("error: ")
    assert "01-read-a-step.md" in said[-1]
    assert contents(small.site) == before


def test_what_is_watched_is_what_a_site_is_made_of(small: Book) -> None:
    assert small.exercises in watched(small)
    assert small.runs in watched(small)
    assert not any(small.site.is_relative_to(place) for place in watched(small))
    assert not any(small.cache.is_relative_to(place) for place in watched(small))


def test_a_change_is_built_and_served(small: Book) -> None:
    said: list[str] = []
    heard = threading.Condition()

    def say(line: str) -> None:
        with heard:
            said.append(line)
            heard.notify_all()

    def wait_for(start: str, times: int) -> str:
        with heard:
            assert heard.wait_for(lambda: sum(s.startswith(start) for s in said) >= times, PATIENCE_S), said
            return [s for s in said if s.startswith(start)][-1]

    stop = threading.Event()
    server = threading.Thread(target=serve, args=(small, "127.0.0.1", 0), kwargs={"say": say, "stop": stop})
    server.start()
    try:
        address = wait_for("Serving ", 1).split()[1]
        wait_for("Watching", 1)
        with urllib.request.urlopen(address) as answer:
            assert b"A small book" in answer.read()
            assert answer.headers["Cache-Control"] == "no-store"
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(f"{address}nowhere/")
        with missing.value as error:
            assert error.code == 404
            assert b"Nothing here" in error.read()

        toml = small.root / "book.toml"
        toml.write_text(toml.read_text().replace("A small book", "A new title"))
        wait_for("Changed: book.toml", 1)
        wait_for("11 pages", 2)
        with urllib.request.urlopen(address) as answer:
            assert b"A new title" in answer.read()
    finally:
        stop.set()
        server.join(PATIENCE_S)
    assert not server.is_alive()


def test_somebody_who_hangs_up_is_no_error(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(8_000_000))
    with Server(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with socket.create_connection(("127.0.0.1", server.server_port)) as line:
            # Closing with bytes unread makes the kernel reset the connection.
            line.sendall(b"GET /large.bin HTTP/1.0\r\n\r\n")
            line.recv(100)
        server.shutdown()
        thread.join()
        server.server_close()
    assert capfd.readouterr().err == ""
