"""What has to hold for the repository as a whole: who imports whom, what is committed and packed."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

#: Folders of one person's or one machine's own; a path below them means nothing to anyone else.
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|Users|root|work|tmp|private|mnt|data\d*)/[\w.-]+")
#: Nobody writes such files or lines by hand.
BUNDLE = re.compile(r"\.min\.(?:js|css)$|(?:^|/)(?:node_modules|vendor|third_party)/|\.(?:woff2?|ttf|wasm)$")
LONGEST_LINE = 400
#: Of all rank files together.
RECORDINGS_BYTES = 15_000_000


@pytest.fixture(scope="module")
def tracked(repository: Path) -> list[Path]:
    """Every file that git knows of here."""
    if not (repository / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout
    return [repository / name for name in listed.split("\0") if name and (repository / name).is_file()]


def text_of(path: Path) -> str | None:
    """A file's text, unpacked where it is gzip; None for other binary files."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def test_stages_import_only_from_stages_to_their_left(repository: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "imported", "broken"),
    [
        ("runs/reader.py", "generator.timeline.spans", "Data flows one way"),
        ("lessons/scope.py", "generator.publish", "Data flows one way"),
        ("recorder/model.py", "generator.runs.reader", "The recorder knows the rest by the manifest alone"),
        ("timeline/spans.py", "generator.recorder", "Nothing but the command line knows the recorder"),
        ("cli.py", "torch", "PyTorch is imported in the recorder and nowhere else"),
    ],
    ids=[
        "runs take from timeline",
        "lessons from publish",
        "recorder from runs",
        "timeline from recorder",
        "torch",
    ],
)
def test_an_import_the_other_way_is_found(
    repository: Path, tmp_path: Path, module: str, imported: str, broken: str
) -> None:
    copy_sources(repository, tmp_path)
    with (tmp_path / "generator" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n\ndef _stray() -> None:\n    import {imported}\n")
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(re.escape(broken) + r".* BROKEN", done.stdout), done.stdout


def copy_sources(repository: Path, target: Path) -> None:
    for path in sorted((repository / "generator").rglob("*.py")):
        copy = target / path.relative_to(repository)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (target / "pyproject.toml").write_bytes((repository / "pyproject.toml").read_bytes())


def test_no_file_names_a_path_of_one_machine(tracked: list[Path], repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}:{number}: {match.group()}"
        for path in tracked
        if (text := text_of(path)) is not None
        for number, line in enumerate(text.splitlines(), 1)
        for match in MACHINE_PATH.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_no_bundle_of_others_is_committed(tracked: list[Path], repository: Path) -> None:
    names = [path.relative_to(repository).as_posix() for path in tracked]
    assert not [name for name in names if BUNDLE.search(name)]
    assert not [name for name in names if name.endswith(("package-lock.json", "yarn.lock", "pnpm-lock.yaml"))]


def test_styles_and_scripts_are_written_by_hand(tracked: list[Path], repository: Path) -> None:
    long = [
        f"{path.relative_to(repository)}:{number}"
        for path in tracked
        if path.suffix in {".js", ".css"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert not long, "\n".join(long)


def test_built_pages_and_environments_are_not_committed(tracked: list[Path], repository: Path) -> None:
    names = {path.relative_to(repository).as_posix() for path in tracked}
    assert {name for name in names if name.startswith("site/")} == {"site/.gitignore"}
    assert not [
        name for name in names if name.startswith((".venv/", ".shardbook/", "dist/", "tests/actual/"))
    ]


def test_recordings_stay_small(tracked: list[Path]) -> None:
    total = sum(path.stat().st_size for path in tracked if path.name.endswith(".json.gz"))
    assert total <= RECORDINGS_BYTES


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=repository, capture_output=True, check=True)
    (built,) = folder.glob("shardbook-*.whl")
    return built


def test_the_wheel_carries_the_templates_and_nothing_of_the_book(repository: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next(archive.read(n).decode() for n in names if n.endswith("entry_points.txt"))
    here = {
        f"generator/templates/{path.relative_to(repository / 'templates').as_posix()}"
        for path in (repository / "templates").rglob("*")
        if path.is_file() and path.suffix in {".html", ".css", ".js"}
    }
    assert here
    assert here <= names
    assert "generator/py.typed" in names
    assert "shardbook = generator.cli:main" in entry_points
    assert not [
        name for name in names if name.startswith(("tests/", "measured_runs/", "exercises/", "site/"))
    ]


def test_an_installed_package_finds_its_templates(wheel: Path, tmp_path: Path) -> None:
    """From the wheel alone, in a folder that is another book."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "book.toml").write_text('title = "Another book"\n')
    question = (
        "from pathlib import Path; from generator.book import find_book; print(*find_book(Path()).templates)"
    )
    done = subprocess.run(
        [sys.executable, "-c", question],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
    )
    (templates,) = done.stdout.split()
    assert Path(templates) == tmp_path / "installed" / "generator" / "templates"
    assert (Path(templates) / "base.html").is_file()


def test_version_is_said_once_and_cited_right(repository: Path) -> None:
    from generator import __version__

    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    assert f"\nversion: {__version__}\n" in (repository / "CITATION.cff").read_text(encoding="utf-8")


def test_every_target_of_make_is_explained(repository: Path) -> None:
    done = subprocess.run(["make", "help"], cwd=repository, capture_output=True, text=True, check=True)
    explained = set(re.findall(r"^  make (\w+)", done.stdout, re.MULTILINE))
    (phony,) = re.findall(
        r"^\.PHONY: (.*)$", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert explained == set(phony.split())


def test_every_property_can_be_tried_more_often(tracked: list[Path], repository: Path) -> None:
    """`make fuzz` sets the number of examples; a test that has its own settings would not hear of it."""
    given = re.compile(r"^from hypothesis import .*\bsettings\b", re.MULTILINE)
    own = [
        path.relative_to(repository).as_posix()
        for path in tracked
        if path.suffix == ".py" and given.search(path.read_text(encoding="utf-8"))
    ]
    assert sorted(own) == ["tests/conftest.py", "tests/properties.py"]
