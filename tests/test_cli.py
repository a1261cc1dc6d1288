"""The command line: what it prints, how it fails, what it does not load."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from generator.cli import main
from generator.errors import Problems, UserError

COMMANDS = ("build", "check", "eval", "figure", "metrics", "reconstruct", "record", "serve", "verify")


@pytest.fixture
def shardbook(repository: Path) -> Shardbook:
    return Shardbook(repository)


class Shardbook:
    """Runs the command line over the repository's own book, in this process."""

    def __init__(self, book: Path) -> None:
        self.book = book

    def __call__(self, *arguments: str) -> Result:
        result = CliRunner().invoke(main, ["--book", str(self.book), *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result


def assert_one_line_error(result: Result, *parts: str) -> None:
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for part in parts:
        assert part in line


def run_python(code: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False)


def test_help_lists_every_command(shardbook: Shardbook) -> None:
    result = shardbook("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.stdout


def test_help_loads_no_stage(repository: Path) -> None:
    code = (
        "import sys; from generator.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'torch', 'jinja2', 'pint', 'markdown_it'} & set(sys.modules)))"
    )
    assert run_python(code, cwd=repository).stdout.splitlines()[-1] == "[]"


def test_only_recording_needs_torch(repository: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from generator.cli import main\nmain(['record', 'single'])"
    )
    done = run_python(code, cwd=repository)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: recording needs torch, which is not installed. Run: pip install 'shardbook[record]'"
    ]


def test_record_lists_what_can_be_recorded(shardbook: Shardbook) -> None:
    result = shardbook("record", "--list")
    assert result.exit_code == 0
    assert {"single", "ddp", "fsdp", "tp", "pp-1f1b"} <= {
        line.split()[0] for line in result.stdout.splitlines()
    }


def test_record_names_the_run_that_was_meant(shardbook: Shardbook) -> None:
    assert_one_line_error(shardbook("record", "dpp"), "'dpp'", "'ddp'")


def test_record_of_nothing_is_a_mistake_in_use(shardbook: Shardbook) -> None:
    assert shardbook("record").exit_code == 2


def test_record_of_all_and_of_some_at_once_is_a_mistake_in_use(shardbook: Shardbook) -> None:
    assert shardbook("record", "--all", "ddp").exit_code == 2


def test_verify_prints_a_row_a_run_and_a_line_a_failure(
    shardbook: Shardbook, repository: Path, tmp_path: Path
) -> None:
    for name in ("single", "tp"):
        shutil.copytree(repository / "measured_runs" / name, tmp_path / name)
    shutil.copytree(repository / "measured_runs" / "link-2gbit", tmp_path / "link-2gbit")
    assert shardbook("verify", str(tmp_path)).exit_code == 0
    (tmp_path / "tp" / "rank-002.json.gz").unlink()
    result = shardbook("verify", str(tmp_path))
    assert result.exit_code == 1
    rows = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[1:]}
    assert rows == {"link-2gbit": "ok", "single": "ok", "tp": "failed"}
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "'rank-002.json.gz' is missing" in line


def test_outside_a_book_says_what_is_missing(tmp_path: Path) -> None:
    assert_one_line_error(Shardbook(tmp_path)("check"), "book.toml", "--book")


def test_mistakes_in_the_book_file_come_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text('title = "A book"\ntitel = "again"\n')
    assert_one_line_error(Shardbook(tmp_path)("build"), "book.toml:2: unknown key 'titel'", "'title'")


def test_several_problems_are_each_on_a_line(monkeypatch: pytest.MonkeyPatch, shardbook: Shardbook) -> None:
    def fail(folder: Path) -> NoReturn:
        raise Problems([UserError("one", path="a.md", line=3), UserError("two", remedy="Mend it.")])

    monkeypatch.setattr("generator.cli.find_book", fail)
    result = shardbook("check")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == ["error: a.md:3: one", "error: two. Mend it."]


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, shardbook: Shardbook) -> None:
    def fail(folder: Path) -> NoReturn:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("generator.cli.find_book", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        shardbook("check")


def test_interrupting_ends_with_130(monkeypatch: pytest.MonkeyPatch, shardbook: Shardbook) -> None:
    def interrupt(folder: Path) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("generator.cli.find_book", interrupt)
    result = shardbook("check")
    assert result.exit_code == 130
    assert result.stderr.splitlines() == ["interrupted"]


def test_check_finds_nothing_to_mend_in_our_book(shardbook: Shardbook) -> None:
    result = shardbook("check")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Nothing to mend.\n", "")


def test_the_example_in_the_readme_is_an_exercise(repository: Path, tmp_path: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    path, example = re.findall(r"`(exercises/[^`]*\.md)`:\n\n````markdown\n(.*?)````\n", readme, re.DOTALL)[0]
    shutil.copytree(repository / "measured_runs", tmp_path / "measured_runs")
    shutil.copy(repository / "book.toml", tmp_path)
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy((repository / path).with_name("chapter.md"), (tmp_path / path).parent)
    (tmp_path / path).write_text(example, encoding="utf-8")
    result = Shardbook(tmp_path)("check")
    assert (result.exit_code, result.stderr) == (0, "")


def test_build_ends_with_the_page_to_open(shardbook: Shardbook, tmp_path: Path) -> None:
    result = shardbook("build", "--out", str(tmp_path / "site"))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"Open {tmp_path / 'site' / 'index.html'}"
    assert (tmp_path / "site" / "index.html").is_file()


def test_reconstruct_writes_the_same_json_to_file_and_output(shardbook: Shardbook, tmp_path: Path) -> None:
    printed = shardbook("reconstruct", "ddp")
    written = shardbook("reconstruct", "ddp", "--output", str(tmp_path / "new" / "ddp.json"))
    assert printed.exit_code == written.exit_code == 0
    assert (tmp_path / "new" / "ddp.json").read_text() == printed.stdout
    timeline = json.loads(printed.stdout)
    assert (timeline["run"], timeline["mode"]) == ("ddp", "isolated")


def test_reconstruct_takes_mode_and_step(shardbook: Shardbook) -> None:
    timeline = json.loads(shardbook("reconstruct", "ddp", "--mode", "recorded", "--step", "1").stdout)
    assert (timeline["mode"], timeline["step"]) == ("recorded", 1)


def test_reconstruct_of_an_unknown_run_names_the_nearest(shardbook: Shardbook) -> None:
    assert_one_line_error(shardbook("reconstruct", "ddq"), "'ddq'", "'ddp'")


def test_a_file_that_cannot_be_written_is_one_line(shardbook: Shardbook, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder would have to be")
    output = str(tmp_path / "taken" / "ddp.json")
    assert_one_line_error(shardbook("reconstruct", "ddp", "--output", output), "cannot be written")


def test_figure_is_a_picture_that_stands_alone(shardbook: Shardbook, tmp_path: Path) -> None:
    assert shardbook("figure", "ddp", "--output", str(tmp_path / "ddp.svg")).exit_code == 0
    svg = (tmp_path / "ddp.svg").read_text(encoding="utf-8")
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert "<style" in svg
    assert svg.rstrip().endswith("</svg>")


def test_the_picture_in_the_readme_is_the_one_of_the_run(
    shardbook: Shardbook, repository: Path, tmp_path: Path
) -> None:
    shardbook("figure", "ddp", "--output", str(tmp_path / "ddp.svg"))
    shown = (repository / "docs" / "timeline.svg").read_bytes()
    assert (tmp_path / "ddp.svg").read_bytes() == shown, "make picture draws it anew"


def test_metrics_lists_every_word_and_explains_one(shardbook: Shardbook) -> None:
    from generator.lessons.vocabulary import FACTS
    from generator.timeline.formulas import FORMULAS
    from generator.timeline.metrics import METRICS

    listed = {line.split()[0] for line in shardbook("metrics").stdout.splitlines()}
    assert {*METRICS, *FORMULAS, *FACTS} <= listed
    assert shardbook("metrics", "overlap").stdout.strip() == METRICS["overlap"].doc.strip()
    explained = shardbook("metrics", "half_bandwidth_size").stdout
    assert explained.startswith(FORMULAS["half_bandwidth_size"].doc)
    assert explained.strip().endswith(f"Source: {FORMULAS['half_bandwidth_size'].source}.")
    assert shardbook("metrics", "mesh_size").stdout.strip() == FACTS["mesh_size"].summary
    assert_one_line_error(shardbook("metrics", "overlaps"), "'overlaps'", "'overlap'")


def test_eval_answers_with_unit_and_label(shardbook: Shardbook) -> None:
    assert shardbook("eval", "2 * 3", "--run", "ddp").stdout == "6 (formula)\n"
    time = shardbook("eval", "step_time()", "--run", "ddp", "--unit", "ms").stdout
    assert time.endswith("ms (reconstructed)\n")
    recorded = shardbook("eval", "step_time(mode='recorded') > 0 * ms", "--run", "ddp").stdout
    assert recorded == "true (recorded)\n"


def test_eval_knows_the_words_of_other_steps_operations_and_nodes(shardbook: Shardbook) -> None:
    assert shardbook("eval", "count(op='all_reduce', step=0)", "--run", "ddp").stdout == "1 (recorded)\n"
    operations = shardbook("eval", "flops(phase='forward', layer=3)", "--run", "single").stdout
    assert operations == "1.745\u2009GFLOP (recorded)\n"
    rate = shardbook("eval", "flops() / step_time()", "--run", "single", "--unit", "GFLOP/s").stdout
    assert rate.endswith("\u2009GFLOP/s (reconstructed)\n")
    sent = shardbook("eval", "egress_bytes(node=0)", "--run", "hsdp", "--unit", "MB").stdout
    assert sent == "27.4\u2009MB (formula)\n"


def test_eval_of_a_unit_that_does_not_fit_is_one_line(shardbook: Shardbook) -> None:
    assert_one_line_error(shardbook("eval", "step_time()", "--run", "ddp", "--unit", "MB"), "a time")


def test_eval_of_a_misspelt_metric_names_the_nearest(shardbook: Shardbook) -> None:
    assert_one_line_error(shardbook("eval", "step_tim()", "--run", "ddp"), "'step_tim'", "'step_time'")
