"""The command line. Commands only: each reads its arguments, calls a stage, and says what came of it.

Stages are imported inside the commands, so that `--help` is quick and only `record` needs PyTorch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from generator import __version__
from generator.book import Book, find_book
from generator.errors import Problems, UserError, did_you_mean, shown

if TYPE_CHECKING:
    from generator.timeline.spans import Timeline

MODES = click.Choice(["isolated", "recorded"])
LINK_MODELS = click.Choice(["ring", "gloo"])
INTERRUPTED = 130


class Reported(click.ClickException):
    """What a user has to mend, each on a line of its own."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def show(self, file: Any = None) -> None:
        for line in self.lines:
            click.echo(f"error: {line}", err=True)


class Commands(click.Group):
    """A group whose commands may raise UserError, Problems and KeyboardInterrupt."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            raise Reported([str(error)]) from error
        except Problems as problems:
            raise Reported([str(p) for p in problems.problems]) from problems
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


class Started:
    """The folder the command was started for; the book in it is read when a command asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def book(self) -> Book:
        return find_book(self.folder)


pass_started = click.make_pass_decorator(Started)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="shardbook")
@click.option(
    "--book",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The book's folder; the current folder or one above it when left out.",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """Shardbook: a book about distributed training in which every figure is a recorded run."""
    ctx.obj = Started(folder)


@main.command()
@click.argument("runs", nargs=-1)
@click.option("--list", "show", is_flag=True, help="List what can be recorded, and record nothing.")
@click.option("--all", "everything", is_flag=True, help="Record all runs, in the order of the course.")
@click.option(
    "--resume",
    is_flag=True,
    help="Leave out what is there whole, with the settings, link and PyTorch it would be recorded with "
    "now. Whether the code of its scheme has changed is not looked at.",
)
@pass_started
def record(started: Started, runs: tuple[str, ...], show: bool, everything: bool, resume: bool) -> None:
    """Record RUNS anew, each into measured_runs/<id>. Needs PyTorch.

    Each run appears in its folder when it is complete. After a failure, go on with --resume.
    """
    try:
        from generator import recorder
    except ModuleNotFoundError as error:
        _blame_torch(error)
    if show:
        _table([(name, spec.title) for name, spec in recorder.RUNS.items()])
        return
    if bool(runs) == everything:
        raise click.UsageError("Name the runs to record, or say --all; --list shows what there is.")
    for name in runs:
        if name not in recorder.RUNS:
            raise UserError(f"no run '{name}' can be recorded", remedy=did_you_mean(name, recorder.RUNS))
    book = started.book()
    wanted = tuple(recorder.RUNS) if everything else runs
    try:
        done = recorder.record(wanted, book.runs, resume=resume, commit=_commit(book.root))
    except ModuleNotFoundError as error:
        _blame_torch(error)
    for name in done:
        click.echo(f"Recorded {shown(book.runs / name)}")
    if resume and len(done) < len(wanted):
        click.echo(f"{len(wanted) - len(done)} of {len(wanted)} were there already.")


@main.command()
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@pass_started
def verify(started: Started, folder: Path | None) -> None:
    """Check the recorded runs in FOLDER, the book's own when left out.

    For each: its files are whole, every call is matched on all its ranks and ends after all have arrived,
    its losses are those of its partner, and replaying it as recorded takes the time it took.
    """
    from generator.timeline.validation import verify as verify_runs

    verified = verify_runs(folder or started.book().runs)
    _table([("run", "ranks", "matched", "loss differs by", "replay error", ""), *verified.rows()])
    if verified.problems:
        raise Problems(verified.problems)


@main.command()
@click.argument("run")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option("--mode", type=MODES, default="isolated", show_default=True, help="What to reconstruct.")
@click.option(
    "--link-model", type=LINK_MODELS, default="ring", show_default=True, help="Isolated mode's link."
)
@click.option("--step", type=int, help="A step's index; the representative step when left out.")
@pass_started
def reconstruct(
    started: Started, run: str, output: Path | None, mode: str, link_model: str, step: int | None
) -> None:
    """Write the timeline of RUN as JSON, to a file or to standard output."""
    from generator.timeline.export import to_json

    data = to_json(_timeline(started.book(), run, mode=mode, link_model=link_model, step=step))
    if output is None:
        click.echo(data, nl=False)
    else:
        _write(output, data)


@main.command()
@click.argument("run")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="SVG file to write.",
)
@click.option("--mode", type=MODES, default="isolated", show_default=True, help="What to draw.")
@pass_started
def figure(started: Started, run: str, output: Path, mode: str) -> None:
    """Draw the timeline of RUN as an SVG file."""
    from generator.publish.assets import join
    from generator.publish.figures import standalone

    book = started.book()
    timeline = _timeline(book, run, mode=mode, link_model="ring", step=None)
    css = join(book.templates, "css", ("tokens", "figure")).decode()
    _write(output, standalone(timeline, css=css).encode())


