"""Find a Chromium for the browser tests, or install one.

Run with the virtual environment's Python, it prints the path of the browser. Looked for, in order: the
variable SHARDBOOK_CHROMIUM, a Chromium or Chrome of the system, the one that Playwright keeps. If there is
none, it is installed: by Playwright, else from Debian's packages when we are root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "SHARDBOOK_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
INSTALL_SECONDS = 600


def chromium() -> Path | None:
    """The first browser found that starts, or None."""
    return next((path for path in _candidates() if _starts(path)), None)


def arguments() -> list[str]:
    """What to start it with: nothing that asks the network, and no sandbox when we are root."""
    quiet = [
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    # Chromium refuses to start as root with its sandbox on.
    return [*quiet, "--no-sandbox"] if _is_root() else quiet


def _candidates() -> Iterator[Path]:
    chosen = os.environ.get(VARIABLE)
    if chosen:
        yield Path(chosen)
        return
    for name in NAMES:
        found = shutil.which(name)
        if found:
            yield Path(found)
    yield from map(Path, APPLICATIONS)
    kept = _playwrights()
    if kept:
        yield kept


def _playwrights() -> Path | None:
    """Where Playwright keeps its Chromium; asked in a process of its own, for it starts a driver."""
    question = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    return Path(path) if done.returncode == 0 and path else None


def _starts(path: Path) -> bool:
    """Whether it says its version; a stub that only tells how to install a browser does not."""
    if not path.is_file():
        return False
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _install() -> Path | None:
    if os.environ.get(VARIABLE):
        # Another browser than the one asked for would be a surprise.
        return None
    _say("No Chromium or Chrome found: asking Playwright to install its own.")
    if _run([sys.executable, "-m", "playwright", "install", "chromium"]):
        found = chromium()
        if found:
            return found
    if _is_root() and shutil.which("apt-get"):
        _say("Playwright could not: installing the Debian package 'chromium'.")
        _run(["apt-get", "update", "-q"])
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for package in ("chromium", "chromium-browser"):
            if _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", package], environment):
                return chromium()
    return None


def _run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    path = chromium() or _install()
    if path is None:
        chosen = os.environ.get(VARIABLE)
        if chosen:
            _say(f"error: {VARIABLE} is '{chosen}', which is not a browser that starts. Mend or unset it.")
        else:
            _say("error: no Chromium was found, and none could be installed.")
            _say(f"Install Chromium or Chrome, or set {VARIABLE} to the path of one.")
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
