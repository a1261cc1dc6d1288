"""Colours: told apart by readers who see two primaries only, and words legible on every mark."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

CSS = Path(__file__).parents[2] / "templates" / "css" / "tokens.css"
MARKS = ("--f", "--b", "--w", "--o", "--x", "--h")
LEAST_DIFFERENCE = 15.0
#: Machado, Oliveira & Fernandes (2009), table of matrices for severity 1.0, on linear RGB.
SEEN_BY = {
    "trichromacy": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
Triple = tuple[float, float, float]


def themes() -> dict[str, dict[str, str]]:
    """The custom properties of each `:root` block, by theme."""
    text = re.sub(r"/\*.*?\*/", "", CSS.read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = {
        selector.strip(): dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]+)", body))
        for selector, body in re.findall(r"(:root[^{]*)\{([^}]*)\}", text)
    }
    return {
        "light": blocks[":root"],
        "dark": blocks[':root[data-theme="dark"]'],
        "dark by system": blocks[':root:not([data-theme="light"])'],
    }


def linear(colour: str) -> Triple:
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return r, g, b


def seen(colour: str, matrix: tuple[Triple, ...]) -> Triple:
    source = linear(colour)
    r, g, b = (min(1.0, max(0.0, sum(m * s for m, s in zip(row, source, strict=True)))) for row in matrix)
    return r, g, b


def lab(rgb: Triple) -> Triple:
    """CIELAB for D65."""
    r, g, b = rgb
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(a: str, b: str, matrix: tuple[Triple, ...]) -> float:
    """CIE76."""
    return sum((p - q) ** 2 for p, q in zip(lab(seen(a, matrix)), lab(seen(b, matrix)), strict=True)) ** 0.5


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio."""
    high, low = sorted(
        (sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (a, b)),
        reverse=True,
    )
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", themes())
@pytest.mark.parametrize("viewer", SEEN_BY)
def test_marks_differ_from_each_other_and_from_the_ground(theme: str, viewer: str) -> None:
    tokens, matrix = themes()[theme], SEEN_BY[viewer]
    found = {
        (a, b): difference(tokens[a], tokens[b], matrix) for a, b in combinations((*MARKS, "--ground"), 2)
    }
    assert min(found.values()) >= LEAST_DIFFERENCE, min(found, key=lambda pair: found[pair])


@pytest.mark.parametrize("theme", themes())
def test_words_on_marks_and_on_the_ground_are_legible(theme: str) -> None:
    tokens = themes()[theme]
    pairs = [(f"--on-{m}", f"--{m}") for m in "fbwoh"]
    pairs += [(ink, "--ground") for ink in ("--ink", "--ink2", "--ink3", "--link", "--good", "--bad")]
    found = {pair: contrast(tokens[pair[0]], tokens[pair[1]]) for pair in pairs}
    assert min(found.values()) >= 4.5, min(found, key=lambda pair: found[pair])


@pytest.mark.parametrize("theme", themes())
def test_marks_stand_out_from_the_ground(theme: str) -> None:
    tokens = themes()[theme]
    found = {mark: contrast(tokens[mark], tokens["--ground"]) for mark in MARKS}
    assert min(found.values()) >= 3.0, min(found, key=lambda mark: found[mark])


def test_the_dark_theme_is_the_same_by_system_and_by_toggle() -> None:
    assert themes()["dark"] == themes()["dark by system"]
    assert themes()["dark"].keys() == themes()["light"].keys()