@main.command()
@click.option("--out", type=click.Path(path_type=Path), help="Folder; the book's site/ otherwise.")
@pass_started
def build(started: Started, out: Path | None) -> None:
    """Build the book into a folder of pages."""
    from generator.publish.site import build as build_site

    book = started.book()
    target = out or book.site
    build_site(book, target, progress=click.echo)
    click.echo(f"Open {shown(target / 'index.html')}")


@main.command()
@pass_started
def check(started: Started) -> None:
    """Do all that a build does but write: say what has to be mended, and where."""
    from generator.publish.site import make

    make(started.book(), progress=lambda _line: None)
    click.echo("Nothing to mend.")


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@pass_started
def serve(started: Started, host: str, port: int) -> None:
    """Show the book, built again on every change."""
    try:
        from generator.publish.serve import serve as serve_book
    except ModuleNotFoundError as error:
        _blame(error, "watchfiles", "serving", "serve")
    serve_book(started.book(), host, port)


@main.command()
@click.argument("name", required=False)
def metrics(name: str | None) -> None:
    """List the words of expressions, or explain one of them."""
    from generator.lessons.vocabulary import default_vocabulary

    vocabulary = default_vocabulary()
    if name is None:
        for heading, words in (
            ("Metrics of a timeline", vocabulary.metrics),
            ("Facts of a run", vocabulary.facts),
            ("Closed forms", vocabulary.formulas),
        ):
            click.echo(f"{heading}:")
            _table([(f"  {word}", measure.unit, measure.summary) for word, measure in words.items()])
    elif found := {**vocabulary.metrics, **vocabulary.facts, **vocabulary.formulas}.get(name):
        click.echo(getattr(found, "doc", found.summary).strip())
        if source := getattr(found, "source", ""):
            click.echo(f"\nSource: {source}.")
    else:
        known = (*vocabulary.metrics, *vocabulary.facts, *vocabulary.formulas)
        raise UserError(f"there is no word '{name}'", remedy=did_you_mean(name, known))


@main.command("eval")
@click.argument("expression")
@click.option("--run", "run_id", required=True, help="The run that the expression means when it names none.")
@click.option("--unit", help="Unit to show the value in, such as ms, MB or %.")
@pass_started
def evaluate_expression(started: Started, expression: str, run_id: str, unit: str | None) -> None:
    """Evaluate an EXPRESSION over a run, as exercises do."""
    from generator.lessons.expressions import evaluate
    from generator.lessons.scope import Scope
    from generator.lessons.vocabulary import default_vocabulary
    from generator.publish.library import Library
    from generator.units import show

    library = Library(started.book(), progress=lambda _line: None)
    if library.runs.problems:
        raise Problems(library.runs.problems)
    scope = Scope(run_id, library.manifests, library.timeline, default_vocabulary())
    value = evaluate(expression, scope)
    try:
        text = str(value.result).lower() if isinstance(value.result, bool) else show(value.result, unit)
    except ValueError as error:
        raise UserError(str(error), remedy="Leave --unit out to see what it is.") from None
    click.echo(f"{text} ({value.label})")


def _timeline(book: Book, run_id: str, *, mode: str, link_model: str, step: int | None) -> Timeline:
    """The timeline of one of the book's runs, with the calibration its manifest names."""
    from generator.runs.reader import read_run_named
    from generator.timeline.reconstruct import reconstruct as reconstruct_run

    run = read_run_named(book.runs, run_id)
    calibration = run.manifest.link.calibration
    return reconstruct_run(
        run,
        mode=mode,
        link_model=link_model,
        calibration=read_run_named(book.runs, calibration) if calibration else None,
        step=step,
    )


def _commit(root: Path) -> str:
    """The commit the book's folder is at, or nothing when it is no git checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _blame_torch(error: ModuleNotFoundError) -> NoReturn:
    _blame(error, "torch", "recording", "record")


def _blame(error: ModuleNotFoundError, package: str, what: str, extra: str) -> NoReturn:
    """Say which extra is missing; a missing module of ours is a bug and stays one."""
    if (error.name or "").split(".")[0] != package:
        raise error
    raise UserError(
        f"{what} needs {package}, which is not installed", remedy=f"Run: pip install 'shardbook[{extra}]'"
    ) from None


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=path, remedy="Name another file."
        ) from None
    click.echo(f"Wrote {shown(path)}")


def _table(rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns; the last column is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] if rows else []
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        click.echo("  ".join([*padded, row[-1]]))


if __name__ == "__main__":
    sys.exit(main())
