"""Make the virtual environment that a Makefile target needs. `make` runs it; nobody else has to.

Each goal installs the project with one choice of extras; the tests need PyTorch (if it can be had) and a
browser as well. When pyproject.toml or the Python has changed since .venv was made, it is made anew.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
KEY = VENV / "made-from"
#: What each goal installs of pyproject.toml's extras.
EXTRAS = {
    "site": "",
    "serve": "[serve]",
    "test": "[serve,test]",
    "lint": "[serve,lint]",
    "record": "[record]",
}


class Failed(Exception):
    """One line for the user: what failed and what to do."""


def make_ready(goal: str) -> None:
    make_environment()
    print(f"Installing what 'make {goal}' needs.", flush=True)
    done = pip_install(EXTRAS[goal])
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise Failed(
            "packages could not be installed. Is there a network? pip's settings say which index is asked."
        )
    if goal == "test":
        install_torch()
        find_browser()
    (VENV / f"ready-{goal}").touch()


def make_environment() -> None:
    key = environment_key()
    if PYTHON.exists() and KEY.exists() and KEY.read_text() == key:
        return
    print(f"Making a virtual environment in .venv with Python {sys.version.split()[0]}.", flush=True)
    provide_venv_module()
    shutil.rmtree(VENV, ignore_errors=True)
    done = quietly(sys.executable, "-m", "venv", str(VENV))
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise Failed(
            "the virtual environment could not be made. Mend what is said above, then run make again."
        )
    KEY.write_text(key)


def environment_key() -> str:
    """What .venv is made from: the Python and the project's own description."""
    description = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return f"{Path(sys.executable).resolve()} {sys.version.split()[0]} {description}\n"


def provide_venv_module() -> None:
    """Debian packs a part of Python's venv apart."""
    if importlib.util.find_spec("ensurepip"):
        return
    of_debian = Path(sys.executable) == Path("/usr/bin/python3")
    package = "python3-venv" if of_debian else f"python3.{sys.version_info.minor}-venv"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"This Python has no venv: installing the Debian package '{package}'.", flush=True)
        quietly("apt-get", "update", "-q")
        if quietly("apt-get", "install", "-q", "-y", "--no-install-recommends", package).returncode == 0:
            return
    raise Failed(f"this Python has no venv. On Debian or Ubuntu: apt-get install {package}")


def install_torch() -> None:
    """The recorder's tests need PyTorch; all others run without it."""
    print("Installing PyTorch for the recorder's tests.", flush=True)
    done = pip_install(EXTRAS["record"])
    if done.returncode != 0:
        reason = (done.stdout.strip().splitlines() or ["pip said nothing"])[-1]
        print(f"PyTorch can't be had here, so the recorder's tests will be skipped ({reason}).", flush=True)


def find_browser() -> None:
    print("Looking for a browser for the tests.", flush=True)
    done = subprocess.run(
        [PYTHON, ROOT / "scripts" / "browser.py"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise Failed("the tests need a browser. Mend what is said above, then run make again.")
    (VENV / "browser").write_text(done.stdout)
    print(f"The browser is {done.stdout.strip()}.", flush=True)


def pip_install(extras: str) -> subprocess.CompletedProcess[str]:
    quiet = ("--quiet", "--disable-pip-version-check")
    return quietly(str(PYTHON), "-m", "pip", "install", *quiet, "--editable", f"{ROOT}{extras}")


def quietly(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command, keeping what it says for the case that it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


if __name__ == "__main__":
    try:
        make_ready(sys.argv[1])
    except Failed as failure:
        sys.exit(f"error: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
