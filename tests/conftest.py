"""What several tests need: the repository, a browser, accepted output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from scripts import browser
from tests.properties import EXAMPLES

TESTS = Path(__file__).parent
Gold = Callable[[str, str], None]

# Tests try the same examples every time, everywhere; `make fuzz` tries others, and many.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile(
    "fuzz", settings.get_profile("repeatable"), derandomize=False, max_examples=max(1, EXAMPLES)
)
settings.load_profile("fuzz" if EXAMPLES else "repeatable")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout, which is itself a book."""
    return TESTS.parent


@pytest.fixture(scope="session")
def chromium() -> Path:
    """A Chromium that starts. `make test` provides one; a bare pytest takes what is there."""
    path = browser.chromium()
    if path is None:
        pytest.skip(f"no Chromium: run make test, or set {browser.VARIABLE}")
    return path


@pytest.fixture(scope="session")
def chromium_arguments() -> list[str]:
    """What Chromium has to be started with on this machine."""
    return browser.arguments()


@pytest.fixture(scope="session")
def gold() -> Gold:
    """Compare text with the accepted file of that name in tests/gold; `make gold` accepts what differs."""

    def compare(name: str, actual: str) -> None:
        accepted = TESTS / "gold" / name
        kept = TESTS / "actual" / name
        if accepted.is_file() and accepted.read_text(encoding="utf-8") == actual:
            kept.unlink(missing_ok=True)
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(actual, encoding="utf-8")
        pytest.fail(
            f"tests/actual/{name} differs from tests/gold/{name}. If it is right, accept it: make gold",
            pytrace=False,
        )

    return compare
